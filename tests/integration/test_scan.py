"""Reading: columns, limits, statistics, snapshots, dynamic partition pruning, system tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from spark_version import SPARK

from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.types import BIGINT, STRING, DataField

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.fixture(scope="module")
def parts(spark: SparkSession, shared_table: Named) -> str:
    """A table with eight partitions of one file and 100 rows each."""
    name = shared_table("parts")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING, p INT) PARTITIONED BY (p)")
    for p in range(8):
        spark.range(100).selectExpr("id", "concat('v', id) AS v", f"{p} AS p").coalesce(1).writeTo(
            name
        ).append()
    return name


def test_columns_are_pruned(spark: SparkSession, parts: str) -> None:
    assert "v#" not in plan(spark.sql(f"SELECT sum(id) FROM {parts}"))
    assert spark.sql(f"SELECT count(*) FROM {parts}").collect()[0][0] == 800
    assert spark.sql(f"SELECT p FROM {parts} WHERE p = 3").distinct().collect() == [(3,)]


def test_a_guaranteed_filter_is_not_evaluated_again(spark: SparkSession, parts: str) -> None:
    frame = spark.sql(f"SELECT id FROM {parts} WHERE p = 3")
    assert " Filter " not in plan(frame)
    assert frame.count() == 100
    assert " Filter " in plan(spark.sql(f"SELECT id FROM {parts} WHERE id < 3"))


def test_a_limit_reads_as_few_files_as_it_can(spark: SparkSession, parts: str, lake: Lake) -> None:
    query = f"SELECT * FROM {parts} LIMIT 5"
    assert len(spark.sql(query).collect()) == 5
    report = lake.explain_pushdown(query)[0]
    assert report.limit == 5
    assert report.kept.files == 1


def test_statistics_reach_the_optimizer(spark: SparkSession, parts: str, table: Named) -> None:
    spark.range(1000).writeTo(table("large")).create()
    joined = spark.sql(f"SELECT * FROM {table('large')} l JOIN {parts} p ON l.id = p.id WHERE p.p = 1")
    assert "BroadcastHashJoin" in plan(joined)
    assert joined.count() == 100
    optimized = joined._jdf.queryExecution().optimizedPlan()
    assert int(str(optimized.stats().sizeInBytes())) < 10**9


def test_one_query_sees_one_snapshot(spark: SparkSession, table: Named, lake: Lake, database: str) -> None:
    name = table("t")
    spark.range(10).writeTo(name).create()
    scanned = lake.catalog.load_table(f"{database}.t")
    first = scanned.latest_snapshot()
    assert first is not None
    spark.range(10, 15).writeTo(name).append()
    assert spark.sql(f"SELECT count(*) FROM {name} VERSION AS OF {first.id}").collect()[0][0] == 10
    option = f"WITH (`scan.snapshot-id` = '{first.id}')"
    assert spark.sql(f"SELECT count(*) FROM {name} {option}").collect()[0][0] == 10
    assert spark.read.option("scan.snapshot-id", first.id).table(name).count() == 10
    assert spark.table(name).count() == 15
    with pytest.raises(AnalysisException):
        spark.sql(f"SELECT * FROM {name} VERSION AS OF 99").collect()
    with pytest.raises(AnalysisException, match="number of a snapshot or the name of a tag"):
        spark.sql(f"SELECT * FROM {name} VERSION AS OF 'x'").collect()


def test_a_table_that_was_altered_without_a_snapshot(
    spark: SparkSession, table: Named, lake: Lake, database: str
) -> None:
    """As other engines alter tables: a new schema, but the snapshot was committed with the one before."""
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    stored = lake.catalog.load_table(f"{database}.t")
    before = stored.latest_snapshot()
    assert before is not None
    number, renamed = stored.schema.fields
    fields = (number, replace(renamed, name="w"), DataField(stored.schema.highest_field_id + 1, "x", BIGINT))
    stored.schema_files.create(replace(stored.schema, id=1, fields=fields, highest_field_id=fields[-1].id))
    answered = spark.sql(f"SELECT * FROM {name} WHERE w > 'a'")
    assert answered.columns == ["id", "w", "x"]
    assert [tuple(row) for row in answered.collect()] == [(2, "b", None)]
    travelled = spark.sql(f"SELECT * FROM {name} VERSION AS OF {before.id} WHERE v = 'a'")
    assert travelled.columns == ["id", "v"]
    assert [tuple(row) for row in travelled.collect()] == [(1, "a")]
    keys = spark.range(1, 4)
    joined = lake.lookup_join(keys, f"{database}.t", on="id", select=["w", "x"])
    assert {tuple(row) for row in joined.collect()} == {(1, "a", None), (2, "b", None), (3, None, None)}
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c', 30)")
    assert [row.x for row in spark.sql(f"SELECT x FROM {name} ORDER BY id").collect()] == [None, None, 30]


def test_a_table_that_was_created_again(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.range(3).writeTo(name).create()
    analysed = spark.table(name).where("id > 0")
    analysed._jdf.queryExecution().analyzed()
    spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TABLE {name} (id BIGINT)")
    with pytest.raises(AnalysisException, match=r"(?i)created again|table.*id"):
        analysed.collect()


def test_time_travel_by_time(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.range(10).writeTo(name).create()
    after = spark.sql("SELECT current_timestamp() + INTERVAL 1 SECOND").collect()[0][0]
    assert spark.sql(f"SELECT count(*) FROM {name} TIMESTAMP AS OF '{after}'").collect()[0][0] == 10
    with pytest.raises(AnalysisException, match="no snapshot from that time"):
        spark.sql(f"SELECT * FROM {name} TIMESTAMP AS OF '2001-01-01'").collect()


def test_a_self_join_reads_once_and_of_one_snapshot(spark: SparkSession, parts: str) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        query = f"""
            SELECT a.c, b.c FROM (SELECT id, count(*) c FROM {parts} GROUP BY id) a
            JOIN (SELECT id, count(*) c FROM {parts} GROUP BY id) b ON a.id = b.id"""
        frame = spark.sql(query)
        assert {tuple(row) for row in frame.collect()} == {(8, 8)}
        assert "ReusedExchange" in plan(frame)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_a_cache_of_spark_answers_the_snapshot_that_it_holds(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.range(3).writeTo(name).create()
    kept = spark.sql(f"SELECT id + 1 AS n FROM {name} VERSION AS OF 1").cache()
    try:
        assert kept.count() == 3
        same = spark.sql(f"SELECT id + 1 AS n FROM {name} VERSION AS OF 1")
        assert "InMemoryTableScan" in plan(same)
        spark.range(2).writeTo(name).append()
        assert "InMemoryTableScan" not in plan(spark.sql(f"SELECT id + 1 AS n FROM {name}"))
        assert spark.sql(f"SELECT id + 1 AS n FROM {name}").count() == 5
        assert "InMemoryTableScan" not in plan(spark.sql(f"SELECT id + 1 AS n FROM {name} VERSION AS OF 2"))
        # Another table of the name, whose snapshot has the same number.
        spark.sql(f"DROP TABLE {name}")
        spark.range(7).writeTo(name).create()
        again = spark.sql(f"SELECT id + 1 AS n FROM {name} VERSION AS OF 1")
        assert "InMemoryTableScan" not in plan(again)
        assert again.count() == 7
    finally:
        kept.unpersist()


def test_dynamic_partition_pruning(spark: SparkSession, parts: str, table: Named) -> None:
    spark.sql("SELECT 3 AS p, 'wanted' AS label UNION ALL SELECT 5, 'not'").writeTo(table("dim")).create()
    frame = spark.sql(
        f"SELECT f.id FROM {parts} f JOIN {table('dim')} d ON f.p = d.p WHERE d.label = 'wanted'"
    )
    assert frame.count() == 100
    text = plan(frame)
    assert "dynamicpruning" in text.lower()
    frame.collect()
    files = _files_read(frame, "parts")
    assert files == [1]


def _files_read(frame: DataFrame, table: str) -> list[int]:
    """The partitions of each scan of `table` after filters known at run time."""
    found: list[int] = []

    def visit(node: Any) -> None:
        if "AdaptiveSparkPlan" in node.nodeName():
            visit(node.executedPlan())
            return
        if "QueryStage" in node.nodeName():
            visit(node.plan())
            return
        if node.getClass().getSimpleName() == "BatchScanExec" and table in node.table().name():
            found.append(sum(1 for _ in _items(node.filteredPartitions())))
        for child in _items(node.children()):
            visit(child)

    visit(frame._jdf.queryExecution().executedPlan())
    return found


def _items(sequence: Any) -> Iterator[Any]:
    for index in range(sequence.size()):
        yield sequence.apply(index)


def test_an_empty_table(spark: SparkSession, table: Named) -> None:
    spark.sql(f"CREATE TABLE {table('t')} (id INT, p STRING) PARTITIONED BY (p)")
    assert spark.sql(f"SELECT * FROM {table('t')} WHERE p = 'x' OR id > 3").collect() == []
    assert spark.sql(f"SELECT count(*) FROM {table('t')}").collect()[0][0] == 0


def test_long_messages_go_through_files(
    spark: SparkSession, parts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.framework.spark.bridge import gateway, transport
    from lockgate.framework.spark.bridge.bridge_server import BridgeServer

    server = gateway._server
    assert isinstance(server, BridgeServer)
    python = spark._jvm.io.lockgate.spark.bridge.Bridge.python()  # type: ignore[union-attr]  # the session is no remote one
    monkeypatch.setattr(transport, "LARGEST_FRAME", 300)
    python.limitFrames(100)
    try:
        assert spark.table(parts).count() == 800
    finally:
        python.limitFrames(1 << 30)
    assert [path.name for path in server.folder.iterdir()] == ["socket"]


def test_parallel_queries(spark: SparkSession, parts: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def count(p: int) -> int:
        return int(spark.sql(f"SELECT count(*) FROM {parts} WHERE p = {p}").collect()[0][0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(8))) == [100] * 8


class Files:
    """A system table: the data files of a table, and how it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Mapping[str, str], Mapping[str, str | None]]] = []

    def schema(self, context: Any, table: Any) -> list[DataField]:
        return [DataField(0, "name", STRING), DataField(1, "rows", BIGINT)]

    def rows(self, context: Any, table: Any, options: Any, properties: Any) -> pa.Table:
        self.asked.append((options, properties))
        files = [file for split in table.scan().splits for file in split.files]
        return pa.table(
            {"name": [file.file_name for file in files], "rows": [file.row_count for file in files]}
        )


@pytest.fixture
def files() -> Iterator[Files]:
    made = Files()

    class Plugin:
        @hookimpl
        def lockgate_system_tables(self) -> Mapping[str, Files]:
            return {"some_files": made}

    plugins().register(Plugin(), "test-files")
    yield made
    plugins().unregister("test-files")


def test_system_tables(spark: SparkSession, parts: str, files: Files) -> None:
    name = f"{parts.rpartition('.')[0]}.`parts$some_files`"
    assert spark.sql(f"SELECT count(*), sum(rows) FROM {name}").collect() == [(8, 800)]
    assert files.asked[-1][1] == {"batch_id": None, "query_id": None}
    spark.read.option("lookup.some", "thing").table(name).collect()
    assert files.asked[-1][0]["lookup.some"] == "thing"
    with pytest.raises(AnalysisException, match="did you mean 'some_files'"):
        spark.sql(f"SELECT * FROM {parts.rpartition('.')[0]}.`parts$some_file`")


def test_a_system_table_is_asked_once_a_micro_batch(
    spark: SparkSession, parts: str, files: Files, tmp_path: Path
) -> None:
    name = f"{parts.rpartition('.')[0]}.`parts$some_files`"
    from pyspark.sql import functions as f

    source = tmp_path / "in"
    spark.range(4).repartition(4).write.parquet(str(source))
    stream = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).parquet(str(source))
    pinned = f.broadcast(spark.table(name).groupBy().agg(f.count("*").alias("files")))
    query = (
        stream.crossJoin(pinned)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    asked = [properties for _, properties in files.asked if properties["batch_id"] is not None]
    batches = [properties["batch_id"] for properties in asked]
    each = batches if SPARK >= (4, 2) else list(dict.fromkeys(batches))  # 4.1 asks again within a batch
    assert each == [str(i) for i in range(len(each))]
    assert len(each) >= 2
    assert {properties["query_id"] for properties in asked} == {query.id}


@pytest.mark.parametrize("day", ["0004-01-01", "1582-10-04", "1582-10-10", "1582-10-15", "1582-10-16"])
def test_days_before_the_calendar_changed(spark: SparkSession, table: Named, day: str) -> None:
    """As the least and the greatest value of a file, by which row groups are skipped."""
    name = table("days")
    spark.sql(f"CREATE TABLE {name} (day DATE)")
    for other in ("0001-01-01", "2024-02-29"):
        spark.sql(
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES (DATE '{day}'), (DATE '{other}')"
        )
    for condition in (
        "= {0}",
        "<= {0} AND day > DATE '0001-01-01'",
        ">= {0} AND day < DATE '2024-01-01'",
        "IN ({0}, DATE '1970-01-01')",
    ):
        found = spark.sql(f"SELECT day FROM {name} WHERE day " + condition.format(f"DATE '{day}'"))
        assert [str(row.day) for row in found.collect()] == [day] * 2, condition
