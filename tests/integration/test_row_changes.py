"""DELETE, UPDATE and MERGE on key tables whose files overlap: the shortest cases, and the files they read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceReader

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.store.merge.merge import RowKind
from lockgate.framework.store.scan import table_scan
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.pushdown import AlwaysTrue, Predicate, col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

Named = Callable[[str], str]


def loaded(lake: Lake, name: str) -> Table:
    return lake.catalog.load_table(name.removeprefix("lake."))


STALE = {
    "update": "UPDATE {t} SET n = n + 1000 WHERE st = 'A'",
    "update with a subquery": "UPDATE {t} SET n = n + 1000 WHERE st IN (SELECT st FROM {t} WHERE id = 0)",
    "merge": "MERGE INTO {t} t USING (SELECT id FROM range(0, 30)) s ON t.id = s.id AND t.st = 'A' "
    "WHEN MATCHED THEN UPDATE SET n = t.n + 1000",
    "delete with a subquery": "DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE st = 'A')",
}


@pytest.mark.parametrize(
    ("statement", "sequence"),
    [*((statement, "") for statement in STALE), ("update", ", 'sequence.field' = 'q'")],
)
def test_changed_and_deleted_rows_stay_so(
    lake: Lake, spark: SparkSession, table: Named, statement: str, sequence: str
) -> None:
    """The newest version, or the deletion, lies in a small file that holds no key of those that match."""
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, st STRING, n INT, q INT) "
        f"TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '3'{sequence})"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 'A', CAST(id AS INT), 1 FROM range(0, 30, 1, 1)")
    store = loaded(lake, name)
    store.append(
        pa.table({"id": [27], "st": ["B"], "n": pa.array([270], pa.int32()), "q": pa.array([1], pa.int32())})
    )
    store.delete(pa.table({"id": [24]}))
    spark.sql(STALE[statement].format(t=name))
    found = {row["id"]: (row["st"], row["n"]) for row in loaded(lake, name).read().to_pylist()}
    untouched = {27: ("B", 270)}
    changed = (
        {} if "delete" in statement else {at: ("A", at + 1000) for at in range(30) if at not in (24, 27)}
    )
    assert found == changed | untouched


@pytest.mark.parametrize("statement", ["DELETE", "MERGE"])
def test_deletions_hold_what_they_take_away(
    lake: Lake, spark: SparkSession, table: Named, statement: str
) -> None:
    """The whole row, of MERGE the columns that cannot be null, so that other engines can merge it."""
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id INT, c CHAR(3) NOT NULL, v VARCHAR(5), at STRUCT<x: INT, y: CHAR(2)>, "
        "list ARRAY<INT> NOT NULL, names MAP<STRING, INT>, amount DECIMAL(20, 2) NOT NULL, note STRING) "
        "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, 'c', 'v', named_struct('x', 1, 'y', 'y'), array(1), map('k', 2), "
        "1.5, 'note' FROM VALUES 1, 2 AS t(id)"
    )
    before = loaded(lake, name).read(predicate=col("id") == 1).to_pylist()[0]
    if statement == "DELETE":
        spark.sql(f"DELETE FROM {name} WHERE c = 'c' AND v = 'v' AND id = 1")
    else:
        spark.sql(f"MERGE INTO {name} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    store = loaded(lake, name)
    paths = [path for split in store.scan().splits for path in split.paths]
    rows = []
    for path in paths:
        with EncryptedOrcFile((store.file_system, path)) as file:
            rows += [row for row in file.read().to_pylist() if row["_VALUE_KIND"] == RowKind.DELETE]
    (row,) = rows
    if statement == "MERGE":
        before |= dict.fromkeys(("v", "at", "names", "note"))
    assert {key: row[key] for key in before} == before
    assert store.read(columns=["id"])["id"].to_pylist() == [2]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[ScanPlan]:
    """The plans of scans that were left something out of at run time."""
    found: list[ScanPlan] = []

    def noting(*args: Any, late: Predicate | None = None, **options: Any) -> ScanPlan:
        plan = plan_scan(*args, late=late, **options)
        if late not in (None, AlwaysTrue()):
            found.append(plan)
        return plan

    monkeypatch.setattr(table_scan, "plan_scan", noting)
    return found


@pytest.mark.parametrize(("partitioned", "files"), [(False, 2), (True, 5)])
def test_changes_leave_files_out_as_a_whole(
    lake: Lake, spark: SparkSession, table: Named, planned: list[ScanPlan], partitioned: bool, files: int
) -> None:
    """Partitions, and files that share no keys with others."""
    name = table("t")
    layout = (
        "PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'p,id', 'bucket' = '1')"
        if partitioned
        else "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
    )
    spark.sql(f"CREATE TABLE {name} (p INT, id BIGINT, st STRING) {layout}")
    store = loaded(lake, name)
    for part in range(5):
        for repeat in range(5 if partitioned else 1):
            ids = [at + (0 if partitioned else 100 * part) for at in range(20)]
            parts, kinds = (
                pa.array([part] * 20, pa.int32()),
                ["A" if part == 2 and (partitioned is False or repeat == 4) else "B"] * 20,
            )
            store.append(pa.table({"p": parts, "id": ids, "st": kinds}))
    if not partitioned:  # makes it unlike what the condition alone leaves
        store.append(pa.table({"p": pa.array([0], pa.int32()), "id": [350], "st": ["A"]}))
        store.delete(pa.table({"id": [350]}))
    spark.sql(f"UPDATE {name} SET st = 'changed' WHERE st < 'B'")
    (plan,) = planned
    assert sum(len(split.files) for split in plan.splits) == files
    assert loaded(lake, name).read(predicate=col("st") == "changed").num_rows == 20


# --- sources that answer differently the second time are read once ---

KINDS = {
    "files": "",
    "vectors": "TBLPROPERTIES ('deletion-vectors.enabled' = 'true')",
    "key": "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '12')",
}
GROUP_FILTER = "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled"
MERGE = (
    "MERGE INTO {} t USING {} s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'new' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'added')"
)


@pytest.fixture
def twelve(spark: SparkSession, table: Named) -> Callable[[str], str]:
    """A function that makes a table of a kind with the rows 1 to 12, each in a file or bucket of its own."""

    def make(kind: str = "files") -> str:
        name = table("twelve")
        spark.sql(f"CREATE TABLE {name} (id INT NOT NULL, v STRING) {KINDS[kind]}")
        spark.range(1, 13, 1, 12).selectExpr("CAST(id AS INT) AS id", "'old' AS v").writeTo(name).append()
        return name

    return make


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A folder with the file `1`, into which the next one arrives after each reading."""
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / "1").touch()
    return folder


def landed(folder: str) -> Callable[..., Iterator[tuple[int]]]:
    """A function for Spark's workers that reads the names in a folder; after it a file arrives."""

    def read(*_: object) -> Iterator[tuple[int]]:
        import os

        names = sorted(int(name) for name in os.listdir(folder))  # noqa: PTH208 - in a worker
        for name in names:
            yield (name,)
        with open(f"{folder}/{names[-1] + 1}", "x"):
            pass

    return read


def view_of(spark: SparkSession, source: str, folder: Path) -> str:
    """A source of a kind with the ids of the files in a folder, or with a random one."""
    read = landed(str(folder))
    if source == "folder":

        class Reader(DataSourceReader):
            def read(self, partition: object) -> Iterator[tuple[int]]:  # type: ignore[override]  # one partition
                return read()

        class Landing(DataSource):
            @classmethod
            def name(cls) -> str:
                return "landing"

            def schema(self) -> str:
                return "id INT"

            def reader(self, schema: object) -> Reader:  # type: ignore[override]  # of any schema
                return Reader()

        spark.dataSource.register(Landing)
        spark.read.format("landing").load().createOrReplaceTempView("arrivals")
    elif source == "rdd":
        rows = spark.sparkContext.parallelize([0], 1).mapPartitions(read)
        spark.createDataFrame(rows, "id INT").createOrReplaceTempView("arrivals")
    elif source == "function":
        last = f.udf(lambda _: max(each[0] for each in read()), "int", useArrow=False)
        spark.range(0, 1, 1, 1).select(last("id").alias("id")).createOrReplaceTempView("arrivals")
    elif source == "jdbc":
        url = "jdbc:derby:memory:arrivals;create=true"
        connection = spark._jvm.java.sql.DriverManager.getConnection(url)  # type: ignore[union-attr]  # there is one
        with contextlib.suppress(Py4JJavaError):  # it is there already
            connection.createStatement().execute(
                "CREATE FUNCTION any_number() RETURNS DOUBLE LANGUAGE JAVA PARAMETER STYLE JAVA NO SQL "
                "EXTERNAL NAME 'java.lang.Math.random'"
            )
        connection.close()
        query = '(SELECT 1 + CAST(12 * any_number() AS INT) AS "id" FROM sysibm.sysdummy1) AS q'
        spark.read.jdbc(url, query).createOrReplaceTempView("arrivals")
    else:
        assert source == "rand"
        return "(SELECT 1 + CAST(12 * rand() AS INT) AS id)"
    return "arrivals"


def ids(spark: SparkSession, name: str, v: str | None = None) -> list[int]:
    rows = spark.table(name).where("true" if v is None else f"v = '{v}'")
    return sorted(row.id for row in rows.collect())


ARRIVING = ["folder", "rdd", "function"]


@pytest.mark.parametrize(
    ("kind", "source"),
    [*(("files", each) for each in (*ARRIVING, "jdbc", "rand")), ("vectors", "folder"), ("key", "folder")],
)
def test_a_merge_reads_its_source_once(
    spark: SparkSession, twelve: Callable[[str], str], landing: Path, kind: str, source: str
) -> None:
    name = twelve(kind)
    spark.sql(MERGE.format(name, view_of(spark, source, landing)))
    assert ids(spark, name) == list(range(1, 13))
    new = ids(spark, name, "new")
    assert new == [1] if source in ARRIVING else len(new) == 1
    arrived = ["1", "2"] if source in ARRIVING else ["1"]
    assert sorted(path.name for path in landing.iterdir()) == arrived


def test_without_the_filter_of_groups_too(
    spark: SparkSession, twelve: Callable[..., str], landing: Path
) -> None:
    name = twelve()
    spark.conf.set(GROUP_FILTER, "false")
    try:
        for source in ("rdd", "rand"):
            spark.sql(MERGE.format(name, view_of(spark, source, landing)))
            assert ids(spark, name) == list(range(1, 13))
    finally:
        spark.conf.unset(GROUP_FILTER)
    assert sorted(path.name for path in landing.iterdir()) == ["1", "2"]


@pytest.mark.parametrize("kind", KINDS)
def test_conditions_read_their_subqueries_once(
    spark: SparkSession, twelve: Callable[[str], str], landing: Path, kind: str
) -> None:
    name, arrivals = twelve(kind), view_of(spark, "rdd", landing)
    spark.sql(f"UPDATE {name} SET v = 'new' WHERE id IN (SELECT id FROM {arrivals})")
    assert (ids(spark, name), ids(spark, name, "new")) == (list(range(1, 13)), [1])
    spark.sql(f"UPDATE {name} SET v = 'two' WHERE id = (SELECT max(id) FROM {arrivals} WHERE id > 0)")
    assert (ids(spark, name), ids(spark, name, "two")) == (list(range(1, 13)), [2])
    spark.sql(f"DELETE FROM {name} t WHERE EXISTS (SELECT 1 FROM {arrivals} a WHERE a.id = t.id)")
    assert ids(spark, name) == list(range(4, 13))
    assert len(list(landing.iterdir())) == 4
    spark.sql(f"DELETE FROM {name} WHERE id IN (SELECT 4 + CAST(9 * rand() AS INT))")
    assert len(ids(spark, name)) == 8


def test_rows_that_are_read_once_go_with_their_statement(
    spark: SparkSession, twelve: Callable[..., str], landing: Path
) -> None:
    context: Any = spark.sparkContext._jsc

    def kept() -> set[int]:
        context.sc().listenerBus().waitUntilEmpty()
        return set(context.getPersistentRDDs())

    name, before = twelve(), kept()
    arrivals = view_of(spark, "rdd", landing)
    spark.sql(MERGE.format(name, arrivals))
    twice = f"(SELECT id FROM {arrivals} UNION ALL SELECT id FROM {arrivals})"
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        spark.sql(MERGE.format(name, twice))
    assert kept() == before


def test_a_source_that_answers_equally_is_read_as_before(
    spark: SparkSession, twelve: Callable[..., str]
) -> None:
    """Snapshots and constants can be read again, which finds the files to change."""
    name = twelve()
    values = "(SELECT CAST(id AS INT) AS id FROM range(3) JOIN VALUES (1) AS v(n) ON id = n)"
    for source, once in (
        (f"(SELECT max(id) AS id FROM {name} GROUP BY v)", False),
        (values, False),
        (f"(WITH q AS (SELECT id FROM {name}) SELECT id FROM q WHERE id < 3)", False),
        (f"(SELECT id FROM {name} LIMIT 1)", True),
        (f"(SELECT CAST(sum(id / 3D) AS INT) AS id FROM {name})", True),
    ):
        plan = spark.sql(f"EXPLAIN EXTENDED {MERGE.format(name, source)}").collect()[0][0]
        assert ("ReadOnce" in plan) is once, source
    spark.sql(MERGE.format(name, values))
    assert ids(spark, name, "new") == [1]
