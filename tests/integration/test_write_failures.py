"""Statements of Spark while the disk fails under the driver: all or nothing, and no file is left behind.

Tasks write through Hadoop; what the driver's Python changes (commits, manifests, schemas, what is deleted)
goes through a file system that fails at one operation, whichever it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from faults import LOST, REFUSED, FaultyFileSystem
from full_disk import fill, small_disk
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

    counting = FaultyFileSystem(of_changes=True)
    whole = start("whole")
    breaks(counting)
    spark.sql(whole)
    assert rows(spark, f"lake.{database}.whole") == after
    for how in (REFUSED, LOST):
        for point in points(counting.changes, how, every=every):
            table = f"{how}_{point}"
            broken = start(table)
            files = FaultyFileSystem(point, how, of_changes=True)
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
    counting = FaultyFileSystem(of_changes=True)
    breaks(counting)
    spark.sql(f"CREATE TABLE faulty.{database}.whole AS SELECT 1 AS id")
    for how in (REFUSED, LOST):
        for point in points(counting.changes, how, every=False):
            files = FaultyFileSystem(point, how, of_changes=True)
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


@pytest.fixture(scope="module")
def crowded(lake: Lake, key_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The disk of a catalog of the same name, with room for little."""
    with small_disk(tmp_path_factory.mktemp("disks") / "disk") as folder:
        keys = f"file:{key_file}"
        lockgate.connect(str(folder / "lake"), spark=lake.spark, catalog="crowded", keys=keys)
        lake.spark.sql("CREATE NAMESPACE crowded.db")
        yield folder


IN_TASKS = (
    r"StorageFullError: data file \S*/db\S*/t\S*/data-\S* cannot be written \(No space left on device\): "
    "nothing of the statement is visible; make room there, and run it again"
)
IN_DRIVER = r"/db\S*/t_\S*: no space is left there \(No space left on device\): free some, then do it again"
NOISE = "SELECT CAST(id + 100 AS INT) AS id, sha2(CAST(id AS STRING), 512) AS v FROM range(40000)"
# The options of the table, and a statement that needs more room than there is, or finds none.
CROWDED: dict[str, tuple[str, str]] = {
    "append": ("", f"INSERT INTO {{t}} {NOISE}"),
    "key": ("TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')", f"INSERT INTO {{t}} {NOISE}"),
    "parquet": ("TBLPROPERTIES ('file.format' = 'parquet')", f"INSERT INTO {{t}} {NOISE}"),
    "encrypted": ("TBLPROPERTIES ('orc.encrypt' = 'pii:v')", f"INSERT INTO {{t}} {NOISE}"),
    "buckets": ("PARTITIONED BY (p)", f"INSERT INTO {{t}} SELECT *, id % 20 FROM ({NOISE})"),
    "delete": ("", "DELETE FROM {t} WHERE id = 1"),
    "merge": (
        "",
        f"MERGE INTO {{t}} t USING ({NOISE}) s ON t.id = s.id - 99 "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
    ),
}


def held(spark: SparkSession, folder: Path) -> list[str]:
    """Return the files below a folder that the JVM has open."""
    jvm: Any = spark._jvm
    links = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/fd")
    found = []
    for link in links.iterdir():
        with suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return [target for target in found if target.startswith(str(folder))]


def files_of(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and ".lockgate" not in path.parts}


# The others take the same way.
QUICK = {"append", "parquet", "merge", "delete"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in CROWDED]
)
def test_a_statement_on_a_full_disk(spark: SparkSession, crowded: Path, name: str) -> None:
    """What was to be written where is named, nothing of it is visible, and no file stays open."""
    options, statement = CROWDED[name]
    table = f"crowded.db.t_{name}"
    column = ", p INT" if "PARTITIONED" in options else ""
    spark.sql(f"CREATE TABLE {table} (id INT, v STRING{column}) {options}")
    values = ", ".join(f"({number}, 'a'{', 1' if column else ''})" for number in (1, 2, 3))
    spark.sql(f"INSERT INTO {table} VALUES {values}")
    before, files = rows(spark, table), files_of(crowded)
    needs_room = NOISE in statement
    ballast = None if needs_room else fill(crowded)
    with pytest.raises(PySparkException, match=IN_TASKS if needs_room else IN_DRIVER):
        spark.sql(statement.format(t=table))
    if ballast is not None:
        ballast.unlink()
    # Other tasks of the statement may still be on their way to end.
    end = time.monotonic() + 60
    while (held(spark, crowded) or files_of(crowded) != files) and time.monotonic() < end:
        time.sleep(0.05)
    assert held(spark, crowded) == []
    assert files_of(crowded) == files
    assert rows(spark, table) == before
    spark.sql(f"DROP TABLE {table}")
