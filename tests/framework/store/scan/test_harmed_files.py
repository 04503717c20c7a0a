"""Files that Python cannot read: the error names the file, and says what happened to it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from stranger import NOBODY, needs_root
from zoo import unpack

from lockgate.errors import CorruptFileError, LockgateError, StorageDeniedError
from lockgate.framework.store import Catalog


def missing(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garbled(path: Path) -> None:
    data = path.read_bytes()
    third = len(data) // 3
    path.write_bytes(
        data[:third] + bytes(byte ^ 0x5A for byte in data[third : 2 * third]) + data[2 * third :]
    )


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def another(path: Path) -> None:
    path.write_bytes(b"something else" * 100)


HARMS = (missing, cut, garbled, emptied, another)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return Catalog(unpack(tmp_path_factory.mktemp("zoo")))


def check(
    path: Path, harm: Callable[[Path], None], kind: type[LockgateError], read: Callable[[], object]
) -> None:
    """Harm a file, read it, see how it fails, and mend it."""
    whole = path.read_bytes()
    harm(path)
    try:
        with pytest.raises(kind, match=re.escape(path.name)):
            read()
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", ["append_avro", "append_orc", "append_parquet"])
def test_data_files(zoo: Catalog, name: str, harm: Callable[[Path], None]) -> None:
    table = zoo.load_table(f"zoo.{name}")
    rows = table.read().num_rows
    assert rows
    path = max(Path(table.location).rglob("data-*"), key=lambda each: each.stat().st_size)
    check(path, harm, CorruptFileError, table.read)
    check(path, harm, CorruptFileError, lambda: list(table.read_batches()))
    assert table.read().num_rows == rows


@pytest.mark.parametrize("harm", HARMS)
def test_lists_of_changelogs(zoo: Catalog, harm: Callable[[Path], None]) -> None:
    """What is kept for readers of changes is read by those who expire, roll back, or list manifests."""
    table = zoo.load_table("zoo.changelog_formats")
    newest = table.snapshots()[-1]
    name = newest.changelog_manifest_list
    assert name is not None
    path = Path(table.location) / "manifest" / name
    check(path, harm, CorruptFileError, lambda: zoo.load_table("zoo.changelog_formats").system("manifests"))


@needs_root
@pytest.mark.parametrize("name", ["append_avro", "append_orc", "append_parquet"])
def test_files_of_somebody_else(zoo: Catalog, name: str) -> None:
    table = zoo.load_table(f"zoo.{name}")
    plan = table.scan()

    def read_as_another_user() -> None:
        os.seteuid(NOBODY)
        try:
            list(table.read_batches(plan))
        finally:
            os.seteuid(0)

    with pytest.raises(StorageDeniedError, match=r"data-.*ask the owner of the folder") as raised:
        read_as_another_user()
    assert isinstance(raised.value.__cause__, PermissionError)
