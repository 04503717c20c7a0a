"""`clone`: a table with the same rows, files and schemas, which lives on by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    AlreadyExistsError,
    InputError,
    NamespaceNotFoundError,
    SnapshotNotFoundError,
    TableNotFoundError,
)
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn, DropColumn, RenameColumn
from lockgate.framework.store.history import table_clone as clone_module
from lockgate.framework.types import INT
from lockgate.procedures import ProcedureResult
from lockgate.pushdown import Comparison, Op

pytestmark = pytest.mark.usefixtures("without_lineage")
Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("p", pa.string()), ("id", pa.int64()), ("v", pa.string())])


def make(catalog: Catalog, keys: list[str], **options: str) -> Table:
    schema = Schema.from_arrow(SCHEMA, partition_keys=["p"], primary_keys=keys, options=options)
    table = catalog.create_table("db.t", schema)
    for version in ("x", "y"):
        table.append(rows(version))
    return table


def rows(version: str) -> pa.Table:
    found = [{"p": p, "id": number, "v": f"{version}{number}"} for p in "ab" for number in range(6)]
    return pa.Table.from_pylist(found, SCHEMA)


def content(table: Table) -> list[Any]:
    return sorted((tuple(row.values()) for row in table.read().to_pylist()), key=repr)


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ([], {}),
        ([], {"bucket": "2", "bucket-key": "id", "file.format": "parquet"}),
        ([], {"deletion-vectors.enabled": "true"}),
        (["p", "id"], {"bucket": "2"}),
        (["p", "id"], {"bucket": "-1", "file.format": "parquet"}),
        (["p", "id"], {"bucket": "1", "orc.encrypt": "pii:v"}),
        (["p", "id"], {"bucket": "1", "file-index.bloom-filter.columns": "v"}),
    ],
)
def test_a_clone_lives_by_itself(
    catalog: Catalog, run: Run, keys: list[str], options: dict[str, str]
) -> None:
    table = make(catalog, keys, **options)
    if keys or "deletion-vectors.enabled" in options:
        table.delete(Comparison(Op.EQ, ("id",), (pa.scalar(3),)))
    before = content(table)
    dry = run("clone", "db.t", "db.copy", dry_run=True).to_dicts()[0]
    assert not catalog.table_exists("db.copy")
    done = run("clone", table="db.t", target_table="db.copy").to_dicts()[0]
    assert done == {**dry, "snapshot_id": 1}
    assert done["copied_data_files_count"] == len(table.manifests.live_files(table.latest_snapshot()))
    assert done["copied_bytes"] > 0
    copy = catalog.load_table("db.copy")
    assert content(copy) == before
    assert copy.schema.options == table.schema.options
    catalog.drop_table("db.t")
    assert content(copy) == before
    copy.append(rows("z"))
    assert len(content(copy)) == (12 if keys else len(before) + 12)
    run("compact", "db.copy")
    assert len(content(copy)) == (12 if keys else len(before) + 12)
    orphans = run("remove_orphan_files", "db.copy", dry_run=True)
    assert orphans["deleted_data_files_count"] == 0


def test_files_are_read_by_the_schemas_of_the_source(catalog: Catalog, run: Run) -> None:
    make(catalog, [])
    changes = [DropColumn(("v",)), AddColumn(("v",), INT), RenameColumn(("id",), "number")]
    table = catalog.alter_table("db.t", changes)
    table.append(pa.table({"p": ["c"], "number": [1], "v": pa.array([5], pa.int32())}))
    run("clone", "db.t", "db.copy")
    copy = catalog.load_table("db.copy")
    assert content(copy) == content(table)
    assert copy.schema == table.schema
    altered = catalog.alter_table("db.copy", [AddColumn(("w",), INT)])
    assert altered.schema.highest_field_id == table.schema.highest_field_id + 1
    assert catalog.load_table("db.t").schema == table.schema


def test_partitions_and_branches(catalog: Catalog, run: Run) -> None:
    table = make(catalog, ["p", "id"], bucket="-1")
    assert run("clone", "db.t", "db.some", partitions="p=a")["rows"] == 12
    some = catalog.load_table("db.some")
    assert {row[0] for row in content(some)} == {"a"}
    some.append(rows("z"))
    assert len(content(some)) == 12
    table.create_branch("b", 1)
    run("clone", "db.t$branch_b", "db.old")
    assert {row[2][0] for row in content(catalog.load_table("db.old"))} == {"x"}
    with pytest.raises(InputError, match="create_branch"):
        run("clone", "db.t", "db.t$branch_c")


def test_an_empty_table(catalog: Catalog, run: Run) -> None:
    catalog.create_table("db.t", Schema.from_arrow(SCHEMA))
    assert run("clone", "db.t", "db.copy")["snapshot_id"] is None
    assert catalog.load_table("db.copy").read().num_rows == 0


def test_names_are_checked(catalog: Catalog, run: Run) -> None:
    make(catalog, [])
    with pytest.raises(AlreadyExistsError):
        run("clone", "db.t", "db.t")
    with pytest.raises(NamespaceNotFoundError):
        run("clone", "db.t", "nowhere.t")
    with pytest.raises(TableNotFoundError, match=r"db\.t"):
        run("clone", "db.tt", "db.copy")
    with pytest.raises(InputError, match="parallelism"):
        run("clone", "db.t", "db.copy", parallelism=-1)


def test_if_the_snapshot_expires_nothing_is_left(
    catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog, [])
    link, calls = clone_module.link_or_copy, [0]

    def late(*given: Any) -> None:
        calls[0] += 1
        if calls[0] == 3:
            raise FileNotFoundError(given[1])
        link(*given)

    monkeypatch.setattr(clone_module, "link_or_copy", late)
    with pytest.raises(SnapshotNotFoundError, match="expired while it was cloned"):
        run("clone", "db.t", "db.copy", parallelism=1)
    assert not catalog.table_exists("db.copy")
    assert not Path(catalog.location("db.copy")).exists()
    assert len(content(table)) == 24


def test_a_condition_chooses_partitions(catalog: Catalog, run: Run) -> None:
    source = make(catalog, ["p", "id"], bucket="1")
    assert run("clone", "db.t", "db.u", where="p = 'b'")["rows"] == 12
    assert content(catalog.load_table("db.u")) == [row for row in content(source) if row[0] == "b"]
    assert run("clone", "db.t", "db.v", partitions="p=a", where="p = 'b'")["rows"] == 0
    with pytest.raises(InputError, match="'v' is not a partition column"):
        run("clone", "db.t", "db.w", where="v = 'x'")
