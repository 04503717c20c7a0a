"""Tags: their files, what they hold when snapshots expire, and what goes with them."""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InputError,
    LockgateError,
    SnapshotNotFoundError,
    TagNotFoundError,
)
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.store import CommitMessage, Table
from lockgate.framework.store.history.reachable_files import NeededFiles
from lockgate.framework.store.history.tags import Released, delete_tags, new_tag, rename_tag, replace_tag
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.metadata.references import protected_snapshots
from lockgate.framework.store.metadata.tag_files import Tag

MakeTable = Callable[..., Table]
DAY = datetime.timedelta(days=1)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"v{number}" for number in ids]})


def ids(table: Table, **where: object) -> list[int]:
    return sorted(table.read(**where)["id"].to_pylist())  # type: ignore[arg-type]  # keywords of several types


def files(table: Table) -> dict[str, int]:
    """All data and manifest files with their bytes."""
    folders = [Path(table.location) / "manifest", *Path(table.location).glob("bucket-*")]
    return {path.name: path.stat().st_size for folder in folders for path in folder.iterdir()}


@pytest.fixture
def table(make_table: MakeTable) -> Table:
    """Snapshots 1 to 4; each replaces the row of the one before."""
    table = make_table()
    for number in range(1, 5):
        table.overwrite(rows(number))
    return table


def test_the_file_is_the_snapshot(table: Table) -> None:
    tag = table.create_tag("first", 1)
    path = Path(table.location) / "tag" / "tag-first"
    assert json.loads(path.read_bytes()) == json.loads(
        (Path(table.location) / "snapshot" / "snapshot-1").read_bytes()
    )
    assert tag == table.tag("first") == Tag("first", table.snapshot(1))
    assert table.create_tag("last").snapshot == table.latest_snapshot()
    assert [tag.name for tag in table.tags()] == ["first", "last"]


def test_time_to_keep_is_stored_as_paimon_does(table: Table) -> None:
    before = datetime.datetime.now()
    table.create_tag("t", 1, retained=1.5 * DAY)
    content = json.loads((Path(table.location) / "tag" / "tag-t").read_bytes())
    assert content["tagTimeRetained"] == 129600.0
    year, month, day, *clock = content["tagCreateTime"]
    assert (year, month, day) == (before.year, before.month, before.day)
    assert len(clock) == 4
    tag = table.tag("t")
    assert tag.retained == 1.5 * DAY
    assert tag.created is not None
    assert abs(tag.created - before) < datetime.timedelta(minutes=1)


def test_a_tag_that_paimon_wrote(table: Table) -> None:
    content = table.snapshot(2).to_json()
    content |= {"tagCreateTime": [1969, 1, 1, 0, 0, 0, 123456789], "tagTimeRetained": 5.000000000}
    data = json.dumps(content).encode()
    tag = Tag.from_bytes("t", data, "tag-t")
    assert tag.created == datetime.datetime(1969, 1, 1, 0, 0, 0, 123456)
    assert tag.retained == datetime.timedelta(seconds=5)
    content["tagCreateTime"] = [2024, 2, 3, 4, 5]
    short = Tag.from_bytes("t", json.dumps(content).encode(), "tag-t")
    assert short.created == datetime.datetime(2024, 2, 3, 4, 5)
    content["tagCreateTime"] = [2024, 13]
    with pytest.raises(CorruptFileError, match="tag-t"):
        Tag.from_bytes("t", json.dumps(content).encode(), "tag-t")


def test_expiry_spares_what_a_tag_holds(table: Table) -> None:
    table.create_tag("second", 2)
    expire_snapshots(table, retain_max=1)
    assert [snapshot.id for snapshot in table.snapshots()] == [4]
    assert ids(table, tag="second") == [2]
    assert table.scan(tag="second").snapshot_id == 2
    assert [batch.num_rows for batch in table.read_batches(tag="second")] == [1]
    assert ids(table) == [4]
    assert ids(table, snapshot_id=2) == [2]
    with pytest.raises(SnapshotNotFoundError):
        table.read(snapshot_id=3)
    with pytest.raises(InputError, match="not both"):
        table.read(snapshot_id=4, tag="second")


def test_deleting_a_tag_releases_what_only_it_held(table: Table) -> None:
    table.create_tag("second", 2)
    table.create_tag("third", 3)
    expire_snapshots(table, retain_max=1)
    before = files(table)
    planned = delete_tags(table, ["second"], dry_run=True)
    assert files(table) == before
    assert ids(table, tag="second") == [2]
    released = table.delete_tag("second")
    assert released == planned
    assert released.data_files == 1
    gone = before.keys() - files(table).keys()
    assert len(gone) == released.data_files + released.manifests
    assert sum(before[name] for name in gone) == released.bytes
    assert ids(table, tag="third") == [3]
    assert ids(table) == [4]
    with pytest.raises(TagNotFoundError, match="did you mean 'third'"):
        table.read(tag="thirt")


def test_after_the_last_tag_only_the_newest_snapshot_is_left(table: Table) -> None:
    for number in (1, 2, 3):
        table.create_tag(f"t{number}", number)
    expire_snapshots(table, retain_max=1)
    delete_tags(table, ["t2", "t1", "t3"])
    needed = NeededFiles(table)
    assert all(name in needed for name in files(table))
    assert table.tags() == []
    assert ids(table) == [4]


def test_a_tag_of_a_live_snapshot_releases_nothing(table: Table) -> None:
    table.create_tag("t", 1)
    before = files(table)
    assert table.delete_tag("t") == Released()
    assert files(table) == before
    assert ids(table, snapshot_id=1) == [1]


def test_another_tag_of_the_same_snapshot_keeps_it(table: Table) -> None:
    table.create_tag("a", 1)
    table.create_tag("b", 1)
    expire_snapshots(table, retain_max=1)
    assert table.delete_tag("a") == Released()
    assert ids(table, tag="b") == [1]
    # An expired snapshot can be tagged again as long as a tag holds it.
    table.create_tag("c", 1)
    assert table.delete_tag("b") == Released()
    assert ids(table, tag="c") == [1]


@pytest.mark.parametrize("where", ["branch/branch-b/tag/tag-x", "branch/branch-b/snapshot/snapshot-1"])
def test_a_branch_keeps_what_a_tag_held(table: Table, where: str) -> None:
    tag = table.create_tag("t", 1)
    path = Path(table.location) / where
    path.parent.mkdir(parents=True)
    path.write_bytes(tag.to_bytes())
    expire_snapshots(table, retain_max=1)
    assert table.delete_tag("t") == Released()
    path.rename(Path(table.location) / "tag" / "tag-again")
    assert ids(table, tag="again") == [1]


def test_a_replaced_tag_names_another_snapshot(table: Table) -> None:
    table.create_tag("t", 1)
    expire_snapshots(table, retain_max=2)
    before = files(table)
    planned = replace_tag(table, new_tag(table, "t", 3), dry_run=True)
    assert files(table) == before
    assert table.tag("t").snapshot.id == 1
    released = table.replace_tag("t", 3)
    assert released == planned
    assert released.data_files == 1
    assert ids(table, tag="t") == [3]
    assert table.replace_tag("t", 3, retained=DAY) == Released()
    assert table.tag("t").retained == DAY
    expire_snapshots(table, retain_max=1)
    assert ids(table, tag="t") == [3]
    with pytest.raises(TagNotFoundError):
        table.replace_tag("u")


def test_a_renamed_tag_keeps_its_snapshot(table: Table) -> None:
    table.create_tag("a", 1, retained=DAY)
    table.create_tag("b", 2)
    with pytest.raises(AlreadyExistsError, match="'b'"):
        table.rename_tag("a", "b")
    assert rename_tag(table, "a", "c", dry_run=True).snapshot.id == 1
    assert [tag.name for tag in table.tags()] == ["a", "b"]
    renamed = table.rename_tag("a", "c")
    assert renamed == table.tag("c")
    assert renamed.retained == DAY
    assert [tag.name for tag in table.tags()] == ["c", "b"]
    with pytest.raises(TagNotFoundError):
        table.rename_tag("a", "d")


def test_creation_is_exclusive(table: Table) -> None:
    done: list[object] = []

    def create(number: int) -> None:
        try:
            done.append(table.create_tag("t", number))
        except LockgateError as error:
            done.append(error)

    threads = [threading.Thread(target=create, args=(number,)) for number in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (won,) = [each for each in done if isinstance(each, Tag)]
    assert sum(isinstance(each, AlreadyExistsError) for each in done) == 3
    assert table.tag("t") == won


def test_a_snapshot_that_expires_while_it_is_tagged(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    write_new = LocalFileSystem.write_new

    def expire_first(self: LocalFileSystem, path: str, data: bytes) -> None:
        if "/tag/" in path:
            expire_snapshots(table, retain_max=1)
        write_new(self, path, data)

    monkeypatch.setattr(LocalFileSystem, "write_new", expire_first)
    with pytest.raises(SnapshotNotFoundError, match="while it was tagged"):
        table.create_tag("t", 1)
    assert table.tags() == []


def test_a_tag_renamed_during_a_listing_is_not_missed(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.create_tag("a", 1)
    listing = LocalFileSystem.list
    left = [2]

    def list_and_rename(self: LocalFileSystem, path: str) -> object:
        found = listing(self, path)
        if path.endswith("/tag") and left[0]:
            left[0] -= 1
            names = sorted(info.name for info in found)
            (Path(path) / names[0]).rename(Path(path) / f"tag-r{left[0]}")
        return found

    monkeypatch.setattr(LocalFileSystem, "list", list_and_rename)
    assert [snapshot.id for _, snapshot in protected_snapshots(table)] == [1]


def test_killed_while_it_is_deleted(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.create_tag("t", 1)
    table.create_tag("u", 2)
    expire_snapshots(table, retain_max=1)
    delete, calls = LocalFileSystem.delete, [0]

    def dying(self: LocalFileSystem, path: str) -> bool:
        calls[0] += 1
        if calls[0] > 2:
            raise KeyboardInterrupt
        return delete(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "delete", dying)
        with pytest.raises(KeyboardInterrupt):
            table.delete_tag("t")
    assert [tag.name for tag in table.tags()] == ["u"]
    assert ids(table, tag="u") == [2]
    assert ids(table) == [4]


@pytest.mark.parametrize("name", ["", " ", "a/b", "a,b", "a:b", " a", "a\n"])
def test_names_that_cannot_be(table: Table, name: str) -> None:
    with pytest.raises(InputError, match="tag"):
        table.create_tag(name)


def test_what_cannot_be_tagged(table: Table, make_table: MakeTable) -> None:
    with pytest.raises(SnapshotNotFoundError):
        table.create_tag("t", 9)
    with pytest.raises(SnapshotNotFoundError, match="no snapshot yet"):
        make_table("empty").create_tag("t")
    with pytest.raises(InputError, match="above 0"):
        table.create_tag("t", retained=datetime.timedelta(0))
    with pytest.raises(TagNotFoundError, match="has none"):
        table.tag("t")


def test_a_key_table_with_partitions(make_table: MakeTable) -> None:
    table = make_table(
        columns={"p": pa.int32(), "id": pa.int64(), "v": pa.string()},
        primary_keys=("p", "id"),
        partition_keys=("p",),
        bucket="1",
    )
    table.append(pa.table({"p": pa.array([1, 2], pa.int32()), "id": [1, 2], "v": ["a", "b"]}))
    table.create_tag("t")
    table.overwrite(pa.table({"p": pa.array([1], pa.int32()), "id": [1], "v": ["c"]}), {"p": 1})
    expire_snapshots(table, retain_max=1)
    assert sorted(table.read(tag="t")["v"].to_pylist()) == ["a", "b"]
    assert table.delete_tag("t").data_files == 1
    assert sorted(table.read()["v"].to_pylist()) == ["b", "c"]


def test_commits_of_nothing_can_be_tagged(make_table: MakeTable) -> None:
    table = make_table()
    table.commit([CommitMessage((), 0, -1, ())])
    table.create_tag("empty")
    assert table.read(tag="empty").num_rows == 0
