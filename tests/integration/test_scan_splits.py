"""How what is read is cut and packed for tasks, and joins of buckets that move no rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import orc
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
ROWS = 20_000


@pytest.fixture(scope="module")
def large(lake: Lake) -> Iterator[str]:
    """One file of many stripes, which compression does not make small."""
    lake.catalog.create_namespace("splits")
    name = "lake.splits.large"
    lake.sql(f"CREATE TABLE {name} (id INT, text STRING) TBLPROPERTIES ('file.compression' = 'none')")
    lake.spark.conf.set("orc.stripe.row.count", "2000")
    lake.sql(f"INSERT INTO {name} SELECT CAST(id AS INT), sha2(string(id), 256) FROM range(0, {ROWS}, 1, 1)")
    lake.spark.conf.unset("orc.stripe.row.count")
    yield name
    lake.catalog.drop_namespace("splits", cascade=True)


def tasks(frame: DataFrame) -> int:
    return int(frame._jdf.queryExecution().toRdd().getNumPartitions())


@pytest.mark.long
def test_a_file_is_read_by_several_tasks(spark: SparkSession, large: str, lake: Lake) -> None:
    (split,) = lake.catalog.load_table(large.removeprefix("lake.")).scan().splits
    assert orc.ORCFile(split.paths[0]).nstripes >= 5
    length = Path(split.paths[0]).stat().st_size
    whole = spark.sql(f"SELECT count(*), sum(id), count(DISTINCT text) FROM {large}").collect()
    assert whole == [(ROWS, ROWS * (ROWS - 1) // 2, ROWS)]
    counts = []
    # The last ones are much smaller than a stripe: most tasks have none.
    for parts in (4, 13, 60):
        size = f"{length // parts} b"
        query = f"SELECT id, text, _ROW_INDEX AS at FROM {large} WITH (`source.split.target-size` = '{size}')"
        frame = spark.sql(query)
        counts.append(tasks(frame))
        shown = frame.selectExpr(
            "count(*)", "sum(id)", "count(DISTINCT text)", "count_if(at = id)", "count(DISTINCT at)"
        ).collect()
        assert shown == [(ROWS, ROWS * (ROWS - 1) // 2, ROWS, ROWS, ROWS)], size
        found = frame.where("id BETWEEN 11000 AND 11010 AND at = id").collect()
        assert sorted(row.id for row in found) == list(range(11000, 11011))
    assert counts == sorted(counts)
    assert counts[0] >= 4
    assert counts[2] >= 60
    # Several of the tasks have rows: the file has many stripes, of which each is read by one of them.
    size = f"{length // 13} b"
    frame = spark.sql(f"SELECT id FROM {large} WITH (`source.split.target-size` = '{size}')")
    filled = frame.selectExpr("spark_partition_id() AS task").distinct().count()
    assert filled >= 4


def test_options_of_the_table_come_before_confs(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT)")
    for start in range(6):
        spark.sql(f"INSERT INTO {name} VALUES ({start})")
    spark.conf.set("spark.sql.files.openCostInBytes", "1")
    try:
        assert tasks(spark.table(name)) < 6
        spark.conf.set("spark.sql.files.maxPartitionBytes", "10")
        assert tasks(spark.table(name)) > 6
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('source.split.target-size' = '1 gb')")
        assert tasks(spark.table(name)) == 1
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('source.split.open-file-cost' = '400 mb')")
        assert tasks(spark.table(name)) == 2
        hinted = spark.sql(f"SELECT * FROM {name} WITH (`Source.Split.Open-File-Cost` = '2 gb')")
        assert tasks(hinted) == 6
        assert sorted(row.id for row in hinted.collect()) == list(range(6))
        assert tasks(spark.read.option("source.split.target-size", "10 gb").table(name)) == 1
    finally:
        spark.conf.unset("spark.sql.files.openCostInBytes")
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    with pytest.raises(AnalysisException, match=r"source\.split\.target-size"):
        spark.read.option("source.split.target-size", "many").table(name).collect()
    spark.sql(f"DELETE FROM {name} WHERE id = 3")  # options of splits do not make a query one of another time
    assert spark.table(name).count() == 5


def test_sections_to_merge_are_packed_too(spark: SparkSession, table: Named) -> None:
    name = table("k")
    spark.sql(f"CREATE TABLE {name} (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    for start in (0, 100, 200):
        for v in (1, 2):
            spark.sql(f"INSERT INTO {name} SELECT CAST(id AS INT), {v} FROM range({start}, {start + 50})")
    small = spark.sql(f"SELECT * FROM {name} WITH (`source.split.target-size` = '1 b')")
    assert tasks(small) == 3
    assert tasks(spark.read.option("source.split.target-size", "1 gb").table(name)) == 1
    assert small.selectExpr("count(*)", "sum(v)", "sum(id)").collect() == [(150, 300, 18675)]


# --- joins of buckets ----------------------------------------------------------------------------


def exchanges(frame: DataFrame) -> int:
    """How many times the rows of a query that was run were moved between tasks."""
    text = str(frame._jdf.queryExecution().executedPlan().toString())
    return text.split("Initial Plan")[0].count("Exchange hashpartitioning")


@pytest.fixture
def no_broadcast(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def shuffled(spark: SparkSession, query: str) -> list[Any]:
    """The rows of a query whose joins move rows."""
    spark.conf.set("spark.sql.sources.v2.bucketing.enabled", "false")
    try:
        frame = spark.sql(query)
        rows = sorted(frame.collect(), key=repr)
        assert exchanges(frame) >= 1
        return rows
    finally:
        spark.conf.unset("spark.sql.sources.v2.bucketing.enabled")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INT", "id"),
        ("STRING", "concat('k', id)"),
        ("DECIMAL(20, 3)", "id / 7"),
        ("DATE", "date_add(DATE '2024-01-01', CAST(id AS INT))"),
    ],
)
def test_tables_in_the_same_buckets(
    spark: SparkSession, table: Named, no_broadcast: None, kind: str, value: str
) -> None:
    left, right = table("l"), table("r")
    spark.sql(f"CREATE TABLE {left} (k {kind}, v INT) TBLPROPERTIES ('bucket' = '4', 'bucket-key' = 'k')")
    spark.sql(f"CREATE TABLE {right} (k {kind}, w INT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '4')")
    spark.sql(f"INSERT INTO {left} SELECT {value}, id FROM range(0, 300)")
    spark.sql(f"INSERT INTO {left} VALUES (NULL, -1)")
    spark.sql(f"INSERT INTO {right} SELECT {value}, id FROM range(100, 400)")
    spark.sql(f"INSERT INTO {right} SELECT {value}, -id FROM range(200, 250)")
    for query, moved in [
        (f"SELECT l.k, v, w FROM {left} l JOIN {right} r ON l.k = r.k", 0),
        (f"SELECT v, w FROM {left} l LEFT JOIN {right} r ON l.k = r.k WHERE v < 250", 0),
        (f"SELECT count(*), sum(v + w) FROM {left} l JOIN {right} r USING (k)", 0),
        (f"SELECT k, count(*) FROM {left} GROUP BY k", 0),
        (f"SELECT v, w FROM {left} l JOIN {right} r ON l.v = r.w", 2),
    ]:
        frame = spark.sql(query)
        assert sorted(frame.collect(), key=repr) == shuffled(spark, query), query
        assert exchanges(frame) == moved, query


def test_partitions_and_buckets(spark: SparkSession, table: Named, no_broadcast: None) -> None:
    left, right = table("l"), table("r")
    for name in (left, right):
        spark.sql(
            f"CREATE TABLE {name} (k INT, p STRING, v INT) PARTITIONED BY (p) "
            "TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'k')"
        )
    spark.sql(f"INSERT INTO {left} SELECT id, concat('p', id % 3), id FROM range(90)")
    spark.sql(f"INSERT INTO {right} SELECT id, concat('p', id % 2), id FROM range(60)")
    query = f"SELECT l.v, r.v FROM {left} l JOIN {right} r ON l.k = r.k AND l.p = r.p"
    frame = spark.sql(query)
    assert sorted(frame.collect(), key=repr) == shuffled(spark, query)
    assert exchanges(frame) == 0
    # With a filter known only at run time some of the partitions go.
    dim = table("dim")
    spark.sql(f"CREATE TABLE {dim} AS SELECT 'p1' AS p, 1 AS one")
    filtered = f"{query} JOIN {dim} d ON d.p = l.p WHERE d.one = 1"
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10MB")
    assert sorted(spark.sql(filtered).collect()) == sorted(
        row for row in spark.sql(query).collect() if row[0] % 3 == 1
    )


def test_where_buckets_are_not_told(spark: SparkSession, table: Named, no_broadcast: None) -> None:
    other, few, double, left = table("other"), table("few"), table("double"), table("l")
    spark.sql(f"CREATE TABLE {left} (k INT, v INT) TBLPROPERTIES ('bucket' = '4', 'bucket-key' = 'k')")
    spark.sql(f"CREATE TABLE {other} (k INT, v INT) TBLPROPERTIES ('bucket' = '3', 'bucket-key' = 'k')")
    spark.sql(f"CREATE TABLE {few} (k INT, v INT) TBLPROPERTIES ('bucket' = '40', 'bucket-key' = 'k')")
    for name in (left, other, few):
        spark.sql(f"INSERT INTO {name} SELECT id, id FROM range(200)")
    for right, why in [(other, "another number of buckets"), (few, "more buckets than tasks are worth")]:
        query = f"SELECT l.v FROM {left} l JOIN {right} r ON l.k = r.k"
        frame = spark.sql(query)
        assert sorted(row.v for row in frame.collect()) == list(range(200))
        assert exchanges(frame) >= 1, why
    assert tasks(spark.table(few)) < 20
    # 0.0 equals -0.0, but not their hashes.
    spark.sql(f"CREATE TABLE {double} (k DOUBLE, v INT) TBLPROPERTIES ('bucket' = '4', 'bucket-key' = 'k')")
    spark.sql(f"INSERT INTO {double} VALUES (0.0D, 1), (-0.0D, 2), (1.5D, 3)")
    query = f"SELECT l.v, r.v FROM {double} l JOIN {double} r ON l.k = r.k"
    frame = spark.sql(query)
    assert len(frame.collect()) == 5
    assert exchanges(frame) >= 1


def test_a_table_half_rescaled(spark: SparkSession, table: Named, no_broadcast: None) -> None:
    name, right = table("t"), table("r")
    spark.sql(
        f"CREATE TABLE {name} (k INT, p INT, v INT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'k')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, id % 2, id FROM range(100)")
    spark.sql(
        f"CREATE TABLE {right} (k INT, p INT, v INT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('bucket' = '4', 'bucket-key' = 'k')"
    )
    spark.sql(f"INSERT INTO {right} SELECT id, id % 2, id FROM range(100)")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('bucket' = '4')")
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = 0) SELECT id, id FROM range(0, 100, 2)")
    query = f"SELECT l.v, r.v FROM {name} l JOIN {right} r ON l.k = r.k AND l.p = r.p"
    frame = spark.sql(query)
    assert sorted(frame.collect()) == [(i, i) for i in range(100)]
    assert exchanges(frame) >= 1
