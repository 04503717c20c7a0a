"""Rollback: what goes and what stays, numbers given twice, commits at the same time, being killed."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    CommitConflictError,
    InputError,
    LockgateError,
    SnapshotNotFoundError,
    TagNotFoundError,
)
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.history.table_rollback import snapshot_at
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import Schema, now_millis

MakeTable = Callable[..., Table]
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def make_rows(*ids: int, v: str = "a") -> pa.Table:
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def ids(table: Table, **at: Any) -> list[int]:
    return sorted(table.read(columns=["id"], **at)["id"].to_pylist())


def files(table: Table) -> set[str]:
    kept = ("schema", "tag", "consumer", "branch")
    found = (path for path in Path(table.location).rglob("*") if path.is_file())
    return {path.name for path in found if path.relative_to(table.location).parts[0] not in kept}


def orphans(table: Table) -> int:
    found = remove_orphan_files(table, dry_run=True)
    return found.data_files + found.other_files + found.young_files


@pytest.fixture(scope="module")
def five_commits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a table that every test gets a copy of."""
    catalog = Catalog(tmp_path_factory.mktemp("origin") / "warehouse")
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA))
    for number in range(1, 6):
        made.append(make_rows(number))
    return Path(made.location)


@pytest.fixture
def table(catalog: Catalog, five_commits: Path) -> Table:
    shutil.copytree(five_commits, Path(str(catalog.warehouse)) / "db.db" / "t")
    return catalog.load_table("db.t")


def test_what_goes(table: Table, make_table: MakeTable) -> None:
    same = make_table("other")
    for number in range(1, 4):
        same.append(make_rows(number))
    plan = table.rollback(3, dry_run=True)
    assert ids(table) == [1, 2, 3, 4, 5]
    done = table.rollback(3)
    assert done == plan
    assert (done.previous_snapshot, done.snapshot, done.snapshots, done.data_files) == (5, 3, 2, 2)
    assert done.manifests == 6  # a manifest and two lists for each
    assert done.bytes > 0
    assert ids(table) == [1, 2, 3]
    assert [snapshot.id for snapshot in table.snapshots()] == [1, 2, 3]
    assert (Path(table.location) / "snapshot" / "LATEST").read_text() == "3"
    assert len(files(table)) == len(files(same))
    assert table.append(make_rows(9)).id == 4
    assert ids(table) == [1, 2, 3, 9]
    assert ids(table, snapshot_id=3) == [1, 2, 3]
    assert orphans(table) == 0


def test_nothing_to_do(table: Table) -> None:
    before = files(table)
    done = table.rollback(5)
    assert (done.snapshots, done.previous_snapshot, done.snapshot) == (0, 5, 5)
    assert files(table) == before


def test_bad_targets(table: Table, make_table: MakeTable) -> None:
    with pytest.raises(InputError, match="either the snapshot or the tag"):
        table.rollback()
    with pytest.raises(InputError, match="either the snapshot or the tag"):
        table.rollback(1, tag="x")
    with pytest.raises(SnapshotNotFoundError, match="there is no snapshot 6"):
        table.rollback(6)
    with pytest.raises(TagNotFoundError):
        table.rollback(tag="x")
    with pytest.raises(SnapshotNotFoundError):
        make_table("empty").rollback(1)
    assert ids(table) == [1, 2, 3, 4, 5]


def test_tags_beyond_go_as_in_paimon(table: Table) -> None:
    for number in (2, 4, 5):
        table.create_tag(f"t{number}", number)
    done = table.rollback(tag="t2")
    assert done.tags == ("t4", "t5")
    assert [tag.name for tag in table.tags()] == ["t2"]
    assert ids(table) == ids(table, tag="t2") == [1, 2]
    assert orphans(table) == 0


def test_a_tag_whose_snapshot_has_expired(table: Table) -> None:
    table.create_tag("old", 2)
    table.create_tag("newer", 3)
    expire_snapshots(table, retain_max=1, retain_min=1, older_than_millis=2**62)
    assert [snapshot.id for snapshot in table.snapshots()] == [5]
    table.rollback(tag="old")
    assert [snapshot.id for snapshot in table.snapshots()] == [2]
    assert (Path(table.location) / "snapshot" / "EARLIEST").read_text() == "2"
    assert ids(table) == [1, 2]
    assert [tag.name for tag in table.tags()] == ["old"]
    assert orphans(table) == 0
    assert table.append(make_rows(7)).id == 3
    assert ids(table) == [1, 2, 7]


def test_a_tag_of_a_number_that_was_given_again(table: Table) -> None:
    table.create_tag("three", 3)
    tag_file = Path(table.location) / "tag" / "tag-three"
    kept = tag_file.read_bytes()
    table.create_tag("hold", 1)
    lost = table.tag("three").snapshot
    tag_file.unlink()
    table.rollback(2)
    again = table.append(make_rows(33))
    assert again.id == 3
    assert again.uuid != lost.uuid
    # The tag of the former snapshot 3 comes back, with its file gone: nothing may mistake one for the other.
    tag_file.write_bytes(kept)
    assert table.snapshot(3) != table.tag("three").snapshot


def test_consumers_beyond_read_what_comes_next(table: Table) -> None:
    table.record_consumer("behind", 2)
    table.record_consumer("next", 4)
    table.record_consumer("beyond", 6)
    assert table.rollback(3).consumers == ("beyond",)
    assert table.consumers() == {"behind": 2, "next": 4, "beyond": 4}


def test_files_of_tags_and_compactions_stay(make_table: MakeTable, compact: Callable[[Table], None]) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    for number in range(3):
        table.append(make_rows(1, number + 2, v=str(number)))
    before = table.read().sort_by("id")
    compact(table)
    table.append(make_rows(1, v="late"))
    table.rollback(3)
    assert table.read().sort_by("id") == before
    assert orphans(table) == 0
    compact(table)
    assert table.read().sort_by("id") == before


def test_by_time(table: Table) -> None:
    snapshots = table.snapshots()
    last = max(snapshot.id for snapshot in snapshots if snapshot.time_millis <= snapshots[2].time_millis)
    assert snapshot_at(table, snapshots[2].time_millis).id == last
    with pytest.raises(SnapshotNotFoundError, match="no snapshot as old"):
        snapshot_at(table, snapshots[0].time_millis - 1)


def test_what_was_computed_from_a_removed_snapshot_is_refused(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    for number in range(1, 4):
        table.append(make_rows(number))
    messages = table.write(make_rows(1, v="b"))
    table.rollback(1)
    with pytest.raises(CommitConflictError, match="snapshot 3, which was rolled back"):
        table.commit(messages, base_snapshot_id=3)


def test_a_stream_commits_again_what_was_rolled_back(table: Table) -> None:
    first = table.commit(table.write(make_rows(10)), user="s", identifier=1)
    table.commit(table.write(make_rows(11)), user="s", identifier=2)
    table.rollback(first.id)
    assert ids(table) == [1, 2, 3, 4, 5, 10]
    again = table.commit(table.write(make_rows(11)), user="s", identifier=2)
    assert again.id == first.id + 1
    assert table.commit(table.write(make_rows(10)), user="s", identifier=1).id == again.id
    assert ids(table) == [1, 2, 3, 4, 5, 10, 11]


# --- at the same time, and killed -------------------------------------------------------------


class Interrupting(LocalFileSystem):
    """Calls `concurrently` once, right before or after the first change for which `when` is true."""

    def __init__(
        self, when: Callable[[str, str], bool], concurrently: Callable[[], None], *, after: bool = False
    ):
        self._when, self._concurrently, self._after = when, concurrently, after
        self.called = False

    def _step(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        due = not self.called and self._when(name, path)
        if due:
            self.called = True
        if due and not self._after:
            self._concurrently()
        result = call()
        if due and self._after:
            self._concurrently()
        return result

    def write_new(self, path: str, data: bytes) -> None:
        self._step("write_new", path, lambda: super(Interrupting, self).write_new(path, data))

    def write_atomic(self, path: str, data: bytes) -> None:
        self._step("write_atomic", path, lambda: super(Interrupting, self).write_atomic(path, data))

    def delete(self, path: str) -> bool:
        deleted: bool = self._step("delete", path, lambda: super(Interrupting, self).delete(path))
        return deleted


def through(table: Table, file_system: LocalFileSystem) -> Table:
    return Table(table.identifier, table.location, table.schema, TableContext(file_system))


def test_a_commit_that_was_held_up_lands_after_the_rollback(table: Table) -> None:
    """Its head, and all above it, go while it is about to create its snapshot."""
    held_up = Interrupting(
        lambda name, path: name == "write_new" and path.endswith("/snapshot-6"),
        lambda: table.rollback(2) and None,
    )
    snapshot = through(table, held_up).append(make_rows(6))
    assert held_up.called
    assert (snapshot.id, ids(table)) == (3, [1, 2, 6])
    assert [each.id for each in table.snapshots()] == [1, 2, 3]
    assert orphans(table) == 0


def test_a_held_up_commit_whose_number_was_given_again(table: Table) -> None:
    def concurrently() -> None:
        table.rollback(2)
        for number in (13, 14, 15):
            table.append(make_rows(number))

    held_up = Interrupting(lambda name, path: path.endswith("/snapshot-6"), concurrently)
    snapshot = through(table, held_up).append(make_rows(6))
    assert (snapshot.id, ids(table)) == (6, [1, 2, 6, 13, 14, 15])
    assert orphans(table) == 0


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("point", range(30))
def test_a_commit_at_any_step_of_a_rollback(table: Table, point: int, after: bool) -> None:
    """It is refused with the rollback, or lands after it; it never vanishes."""
    steps = iter(range(1000))
    landed = []
    rival = Interrupting(
        lambda name, path: next(steps) == point,
        lambda: landed.append(table.append(make_rows(99))),
        after=after,
    )
    try:
        through(table, rival).rollback(2)
    except CommitConflictError:
        assert ids(table) == [1, 2, 3, 4, 5, 99]
        assert table.rollback(2).snapshots == 4
        assert ids(table) == [1, 2]
        return
    assert ids(table) == ([1, 2, 99] if landed else [1, 2])
    numbers = [snapshot.id for snapshot in table.snapshots()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert table.append(make_rows(7)).id == numbers[-1] + 1
    assert orphans(table) == 0


class Killed(BaseException):
    """Nothing after this is done."""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("point", range(24))
def test_killed_at_any_step(table: Table, point: int, after: bool) -> None:
    table.create_tag("four", 4)
    steps = iter(range(1000))
    dead = []

    def kill() -> None:
        dead.append(True)
        raise Killed

    killing = Interrupting(lambda *_: bool(dead) or next(steps) == point, kill, after=after)
    with suppress(Killed):
        through(table, killing).rollback(2)
    assert ids(table) in ([1, 2, 3, 4, 5], [1, 2])
    for snapshot in table.snapshots():
        table.read(snapshot_id=snapshot.id)
    if ids(table) != [1, 2]:
        assert ids(table, tag="four") == [1, 2, 3, 4]
    table.rollback(2)
    assert ids(table) == [1, 2]
    assert [tag.name for tag in table.tags()] == []
    assert table.append(make_rows(8)).id == 3
    remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True)
    assert ids(table) == [1, 2, 8]


def test_writers_and_rollbacks_at_once(table: Table, catalog: Catalog) -> None:
    """Each commit that succeeded after the last rollback is there; the table is whole all the time."""
    errors: list[BaseException] = []
    committed: list[int] = []

    def write(start: int) -> None:
        own = catalog.load_table("db.t")
        try:
            for number in range(start, start + 12):
                own.append(make_rows(number))
                committed.append(number)
        except LockgateError as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(1000 * n,)) for n in (1, 2)]
    for writer in writers:
        writer.start()
    rollbacks = 0
    while any(writer.is_alive() for writer in writers):
        try:
            rollbacks += bool(table.rollback(3).snapshots)
        except CommitConflictError:
            continue
    for writer in writers:
        writer.join()
    assert not errors
    table.append(make_rows(5000))
    found = ids(table)
    # Writers may win against every rollback: then nothing was removed.
    before = {1, 2, 3} if rollbacks else {1, 2, 3, 4, 5}
    assert set(found) <= {*before, 5000, *committed}
    assert {1, 2, 3, 5000} <= set(found)
    for snapshot in table.snapshots():
        table.read(snapshot_id=snapshot.id)
    assert orphans(table) == 0
