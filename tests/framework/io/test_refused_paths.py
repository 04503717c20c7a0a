"""Invalid paths, and files in the place of folders: named errors at each public function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import InputError, LockgateError
from lockgate.framework.governance.policy_files import PolicyFiles
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.keys import KeyFileProvider
from lockgate.framework.store import Catalog, ReadRequest, Schema

DOORS: dict[str, Callable[[str], object]] = {
    "warehouse": lambda path: Catalog(path).create_namespace("db"),
    "keys": KeyFileProvider,
    "policies": PolicyFiles,
}


@pytest.mark.parametrize("door", DOORS)
def test_a_path_with_a_nul_is_refused(door: str) -> None:
    with pytest.raises(InputError, match=r"cannot hold a NUL|is required, not .*x00"):
        DOORS[door]("/tmp/a\0b")


@pytest.mark.parametrize("door", DOORS)
def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path, door: str) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(LockgateError, match="file"):
        DOORS[door](str(file / "inside"))


@pytest.mark.parametrize(
    "make",
    [
        lambda files, path: files.make_directory(path),
        lambda files, path: files.write_atomic(f"{path}/a", b"x"),
    ],
)
def test_a_file_in_the_place_of_a_folder_is_no_conflict(
    tmp_path: Path, make: Callable[[LocalFileSystem, str], object]
) -> None:
    """A FileExistsError means that another writer was faster, so a file in the way must not raise it."""
    place = tmp_path / "place"
    place.write_text("x")
    with pytest.raises(NotADirectoryError, match="place"):
        make(LocalFileSystem(), str(place))
    assert place.read_text() == "x"


def test_a_limit_beyond_arrows_range_is_no_limit(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", Schema.from_arrow(pa.schema([("id", pa.int64())])))
    table.append(pa.table({"id": [1, 2]}))
    assert table.read(table.scan(ReadRequest(limit=10**30))).num_rows == 2
