"""Tables replaced in place: one commit, older snapshots kept, nothing seen in between, whatever fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import CommitConflictError, InputError, OptionError
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn, SetOption
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.metadata.generations import GENERATION
from lockgate.framework.store.scan.snapshot_selection import Between
from lockgate.framework.store.tables.replace import Replacement
from lockgate.framework.types import INT

OLD = pa.schema([("id", pa.int32()), ("v", pa.int64())])
NEW = pa.schema([("v", pa.string()), ("w", pa.int32())])
OLD_ROWS = pa.table({"id": [1, 2], "v": [10, 20]}).cast(OLD)
NEW_ROWS = pa.table({"v": ["a"], "w": [7]}).cast(NEW)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog(str(tmp_path))
    made.create_namespace("db")
    return made


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """A table with the rows `OLD_ROWS`."""
    made = catalog.create_table("db.t", Schema.from_arrow(OLD))
    made.append(OLD_ROWS)
    return made


def prepared(catalog: Catalog, rows: pa.Table = NEW_ROWS, **layout: Any) -> Replacement:
    made = catalog.replace_table("db.t", Schema.from_arrow(rows.schema, **layout))
    made.hold(made.write(rows))
    return made


def state(catalog: Catalog) -> tuple[list[str], list[dict[str, Any]]]:
    table = catalog.load_table("db.t")
    return list(table.schema.field_names), table.read().to_pylist()


def test_old_snapshots_keep_their_columns(catalog: Catalog, table: Table) -> None:
    made = prepared(catalog)
    assert state(catalog) == (["id", "v"], OLD_ROWS.to_pylist())
    snapshot = made.publish()
    assert (snapshot.id, snapshot.commit_kind, snapshot.schema_id) == (2, "OVERWRITE", 1)
    assert snapshot.total_record_count == 1
    assert state(catalog) == (["v", "w"], NEW_ROWS.to_pylist())
    again = catalog.load_table("db.t")
    assert again.table_id == table.table_id
    assert again.read(snapshot_id=1).to_pylist() == OLD_ROWS.to_pylist()
    again.append(NEW_ROWS)
    assert catalog.load_table("db.t").read().num_rows == 2


def test_no_rows_and_a_table_without_snapshots(catalog: Catalog) -> None:
    catalog.create_table("db.t", Schema.from_arrow(OLD))
    assert prepared(catalog).publish().id == 1
    assert state(catalog) == (["v", "w"], NEW_ROWS.to_pylist())
    assert catalog.replace_table("db.t", Schema.from_arrow(OLD)).publish().id == 2
    assert state(catalog) == (["id", "v"], [])


@pytest.mark.parametrize("key", [["v"], ["w", "v"], []])
def test_other_keys_and_buckets(
    catalog: Catalog, key: list[str], compact: Callable[[Table], None], tmp_path: Path
) -> None:
    catalog.create_table("db.t", Schema.from_arrow(OLD, primary_keys=["id"], options={"bucket": "2"}))
    catalog.load_table("db.t").append(OLD_ROWS)
    catalog.load_table("db.t").append(OLD_ROWS)
    options = {"bucket": "3"} if key else {}
    prepared(catalog, primary_keys=key, options=options).publish()
    table = Catalog(str(tmp_path)).load_table("db.t")
    assert table.read().to_pylist() == NEW_ROWS.to_pylist()
    assert table.read(snapshot_id=2).num_rows == 2
    table.append(NEW_ROWS)
    if key:
        compact(table)
    assert catalog.load_table("db.t").read().num_rows == (1 if key else 2)
    files = len(list(tmp_path.rglob("data-*.orc")))
    expired = expire_snapshots(table, retain_max=1, retain_min=1)
    assert expired.data_files > 0
    assert len(list(tmp_path.rglob("data-*.orc"))) == files - expired.data_files
    assert remove_orphan_files(table, dry_run=True, allow_recent=True).data_files == 0
    assert catalog.load_table("db.t").read().num_rows == (1 if key else 2)


@pytest.mark.parametrize(
    ("before", "after"), [(["v"], ["v"]), (["v"], []), ([], ["w"]), (["id"], ["w"]), (["v", "id"], ["w"])]
)
def test_other_partitions(catalog: Catalog, before: list[str], after: list[str], tmp_path: Path) -> None:
    old = pa.table({"id": [1, 2], "v": [10, None], "x": ["p", "q"]})
    catalog.create_table("db.t", Schema.from_arrow(old.schema, partition_keys=before)).append(old)
    catalog.load_table("db.t").append(old)
    rows = pa.table({"v": ["a", "b", "b"], "w": [7, 8, 8], "y": [1, 2, 3]})
    snapshot = prepared(catalog, rows, partition_keys=after).publish()
    assert snapshot.total_record_count == 3
    catalog.load_table("db.t").append(rows)
    table = Catalog(str(tmp_path)).load_table("db.t")
    assert table.read().num_rows == 6
    old_rows = table.read(snapshot_id=2).sort_by("id").to_pylist()
    assert old_rows == pa.concat_tables([old, old]).sort_by("id").to_pylist()
    assert remove_orphan_files(table, dry_run=True, allow_recent=True).data_files == 0
    before_expiry = len(list(tmp_path.rglob("data-*.orc")))
    removed = expire_snapshots(table, retain_max=1, retain_min=1)
    left = len(list(tmp_path.rglob("data-*.orc")))
    live = len(table.manifests.live_files(table.latest_snapshot()))
    assert (removed.data_files, left) == (before_expiry - live, live)
    assert Catalog(str(tmp_path)).load_table("db.t").read().num_rows == 6


def test_expiry_spares_what_tags_hold_of_other_partitions(catalog: Catalog, tmp_path: Path) -> None:
    old = pa.table({"id": [1, 2], "v": [10, 20]})
    catalog.create_table("db.t", Schema.from_arrow(old.schema, partition_keys=["v"])).append(old)
    catalog.load_table("db.t").create_tag("old")
    prepared(catalog).publish()
    catalog.load_table("db.t").append(NEW_ROWS)
    table = catalog.load_table("db.t")
    assert expire_snapshots(table, retain_max=1, retain_min=1).data_files == 0
    assert table.read(tag="old").num_rows == 2
    table.delete_tag("old")
    assert not list(tmp_path.rglob("v=*/bucket-0/*.orc"))
    assert table.read().num_rows == 2


def test_orphans_of_a_killed_replacement(catalog: Catalog, table: Table) -> None:
    rows = pa.table({"v": ["a"], "w": [7]})
    made = prepared(catalog, rows, partition_keys=["w"])
    catalog.alter_table("db.t", [AddColumn(("x",), INT)])
    with pytest.raises(CommitConflictError):
        made.publish()
    now = catalog.load_table("db.t")
    assert remove_orphan_files(now, dry_run=True, allow_recent=True).young_files > 0
    made.discard()
    assert len(list(Path(table.location).rglob("data-*.orc"))) == 1


def test_rows_are_never_read_by_columns_of_another_generation(catalog: Catalog, table: Table) -> None:
    table.append(OLD_ROWS)
    prepared(catalog).publish()
    new = catalog.load_table("db.t")
    for reading, snapshot_id in ((table, 3), (new, 2)):
        with pytest.raises(InputError, match="replaced in between"):
            reading.scan(snapshot_id=snapshot_id, own_schema=False)
    with pytest.raises(InputError, match="replaced in between"):
        new.scan(between=Between(1, 2))
    changes = list(new.changes(0, 3))
    assert [change.needs_reload for change in changes] == [True, True, True]
    assert [change.needs_reload for change in table.changes(1, 3)] == [False, True]


def test_writers_that_began_before(catalog: Catalog, table: Table) -> None:
    messages = table.write(OLD_ROWS)
    prepared(catalog).publish()
    with pytest.raises(CommitConflictError, match="replaced"):
        table.commit(messages)
    with pytest.raises(CommitConflictError, match="replaced"):
        table.overwrite(OLD_ROWS)
    assert state(catalog) == (["v", "w"], NEW_ROWS.to_pylist())


def test_altered_concurrently(catalog: Catalog, table: Table) -> None:
    made = prepared(catalog)
    catalog.alter_table("db.t", [AddColumn(("x",), INT)])
    with pytest.raises(CommitConflictError, match="altered"):
        made.publish()
    made.discard()
    assert state(catalog)[0] == ["id", "v", "x"]
    assert len(list(Path(table.location).rglob("data-*.orc"))) == 1


def test_two_replacements(catalog: Catalog, table: Table) -> None:
    first, second = prepared(catalog), prepared(catalog, OLD_ROWS)
    first.publish()
    with pytest.raises(CommitConflictError, match="replaced"):
        second.publish()
    assert state(catalog) == (["v", "w"], NEW_ROWS.to_pylist())


def test_rows_computed_from_a_state_that_changed(catalog: Catalog, table: Table) -> None:
    made = prepared(catalog)
    table.append(OLD_ROWS)
    with pytest.raises(CommitConflictError, match="repeat the statement"):
        made.publish(base_snapshot_id=1)
    assert state(catalog) == (["id", "v"], [*OLD_ROWS.to_pylist(), *OLD_ROWS.to_pylist()])
    # For engines that look at the newest schema file only.
    newest = table.schema_files.latest()
    assert newest is not None
    assert newest.field_names == ("id", "v")
    prepared(catalog).publish(base_snapshot_id=2)
    assert state(catalog) == (["v", "w"], NEW_ROWS.to_pylist())


def test_a_rollback_brings_the_columns_back(catalog: Catalog, table: Table) -> None:
    prepared(catalog).publish()
    catalog.alter_table("db.t", [SetOption("target-file-size", "1 mb")])
    catalog.load_table("db.t").rollback(1)
    assert state(catalog) == (["id", "v"], OLD_ROWS.to_pylist())
    catalog.load_table("db.t").append(OLD_ROWS)
    catalog.alter_table("db.t", [AddColumn(("x",), INT)])
    assert state(catalog)[0] == ["id", "v", "x"]
    prepared(catalog).publish()
    assert state(catalog) == (["v", "w"], NEW_ROWS.to_pylist())
    assert catalog.load_table("db.t").read(snapshot_id=1).num_rows == 2


def test_branches_and_tags_keep_theirs(catalog: Catalog, table: Table) -> None:
    table.create_tag("old")
    table.create_branch("b", 1)
    prepared(catalog).publish()
    new = catalog.load_table("db.t")
    assert new.read(tag="old").to_pylist() == OLD_ROWS.to_pylist()
    branch = catalog.load_table("db.t$branch_b")
    branch.append(OLD_ROWS)
    assert branch.read().num_rows == 4
    with pytest.raises(InputError, match="branch"):
        catalog.replace_table("db.t$branch_b", Schema.from_arrow(NEW))
    new.create_branch("c", 2)
    assert catalog.load_table("db.t$branch_c").read().to_pylist() == NEW_ROWS.to_pylist()


def test_nobody_else_sets_the_generation(catalog: Catalog, table: Table) -> None:
    with pytest.raises(OptionError, match="REPLACE TABLE"):
        catalog.alter_table("db.t", [SetOption(GENERATION, "1")])
    with pytest.raises(OptionError, match="REPLACE TABLE"):
        catalog.create_table("db.u", Schema.from_arrow(OLD, options={GENERATION: "1"}))


class Killed(BaseException):
    """The process is gone: nothing that follows runs."""


class DyingFileSystem(LocalFileSystem):
    """Dies at the `point`-th change of a file, before or after it is done."""

    def __init__(self, point: int, *, after: bool) -> None:
        self._left, self._after = point, after

    @property
    def died(self) -> bool:
        """Whether it has."""
        return self._left < 0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._dying(found) if name in ("write_new", "write_atomic", "delete") else found

    def _dying(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            if self._left < 0:
                raise Killed
            self._left -= 1
            if self._left < 0 and not self._after:
                raise Killed
            result = call(*arguments)
            if self._left < 0:
                raise Killed
            return result

        return step


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("point", range(7))
def test_killed_at_any_write(catalog: Catalog, table: Table, point: int, after: bool, tmp_path: Path) -> None:
    made = prepared(catalog)
    dying = DyingFileSystem(point, after=after)
    broken = Replacement.of(
        Table(table.identifier, table.location, table.schema, TableContext(dying)), made.schema
    )
    broken.hold(made.messages)
    with suppress(Killed):
        broken.publish()
    old, new = (["id", "v"], OLD_ROWS.to_pylist()), (["v", "w"], NEW_ROWS.to_pylist())
    found = state(Catalog(str(tmp_path)))
    assert found == (new if len(table.snapshots()) == 2 else old)
    assert dying.died or point == 6
    # Anyone who comes next finds a table that can be written, altered and replaced.
    after_it = Catalog(str(tmp_path)).load_table("db.t")
    after_it.append(OLD_ROWS if found == old else NEW_ROWS)
    altered = catalog.alter_table("db.t", [SetOption("target-file-size", "1 mb")])
    assert list(altered.schema.field_names) == found[0]
    newest = altered.schema_files.latest()
    assert newest is not None
    assert list(newest.field_names) == found[0]
    prepared(catalog).publish()
    assert state(catalog) == new
