"""Paimon's system tables in Spark, compared with what Paimon's own core shows of the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from exact_rows import exact_rows, in_order
from tracked_rows import ROWS, tracked_table
from zoo import expected, unpack

from lockgate.errors import LockgateError
from lockgate.framework.store import Catalog
from lockgate.framework.store.system.system_tables import METADATA_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Deletions, updates, rows alone with their key, partitions, vectors, engines that compose rows, row ids.
SHOWN = (
    *("rowkind_field", "changelog_none", "fixed_orc", "dynamic_partitioned", "dv_append_64", "dv_mor"),
    *("retract_sum", "partial_agg", "row_tracking", "overwrite_append"),
)
LAKE = "system_lake"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("zoo"))


@pytest.fixture(scope="module")
def zoo(spark: SparkSession, folder: Path) -> str:
    import lockgate

    lockgate.connect(str(folder), spark=spark, catalog=LAKE)
    return f"{LAKE}.zoo"


@pytest.mark.parametrize("name", SHOWN)
def test_rows_are_shown_as_paimon_shows_them(spark: SparkSession, zoo: str, name: str) -> None:
    for suffix in ("ro", "audit_log", "binlog", "row_tracking"):
        truth = expected()[name]["system"].get(suffix)
        if truth is not None:
            found = spark.sql(f"SELECT * FROM {zoo}.`{name}${suffix}`")
            assert in_order(exact_rows(found.toArrow())) == in_order(truth["rows"]), suffix
            assert found.count() == len(truth["rows"]), suffix


@pytest.mark.parametrize("name", ["dv_append_64", "dynamic_partitioned", "row_tracking"])
def test_metadata_is_what_python_shows(spark: SparkSession, folder: Path, zoo: str, name: str) -> None:
    table = Catalog(folder).load_table(f"zoo.{name}")
    for suffix in sorted(METADATA_TABLES):
        found = spark.table(f"{zoo}.{name}.{suffix}").toArrow()
        assert found.column_names == table.system(suffix).column_names
        assert exact_rows(found) == exact_rows(table.system(suffix)), suffix


@pytest.mark.parametrize("name", ["dv_append_64", "dynamic_partitioned", "row_tracking"])
def test_tasks_read_the_pages_of_many_rows(
    spark: SparkSession, folder: Path, zoo: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockgate.framework.spark.operations.system_operations._FEW_ROWS", 0)
    monkeypatch.setattr("lockgate.framework.spark.operations.system_operations._PAGE_ROWS", 3)
    monkeypatch.setattr("lockgate.framework.store.system.row_batches.BATCH_ROWS", 2)
    table = Catalog(folder).load_table(f"zoo.{name}")
    for suffix in sorted(METADATA_TABLES):
        truth = table.system(suffix)
        found = spark.table(f"{zoo}.{name}.{suffix}")
        assert exact_rows(found.toArrow()) == exact_rows(truth), suffix
        assert found.count() == truth.num_rows, suffix
        plan = str(found._jdf.queryExecution().executedPlan().toString())
        assert ("BatchScan" in plan) == (truth.num_rows > 0), plan
    files = spark.sql(f"SELECT level + 1 AS up, file_path FROM {zoo}.{name}.files WHERE record_count > 0")
    assert {row.file_path for row in files.collect()} == set(table.system("files")["file_path"].to_pylist())


def test_a_state_can_be_named(spark: SparkSession, folder: Path, zoo: str) -> None:
    older = Catalog(folder).load_table("zoo.fixed_orc").system("files", snapshot_id=1)
    travelled = spark.sql(f"SELECT * FROM {zoo}.`fixed_orc$files` VERSION AS OF 1").toArrow()
    optioned = spark.read.option("scan.snapshot-id", 1).table(f"{zoo}.fixed_orc.files").toArrow()
    assert exact_rows(travelled) == exact_rows(optioned) == exact_rows(older)
    rows = expected()["fixed_orc"]["snapshots"]["001"]["rows"]
    audit = spark.read.option("scan.snapshot-id", 1).table(f"{zoo}.fixed_orc.audit_log").drop("rowkind")
    assert in_order(exact_rows(audit.toArrow())) == in_order(rows)


def test_partitions_come_from_a_branch(spark: SparkSession, zoo: str) -> None:
    truth = expected()["fallback_branch"]
    table = f"{zoo}.fallback_branch"
    rows = exact_rows(spark.table(table).toArrow())
    assert in_order(rows) == in_order(truth["snapshots"][max(truth["snapshots"])]["rows"])
    assert spark.sql(f"SELECT v FROM {table} WHERE p = 2").collect() == [("branch",)]
    assert spark.sql(f"SELECT count(*) FROM {table}").collect() == [(len(rows),)]
    assert in_order(exact_rows(spark.table(f"{table}.ro").toArrow())) == in_order(rows)


def test_columns_and_filters_of_rows_with_their_kinds(spark: SparkSession, zoo: str) -> None:
    log = f"{zoo}.`rowkind_field$audit_log`"
    assert spark.sql(f"SELECT rowkind FROM {log} WHERE k = 1").collect() == [("-D",)]
    assert spark.sql(f"SELECT k FROM {log} WHERE rowkind = '+I' AND k > 0").collect() == [(2,)]
    assert spark.sql(f"SELECT count(*), max(k) FROM {log}").collect() == [(2, 2)]
    assert spark.sql(f"SELECT k FROM {log} ORDER BY k DESC LIMIT 1").collect() == [(2,)]
    binlog = f"{zoo}.`rowkind_field$binlog`"
    assert spark.sql(f"SELECT k[0] FROM {binlog} WHERE rowkind = '-D'").collect() == [(1,)]
    ids = f"{zoo}.`row_tracking$row_tracking`"
    assert spark.sql(f"SELECT k FROM {ids} WHERE _ROW_ID = 1").collect() == [(2,)]
    assert spark.sql(f"SELECT max(_ROW_ID), max(_SEQUENCE_NUMBER) FROM {ids}").collect() == [(2, 2)]


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_rows_keep_their_ids(spark: SparkSession, folder: Path, zoo: str, form: str) -> None:
    tracked_table(Catalog(folder), form, f"zoo.tracked_{form}")
    table = f"{zoo}.tracked_{form}"
    assert sorted(map(tuple, spark.table(table).collect())) == [row[:2] for row in ROWS]
    assert sorted(map(tuple, spark.table(f"{table}.row_tracking").collect())) == ROWS
    moved = spark.sql(f"SELECT _SEQUENCE_NUMBER FROM {table}.row_tracking WHERE _ROW_ID = 1 AND k > 1")
    assert moved.collect() == [(2,)]


def test_the_warehouse_says_what_it_holds(spark: SparkSession, zoo: str) -> None:
    tables = spark.sql(f"SELECT table_name, file_count FROM {LAKE}.sys.tables").collect()
    assert dict(map(tuple, tables))["fixed_orc"] == len(expected()["fixed_orc"]["system"]["files"]["rows"])
    names = {row.tableName for row in spark.sql(f"SHOW TABLES IN {LAKE}.sys").collect()}
    lineage = {"lineage_edges", "lineage_processes", "lineage_runs"}
    assert names == {
        "access_requests",
        "all_table_options",
        "catalog_options",
        "partitions",
        "tables",
        *lineage,
    }
    options = f"SELECT value FROM {LAKE}.sys.all_table_options WHERE key = 'bucket' AND table_name ="
    assert spark.sql(f"{options} 'fixed_orc'").collect() == [("2",)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO {0}.`fixed_orc$audit_log` SELECT '+I', 1, 'a'", "(?i)append|system table"),
        ("DELETE FROM {0}.`fixed_orc$ro` WHERE k = 1", "system table"),
        ("SELECT * FROM {0}.`fixed_orc$row_tracking`", r"row-tracking\.enabled"),
        ("SELECT * FROM {0}.fixed_orc.snapshot", "did you mean 'snapshots'"),
        ("SELECT * FROM {0}.no_table.snapshots", "is neither"),
    ],
)
def test_what_is_refused_says_so(spark: SparkSession, zoo: str, statement: str, message: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises((PySparkException, LockgateError), match=message):
        spark.sql(statement.format(zoo)).collect()
