"""Branches: lines of their own over the same files, which expiry and cleaning of any line spare."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InputError,
    SnapshotNotFoundError,
    TableNotFoundError,
    TagNotFoundError,
)
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn, DropColumn
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import now_millis
from lockgate.framework.types import STRING

MakeTable = Callable[..., Table]
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def make_rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": ["a"] * len(ids)}, schema=SCHEMA)


def ids(table: Table, **at: Any) -> list[int]:
    return sorted(table.read(columns=["id"], **at)["id"].to_pylist())


def clean(table: Table) -> int:
    """Delete what nothing refers to, and return how many files that were."""
    done = remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True)
    return done.data_files + done.other_files


def expire(table: Table) -> None:
    expire_snapshots(table, retain_max=1, retain_min=1, older_than_millis=2**62)


@pytest.fixture
def table(make_table: MakeTable) -> Table:
    made = make_table()
    for number in (1, 2, 3):
        made.append(make_rows(number))
    return made


def test_lines_of_their_own(table: Table, catalog: Catalog) -> None:
    table.create_tag("two", 2)
    table.create_branch("dev", tag="two")
    table.create_branch("late", 3)
    table.create_branch("empty")
    assert table.branches() == ["dev", "empty", "late"]
    dev, late, empty = (catalog.load_table(f"db.t$branch_{name}") for name in ("dev", "late", "empty"))
    assert (ids(dev), ids(late), ids(empty)) == ([1, 2], [1, 2, 3], [])
    assert [tag.name for tag in dev.tags()] == ["two"]
    assert dev.append(make_rows(10)).id == 3
    assert empty.append(make_rows(20)).id == 1
    dev.create_tag("own")
    dev.record_consumer("reader", 3)
    assert (ids(dev), ids(late), ids(empty), ids(table)) == ([1, 2, 10], [1, 2, 3], [20], [1, 2, 3])
    assert ids(dev, snapshot_id=3) == ids(dev, tag="own") == [1, 2, 10]
    assert [tag.name for tag in table.tags()] == ["two"]
    assert table.consumers() == {}
    assert len({table.table_id, dev.table_id, late.table_id}) == 3
    assert catalog.table_exists("db.t$branch_dev")
    assert not catalog.table_exists("db.t$branch_nope")
    assert catalog.list_tables("db") == ["t"]


def test_schemas_of_their_own(table: Table, catalog: Catalog) -> None:
    table.create_branch("dev", 3)
    dev = catalog.alter_table("db.t$branch_dev", [AddColumn(("extra",), STRING)])
    assert catalog.load_table("db.t").schema.field_names == ("id", "v")
    dev.append(pa.table({"id": [4], "v": ["b"], "extra": ["x"]}))
    other = catalog.alter_table("db.t", [AddColumn(("other",), STRING)])
    other.append(pa.table({"id": [5], "v": ["b"], "other": ["y"]}))
    assert dev.read(columns=["id", "extra"]).sort_by("id")["extra"].to_pylist() == [None] * 3 + ["x"]
    for line in (table, dev):
        expire(line)
        assert clean(line) == 0
    assert ids(catalog.load_table("db.t$branch_dev")) == [1, 2, 3, 4]
    assert ids(catalog.load_table("db.t")) == [1, 2, 3, 5]


def test_expiry_and_cleaning_spare_other_lines(
    make_table: MakeTable, catalog: Catalog, compact: Callable[[Table], None]
) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    for number in (1, 2, 3):
        table.append(make_rows(number))
    table.create_branch("dev", 2)
    dev = catalog.load_table("db.t$branch_dev")
    dev.append(make_rows(10))
    compact(dev)
    expire(dev)
    clean(dev)
    assert ids(table) == [1, 2, 3]
    for number in (1, 2, 3):
        assert ids(table, snapshot_id=number) == list(range(1, number + 1))
    compact(table)
    expire(table)
    clean(table)
    assert (ids(table), ids(dev)) == ([1, 2, 3], [1, 2, 10])
    table.create_tag("t")
    table.append(make_rows(30))
    table.rollback(tag="t")
    dev.append(make_rows(11))
    dev.rollback(dev.snapshots()[0].id)
    assert (ids(table), ids(dev)) == ([1, 2, 3], [1, 2, 10])
    assert clean(table) == clean(dev) == 0


def test_a_branch_keeps_a_snapshot_that_expired(table: Table, catalog: Catalog) -> None:
    table.create_tag("one", 1)
    expire(table)
    table.create_branch("dev", tag="one")
    assert table.delete_tag("one").data_files == 0
    assert ids(catalog.load_table("db.t$branch_dev")) == [1]


def test_a_deleted_branch_releases_its_own_files(table: Table, catalog: Catalog) -> None:
    table.create_branch("dev", 2)
    dev = catalog.load_table("db.t$branch_dev")
    dev.append(make_rows(10))
    dev.append(make_rows(11))
    released = table.delete_branch("dev")
    assert (released.data_files, released.manifests) == (2, 6)
    assert table.branches() == []
    assert clean(table) == 0
    assert not (Path(table.location) / "branch" / "branch-dev").exists()
    with pytest.raises(TableNotFoundError, match="no branch 'dev'; the table has none"):
        catalog.load_table("db.t$branch_dev")
    with pytest.raises(TableNotFoundError):
        dev.append(make_rows(12))
    assert ids(table) == [1, 2, 3]
    table.create_branch("dev")
    assert ids(catalog.load_table("db.t$branch_dev")) == []


def test_a_renamed_branch_keeps_tags_and_consumers(table: Table, catalog: Catalog) -> None:
    table.create_branch("dev", 2)
    dev = catalog.load_table("db.t$branch_dev")
    dev.append(make_rows(10))
    dev.create_tag("own")
    dev.record_consumer("reader", 4)
    table.rename_branch("dev", "prod")
    prod = catalog.load_table("db.t$branch_prod")
    assert table.branches() == ["prod"]
    assert ids(prod) == ids(prod, tag="own") == [1, 2, 10]
    assert prod.consumers() == {"reader": 4}
    assert prod.append(make_rows(11)).id == 4
    table.create_branch("other")
    with pytest.raises(AlreadyExistsError):
        table.rename_branch("other", "prod")
    with pytest.raises(TableNotFoundError, match="did you mean 'prod'"):
        table.rename_branch("prdo", "x")


def test_fast_forward(table: Table, catalog: Catalog) -> None:
    table.create_branch("dev", 3)
    dev = catalog.alter_table("db.t$branch_dev", [AddColumn(("extra",), STRING)])
    for number in (4, 5):
        dev.append(pa.table({"id": [number], "v": ["b"], "extra": ["x"]}))
    dev.create_tag("release")
    assert table.fast_forward("dev") == 2
    main = catalog.load_table("db.t")
    assert main.schema == dev.schema
    assert main.snapshots()[2:] == dev.snapshots()
    assert ids(main) == ids(main, tag="release") == [1, 2, 3, 4, 5]
    assert main.fast_forward("dev") == 0
    main.append(pa.table({"id": [6], "v": ["b"], "extra": ["x"]}))
    assert ids(dev) == [1, 2, 3, 4, 5]


def test_a_table_that_went_on_does_not_go_forward(table: Table, catalog: Catalog) -> None:
    table.create_branch("dev", 3)
    dev = catalog.load_table("db.t$branch_dev")
    dev.append(make_rows(4))
    table.append(make_rows(9))
    with pytest.raises(
        CommitConflictError, match="snapshot 4 is not in the branch, which begins with snapshot 3"
    ):
        table.fast_forward("dev")
    assert ids(table) == [1, 2, 3, 9]
    table.rollback(3)
    assert table.fast_forward("dev") == 1
    assert ids(table) == [1, 2, 3, 4]


def test_bad_names_and_sources(table: Table, catalog: Catalog) -> None:
    for name in ("main", "12", "", "a/b", "a b", ".x", "a$b"):
        with pytest.raises(InputError, match="cannot be the name of a branch"):
            table.create_branch(name)
    with pytest.raises(InputError, match="either the snapshot"):
        table.create_branch("dev", 1, tag="x")
    with pytest.raises(SnapshotNotFoundError):
        table.create_branch("dev", 9)
    with pytest.raises(TagNotFoundError):
        table.create_branch("dev", tag="x")
    assert table.branches() == []
    table.create_branch("dev", 1)
    with pytest.raises(AlreadyExistsError, match="branch 'dev' already"):
        table.create_branch("dev")
    dev = catalog.load_table("db.t$branch_dev")
    with pytest.raises(InputError, match="is a branch"):
        dev.create_branch("more")
    with pytest.raises(InputError, match="use delete_branch"):
        catalog.drop_table("db.t$branch_dev")
    with pytest.raises(InputError, match="cannot be the name"):
        catalog.create_table("db.x$branch_dev", Schema.from_arrow(pa.schema([("id", pa.int64())])))
    with pytest.raises(TableNotFoundError, match="did you mean 'dev'"):
        catalog.load_table("db.t$branch_dve")
    assert (ids(table), ids(dev)) == ([1, 2, 3], [1])


class Dying(LocalFileSystem):
    """From the `point`-th change on, everything fails."""

    def __init__(self, point: int) -> None:
        self._left = point

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("write_new", "write_atomic", "delete", "delete_tree"):
            return found

        def step(*arguments: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise OSError("the disk is gone")
            return found(*arguments)

        return step


@pytest.mark.parametrize("what", ["create", "rename", "delete", "fast_forward"])
@pytest.mark.parametrize("point", range(8))
def test_killed_at_any_step(table: Table, catalog: Catalog, what: str, point: int) -> None:
    table.create_tag("two", 3)
    if what != "create":
        table.create_branch("dev", tag="two")
        for number in (4, 5):
            catalog.load_table("db.t$branch_dev").append(make_rows(number))
    dying = Table(table.identifier, table.location, table.schema, TableContext(Dying(point)))
    steps: dict[str, Callable[[], object]] = {
        "create": lambda: dying.create_branch("dev", tag="two"),
        "rename": lambda: dying.rename_branch("dev", "prod"),
        "delete": lambda: dying.delete_branch("dev"),
        "fast_forward": lambda: dying.fast_forward("dev"),
    }
    with suppress(OSError):
        steps[what]()
    clean(table)
    assert ids(table)[:3] == [1, 2, 3]
    rows = {"create": [1, 2, 3]}.get(what, [1, 2, 3, 4, 5])
    for name in table.branches():
        assert ids(catalog.load_table(f"db.t$branch_{name}")) == rows
    if what == "fast_forward":
        table.fast_forward("dev")
        assert ids(table) == rows
    elif what == "create" and table.branches() == []:
        with suppress(TableNotFoundError):
            table.delete_branch("dev")
        table.create_branch("dev", tag="two")
        assert ids(catalog.load_table("db.t$branch_dev")) == rows
    elif what == "delete":
        with suppress(TableNotFoundError):
            table.delete_branch("dev")
        clean(table)
        assert (table.branches(), ids(table)) == ([], [1, 2, 3])


def test_maintenance_reads_a_branch_that_has_parted_by_its_own_schemas(
    catalog: Catalog, make_table: MakeTable
) -> None:
    table = make_table()
    table.append(make_rows(1))
    table.create_tag("first")
    table.create_branch("b", tag="first")
    catalog.alter_table("db.t$branch_b", [AddColumn(("extra",), STRING), AddColumn(("more",), STRING)])
    catalog.alter_table("db.t", [DropColumn(("v",))])
    rows = pa.table({"id": [2], "v": ["b"], "extra": ["e"], "more": ["m"]})
    branch = catalog.load_table("db.t$branch_b")
    branch.append(rows)
    branch.append(rows)
    for number in range(10, 13):
        catalog.load_table("db.t").append(pa.table({"id": [number]}))

    assert expire_snapshots(catalog.load_table("db.t"), retain_max=1, retain_min=1).snapshots == 3
    assert expire_snapshots(catalog.load_table("db.t$branch_b"), retain_max=1, retain_min=1).snapshots == 2
    orphans = remove_orphan_files(
        catalog.load_table("db.t"), older_than_millis=now_millis(), allow_recent=True
    )
    assert (orphans.data_files, orphans.other_files) == (0, 0)
    catalog.load_table("db.t").delete_tag("first")
    assert ids(catalog.load_table("db.t")) == [1, 10, 11, 12]
    assert catalog.load_table("db.t$branch_b").read()["more"].to_pylist() == [None, "m", "m"]
    catalog.load_table("db.t").delete_branch("b")
    assert ids(catalog.load_table("db.t")) == [1, 10, 11, 12]
