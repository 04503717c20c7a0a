"""Bounds of columns in whole manifests: scans open only those that may list a match."""

from __future__ import annotations

import datetime
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bounded_table import OPTIONS, START, check, fill, make, opened, plan, rows
from indexed_table import call

from lockgate.errors import OptionError
from lockgate.framework.index.database.bounds import FILE_KIND, bounds_in
from lockgate.framework.index.database.index_segments import segment_entries
from lockgate.framework.index.database.maintenance import BuildIndex, DropIndex
from lockgate.framework.keys import create_key_file
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    ChangeType,
    DropColumn,
    RemoveOption,
    RenameColumn,
    SetOption,
)
from lockgate.framework.store.manifests import manifest_files
from lockgate.framework.store.manifests.index_manifest import index_path
from lockgate.framework.types import parse_type
from lockgate.procedures import ProcedureContext
from lockgate.procedures import call as call_procedure
from lockgate.pushdown import all_of, any_of, col


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of manifests that are parsed, none of which is kept."""
    names: list[str] = []
    parsed = manifest_files.ManifestFiles._parsed

    def spied(self: Any, name: str, *more: Any) -> Any:
        names.append(name)
        return parsed(self, name, *more)

    monkeypatch.setattr(manifest_files.ManifestFiles, "_parsed", spied)
    for cache in ("_manifests", "_snapshots"):
        monkeypatch.setattr(manifest_files, cache, manifest_files.ParsedCache(0))
    return names


def test_only_manifests_that_may_match_are_opened(catalog: Catalog, reads: list[str]) -> None:
    table = make(catalog)
    fill(table, 12)
    for predicate in (
        col("at") == START + datetime.timedelta(hours=32),
        (col("size") >= 30) & (col("size") < 35),
        col("size").isin([31, 500]),
        col("name") == "name-0032",
        any_of(col("size") == 32, col("name") == "name-0034"),
    ):
        reads.clear()
        planned = plan(table, predicate)
        assert sum(name.startswith("manifest-") and "list" not in name for name in reads) == 1
        assert sum(len(split.files) for split in planned.splits) == 1
        assert opened(table, predicate) == 1
        check(table, predicate)
    assert opened(table, col("size") < 0) == 0
    assert opened(table, col("size").is_null()) == 12
    assert opened(table, any_of(col("size") == 1, col("day") == 1)) == 12
    assert opened(table, ~(col("size") == 1)) == 12
    assert table.read(predicate=col("size") < 0).num_rows == 0


def test_the_report_counts_skipped_manifests(catalog: Catalog) -> None:
    table = make(catalog, partition_keys=["day"])
    fill(table, 6)
    whole = plan(table, col("size").is_not_null()).report.total
    report = plan(table, col("size") == 11).report
    assert report.steps[0].name == "manifests"
    assert report.total == whole
    assert (report.total.files, report.total.partitions, report.total.rows) == (6, 3, 30)
    assert (report.steps[0].after.files, report.kept.files) == (1, 1)
    assert "(1 of 6 opened)" in str(report)


def test_bounds_combine_partition_columns_and_others(catalog: Catalog) -> None:
    table = make(catalog, partition_keys=["day"])
    fill(table, 6)
    assert opened(table, col("day") == 1) == 2
    assert opened(table, all_of(col("day") == 1, col("size") < 15)) == 1
    assert opened(table, any_of(all_of(col("day") == 1, col("size") < 15), col("size") == 25)) == 2
    assert opened(table, col("day").is_null()) == 0
    check(table, all_of(col("day") == 1, col("size") < 15))


def test_merged_manifests_have_bounds_at_once(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "manifest.merge-min-count": "4"})
    fill(table, 12)
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    told = bounds_in(table, snapshot.index_manifest)
    assert told is not None
    assert {each.name for each in told.manifests} == {
        meta.file_name for meta in table.manifests.manifests(snapshot)
    }
    call_procedure(ProcedureContext(catalog), "compact_manifest", table="db.t")
    assert opened(table, col("size") > 1000) == 0
    check(table, col("size") == 8)


def test_deletions_are_always_seen(catalog: Catalog) -> None:
    table = make(catalog, partition_keys=["day"])
    fill(table, 6)
    table.overwrite(rows(9), partition={"day": 0})
    fill(table, 3)
    where = "day = 1"
    call_procedure(
        ProcedureContext(catalog), "compact", "db.t", order_strategy="order", order_by="at", where=where
    )
    table.append(rows(12))
    assert opened(table, col("size") == 6) < table_manifests(table)
    for value in (0, 2, 6, 12, 13, 46):
        check(table, col("size") == value)
        check(table, col("name") == f"name-{value:04}")
    whole, part = plan(table, col("at").is_not_null()).report, plan(table, col("size") == 6).report
    assert part.total == whole.total


def test_deletion_vectors(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "deletion-vectors.enabled": "true"})
    fill(table, 4)
    table.delete(col("size") == 12)
    assert opened(table, col("size") == 1) == 1
    for value in (1, 12, 13):
        check(table, col("size") == value)
    whole, part = plan(table, col("at").is_not_null()).report, plan(table, col("size") == 1).report
    assert part.total == whole.total


def table_manifests(table: Table) -> int:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return len(table.manifests.manifests(snapshot))


def test_key_tables_open_all_manifests(catalog: Catalog) -> None:
    table = make(catalog, primary_keys=["name"])
    fill(table, 3)
    table.append(rows(0).set_column(1, "size", pa.array([900] * 5, pa.int32())))
    assert opened(table, col("size") == 1) == 4
    check(table, col("size") == 1)


def test_manifests_of_other_engines_are_opened_until_they_have_bounds(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 3)
    plain = catalog.alter_table("db.t", [SetOption("index.write.enabled", "false")])
    plain.append(rows(3))
    plain.append(rows(4))
    assert opened(plain, col("size") == 1) == 3
    check(plain, col("size") == 16)
    table = catalog.alter_table("db.t", [RemoveOption("index.write.enabled")])
    assert call(BuildIndex(), catalog) == (0, 5, 0, 0)
    assert opened(table, col("size") == 1) == 1
    assert call(BuildIndex(), catalog) == (0, 5, 0, 0)
    check(table, col("size") == 16)


def test_a_table_that_gets_the_option_later(catalog: Catalog) -> None:
    table = make(catalog, {"manifest.merge-min-count": "100"})
    fill(table, 4)
    table = catalog.alter_table("db.t", [SetOption("index.bounds.columns", "auto")])
    assert opened(table, col("size") == 1) == 4
    table.append(rows(4))
    assert opened(table, col("size") == 1) == 1
    assert opened(table, col("name") == "name-0001") == 5, "auto takes no texts"
    table = catalog.alter_table("db.t", [SetOption("index.bounds.columns", "auto,name")])
    call(BuildIndex(), catalog)
    assert opened(table, col("name") == "name-0001") == 1


def test_columns_are_found_by_their_ids(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 3)
    changes = [
        RenameColumn(("size",), "bytes"),
        ChangeType(("bytes",), parse_type("BIGINT")),
        DropColumn(("name",)),
        AddColumn(("size",), parse_type("INT")),
        AddColumn(("name",), parse_type("STRING")),
        SetOption("index.bounds.columns", "at,bytes,name,size"),
    ]
    table = catalog.alter_table("db.t", changes)
    assert opened(table, col("bytes") == 6) == 1
    assert opened(table, col("name") == "name-0001") == 3, "the old column's bounds are not the new one's"
    assert table.read(predicate=col("size").is_null()).num_rows == 15
    assert table.read(predicate=col("name").is_null()).num_rows == 15
    new = pa.table(
        {
            "at": [START],
            "bytes": pa.array([2**40], pa.int64()),
            "day": pa.array([0], pa.int32()),
            "size": pa.array([1], pa.int32()),
            "name": ["new"],
        },
        schema=table.schema.arrow_schema,
    )
    table.append(new)
    assert opened(table, col("bytes") == 2**40) == 1
    assert opened(table, col("name") == "new") == 1, "files without the column hold nulls alone"
    for predicate in (col("bytes") == 2**40, col("name") == "new", col("size").is_null(), col("bytes") == 6):
        check(table, predicate)
    assert plan(table, col("size") == 6, snapshot_id=3).report.kept.files == 1


def test_old_snapshots_and_branches_have_their_own(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 5)
    assert opened(table, col("size") == 1, snapshot_id=3) == 1
    assert plan(table, col("size") == 21, snapshot_id=3).report.kept.files == 0
    table.create_branch("b", 3)
    branch = catalog.load_table("db.t$branch_b")
    branch.append(rows(9))
    assert opened(branch, col("size") == 46) == 1
    check(branch, col("size") == 46)
    table.rollback(snapshot_id=4)
    assert opened(table, col("size") == 1) == 1
    table.append(rows(7))
    check(table, col("size") == 36)
    check(table, col("size") == 21)


def test_removing_the_option_removes_the_bounds(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "index.values.columns": "name"})
    fill(table, 3)
    table = catalog.alter_table("db.t", [SetOption("index.bounds.columns", "at")])
    call(DropIndex(), catalog, columns=["size"])
    table.append(rows(3))
    assert opened(table, col("size") == 1) == 4
    assert opened(table, col("at") == START) == 1
    table = catalog.alter_table("db.t", [RemoveOption("index.bounds.columns")])
    call(DropIndex(), catalog)
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert not segment_entries(table, snapshot.index_manifest, FILE_KIND)
    check(table, col("size") == 1)


def test_what_cannot_have_bounds_is_refused(catalog: Catalog) -> None:
    for name, kind in (("f", pa.float64()), ("b", pa.bool_()), ("n", pa.list_(pa.int32()))):
        schema = Schema.from_arrow(pa.schema([(name, kind)]), options={"index.bounds.columns": name})
        with pytest.raises(OptionError, match=r"index\.bounds\.columns"):
            catalog.create_table("db.t", schema)


def test_no_bounds_of_encrypted_columns(tmp_path: Path) -> None:
    create_key_file(str(tmp_path / "keys.json"), ["pii"])
    catalog = Catalog(tmp_path / "lake", keys=f"file:{tmp_path}/keys.json")
    catalog.create_namespace("db")
    secret = {"orc.encrypt": "pii:name", "orc.mask": "nullify:name"}
    with pytest.raises(OptionError, match="encrypted"):
        make(catalog, {**OPTIONS, **secret})
    table = make(catalog)
    fill(table, 3)
    changes = [SetOption(key, value) for key, value in secret.items()]
    with pytest.raises(OptionError, match="encrypted"):
        catalog.alter_table("db.t", changes)
    table = catalog.alter_table("db.t", [*changes, SetOption("index.bounds.columns", "auto,at")])
    assert opened(table, col("name") == "name-0001") == 3, "not even the old bounds are used"
    table.append(rows(3))
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    (entry,) = segment_entries(table, snapshot.index_manifest, FILE_KIND)
    text = zlib.decompress(table.file_system.read_bytes(index_path(table, entry))[12:]).decode()
    assert "name-0" not in text
    assert opened(table, col("size") == 1) == 1
    assert opened(table, col("name") == "name-0001") == 4
