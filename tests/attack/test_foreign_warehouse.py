"""A warehouse that somebody else filled: names that lead elsewhere, links, and files that are no files."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import LockgateError
from lockgate.framework.store import Catalog, Schema, Table

ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})
SECONDS = 5


def make(folder: Path) -> Table:
    catalog = Catalog(str(folder))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", Schema.from_arrow(ROWS.schema))
    table.append(ROWS)
    return table


def within_seconds(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises; AssertionError if it hangs."""
    came: list[Any] = []

    def run() -> None:
        try:
            came.append(work())
        except BaseException as error:
            came.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert came, f"hangs for more than {SECONDS} s"
    return came[0]


HOSTILE = [
    "../secret.t",
    "db/../../secret.t",
    "..",
    "db..",
    ".",
    "db.",
    "db.../t",
    "db.a/b",
    "db.\0t",
    "/etc.t",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_cannot_lead_out_of_the_warehouse(tmp_path: Path, name: str) -> None:
    make(tmp_path / "secret.db" / "warehouse")
    warehouse = tmp_path / "lake"
    catalog = Catalog(str(warehouse))
    before = sorted(tmp_path.rglob("*"))
    for work in (
        lambda: catalog.load_table(name).read(),
        lambda: catalog.create_table(name, Schema.from_arrow(ROWS.schema)),
        lambda: catalog.drop_table(name),
        lambda: catalog.create_namespace(name),
        lambda: catalog.drop_namespace(name, cascade=True),
    ):
        with pytest.raises(LockgateError):
            work()
    assert [path for path in sorted(tmp_path.rglob("*")) if warehouse not in path.parents] == before


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", "x\0y", "/etc/passwd"])
def test_names_of_tags_branches_and_consumers_stay_in_the_table(tmp_path: Path, name: str) -> None:
    table = make(tmp_path)
    folder = Path(table.location)
    before = [path for path in sorted(tmp_path.rglob("*")) if folder not in path.parents]
    for work in (
        table.create_tag,
        table.delete_tag,
        table.create_branch,
        table.delete_branch,
        lambda name: table.record_consumer(name, 1),
        table.delete_consumer,
        lambda name: table.read(tag=name),
        table.fast_forward,
    ):
        # Two dots behind the prefix of a file's name lead nowhere, so they may be a name.
        with suppress(LockgateError):
            work(name)
    assert [path for path in sorted(tmp_path.rglob("*")) if folder not in path.parents] == before
    assert table.read().num_rows == 2


@pytest.mark.parametrize("victim", ["snapshot/snapshot-1", "snapshot/LATEST", "schema/schema-0"])
def test_a_pipe_in_place_of_metadata_does_not_hang(tmp_path: Path, victim: str) -> None:
    """Opening a pipe that nobody writes to waits for ever."""
    table = make(tmp_path)
    path = Path(table.location) / victim
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    came = within_seconds(lambda: Catalog(str(tmp_path)).load_table("db.t").read().num_rows)
    # A hint that cannot be read may be passed over; anything else is named.
    assert came == 2 or isinstance(came, LockgateError), repr(came)


def test_a_pipe_in_place_of_a_data_file_does_not_hang(tmp_path: Path) -> None:
    table = make(tmp_path)
    (path,) = (Path(table.location) / "bucket-0").glob("data-*")
    path.unlink()
    os.mkfifo(path)
    came = within_seconds(lambda: Catalog(str(tmp_path)).load_table("db.t").read())
    assert isinstance(came, LockgateError), repr(came)


def test_dropping_a_table_follows_no_link(tmp_path: Path) -> None:
    table = make(tmp_path / "lake")
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("kept")
    (Path(table.location) / "bucket-9").symlink_to(other)
    Catalog(str(tmp_path / "lake")).drop_table("db.t")
    assert (other / "precious").read_text() == "kept"


def test_a_table_that_is_a_link_is_not_dropped_at_its_target(tmp_path: Path) -> None:
    table = make(tmp_path / "theirs")
    ours = Catalog(str(tmp_path / "lake"))
    ours.create_namespace("db")
    link = tmp_path / "lake" / "db.db" / "t"
    link.symlink_to(table.location)
    came = within_seconds(lambda: ours.drop_table("db.t"))
    assert came is None or isinstance(came, LockgateError), repr(came)
    assert Catalog(str(tmp_path / "theirs")).load_table("db.t").read().num_rows == 2


def test_orphan_cleaning_stays_in_the_table(tmp_path: Path) -> None:
    from lockgate.framework.store.maintenance.orphans import remove_orphan_files
    from lockgate.framework.store.schema.schema import now_millis

    table = make(tmp_path / "lake")
    other = tmp_path / "other"
    shutil.copytree(Path(table.location) / "bucket-0", other)
    (Path(table.location) / "bucket-9").symlink_to(other)
    within_seconds(
        lambda: remove_orphan_files(table, older_than_millis=now_millis() + 10_000, allow_recent=True)
    )
    assert len(list(other.iterdir())) == 1
