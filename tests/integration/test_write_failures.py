"""Statements of Spark while the disk fails under the driver: all or nothing, and no file is left behind.

Tasks write through Hadoop; what the driver's Python changes (commits, manifests, schemas, what is deleted)
goes through a file system that fails at one operation, whichever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from faults import LOST, REFUSED, FaultyFileSystem
from pyspark.errors import PySparkException

import lockgate
from lockgate.framework.io import LocalFileSystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

KEY = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
ROWS = [(1, "a"), (2, "b")]
# The kind of table, the statement, and the rows afterwards.
STATEMENTS: dict[str, tuple[str, str, list[tuple[int, str]]]] = {
    "append": ("", "INSERT INTO {t} VALUES (3, 'c')", [*ROWS, (3, "c")]),
    "overwrite": ("", "INSERT OVERWRITE {t} VALUES (3, 'c')", [(3, "c")]),
    "upsert": (KEY, "INSERT INTO {t} VALUES (2, 'c')", [(1, "a"), (2, "c")]),
    "delete": ("", "DELETE FROM {t} WHERE id = 1", [(2, "b")]),
    "update": ("", "UPDATE {t} SET v = 'c' WHERE id = 2", [(1, "a"), (2, "c")]),
    "delete by key": (KEY, "DELETE FROM {t} WHERE id = 1", [(2, "b")]),
    "merge": (
        KEY,
        "MERGE INTO {t} t USING (SELECT 2 AS id, 'c' AS v) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        [(1, "a"), (2, "c")],
    ),
    "replace": ("", "CREATE OR REPLACE TABLE {t} AS SELECT id + 1 AS id, v FROM {t}", [(2, "a"), (3, "b")]),
}


@pytest.fixture(scope="module")
def faulty(lake: Lake, lake_folder: Path) -> Lake:
    """The same warehouse as another catalog, whose disk may fail."""
    return lockgate.connect(str(lake_folder / "warehouse"), spark=lake.spark, catalog="faulty")


@pytest.fixture
def breaks(faulty: Lake) -> Iterator[Callable[[FaultyFileSystem], None]]:
    """A function that puts a disk under the catalog `faulty`."""

    def put(files: FaultyFileSystem) -> None:
        faulty.catalog.file_system = files

    yield put
    faulty.catalog.file_system = LocalFileSystem()


def rows(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).collect())


def orphans(table: Table) -> set[str]:
    named = {
        entry.file.file_name
        for snapshot in table.snapshots()
        for entry in table.manifests.live_files(snapshot)
    }
    return {path.name for path in Path(table.location).rglob("data-*")} - named


def points(changes: set[int], how: str, *, every: bool) -> list[int]:
    """All changes of a statement, or the one that gives a snapshot its name and, if refused, one half way."""
    found = sorted(changes)
    if every:
        return found
    # The hint comes last, and is nobody's loss.
    return [found[-2]] if how == LOST else [found[len(found) // 2], found[-2]]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_whose_disk_fails(
    spark: SparkSession,
    lake: Lake,
    database: str,
    breaks: Callable[[FaultyFileSystem], None],
    name: str,
    every: bool,
) -> None:
    properties, statement, after = STATEMENTS[name]

    def start(table: str) -> str:
        spark.sql(f"CREATE TABLE lake.{database}.{table} (id INT, v STRING) {properties}")
        spark.sql(f"INSERT INTO lake.{database}.{table} SELECT * FROM VALUES (1, 'a'), (2, 'b')")
        return statement.format(t=f"faulty.{database}.{table}")

    counting = FaultyFileSystem()
    whole = start("whole")
    breaks(counting)
    spark.sql(whole)
    assert rows(spark, f"lake.{database}.whole") == after
    for how in (REFUSED, LOST):
        for point in points(counting.changes, how, every=every):
            table = f"{how}_{point}"
            broken = start(table)
            files = FaultyFileSystem(point, how)
            breaks(files)
            error = ""
            try:
                spark.sql(broken)
            except PySparkException as raised:
                error = str(raised)
            assert not error or "the disk is gone" in error
            assert files.failed
            found = rows(spark, f"lake.{database}.{table}")
            stored = lake.catalog.load_table(f"{database}.{table}")
            assert found in (ROWS, after) if error else found == after
            assert orphans(stored) == set()
            # Anyone who comes next can work.
            spark.sql(f"INSERT INTO lake.{database}.{table} VALUES (9, 'z')")
            assert len(rows(spark, f"lake.{database}.{table}")) == len(found) + 1


def test_creating_from_a_query(
    spark: SparkSession, lake: Lake, database: str, breaks: Callable[[FaultyFileSystem], None]
) -> None:
    counting = FaultyFileSystem()
    breaks(counting)
    spark.sql(f"CREATE TABLE faulty.{database}.whole AS SELECT 1 AS id")
    for how in (REFUSED, LOST):
        for point in points(counting.changes, how, every=False):
            files = FaultyFileSystem(point, how)
            breaks(files)
            name = f"{database}.{how}_{point}"
            try:
                spark.sql(f"CREATE TABLE faulty.{name} AS SELECT 1 AS id")
            except PySparkException:
                # Not there, or empty where the disk failed at dropping it; never in part.
                if lake.catalog.table_exists(name):
                    stored = lake.catalog.load_table(name)
                    assert stored.read().num_rows in (0, 1)
                    assert orphans(stored) == set()
                    lake.catalog.drop_table(name)
                spark.sql(f"CREATE TABLE lake.{name} AS SELECT 1 AS id")
            assert files.failed
            assert rows(spark, f"lake.{name}") == [(1,)]
