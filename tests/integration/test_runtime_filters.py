"""Filters known only at run time: which columns Spark is offered, and the files that a join leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
FILES, ROWS = 20, 100


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def metrics(frame: DataFrame, table: str) -> dict[str, int]:
    """What the scan of a table counted in a query that was run."""

    def scans(node: Any) -> Iterator[Any]:
        name = node.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            yield from scans(node.executedPlan())
        elif name.endswith("QueryStageExec"):
            yield from scans(node.plan())
        elif name == "BatchScanExec" and table in node.table().name():
            yield node
        for index in range(node.children().size()):
            yield from scans(node.children().apply(index))

    (scan,) = scans(frame._jdf.queryExecution().executedPlan())
    names = (
        "files",
        "skipped_by_statistics",
        "skipped_by_keys",
        "skipped_by_buckets",
        "skipped_by_partitions",
    )
    return {name: scan.metrics().apply(name).value() for name in names}


@pytest.fixture(scope="module")
def facts(lake: Lake) -> Iterator[str]:
    """20 files: `id` and `text` grow from file to file, of `n` each file has every value."""
    lake.catalog.create_namespace("runtime")
    name = "lake.runtime.facts"
    lake.sql(f"CREATE TABLE {name} (id BIGINT, n INT, text STRING, amount DECIMAL(9, 2))")
    rows = (
        f"SELECT id, id % {ROWS} AS n, lpad(id, 6, '0') AS text, id / 4 AS amount FROM range({FILES * ROWS})"
    )
    lake.sql(rows).repartitionByRange(FILES, "id").sortWithinPartitions("id").writeTo(name).append()
    assert (
        len(
            [file for split in lake.catalog.load_table("runtime.facts").scan().splits for file in split.files]
        )
        == FILES
    )
    yield name
    lake.catalog.drop_namespace("runtime", cascade=True)


@pytest.mark.parametrize("column", ["id", "text", "amount"])
def test_a_broadcast_join_leaves_files_out(
    spark: SparkSession, facts: str, table: Named, column: str
) -> None:
    dim = table("dim")
    spark.sql(
        f"CREATE TABLE {dim} AS SELECT {column} AS k, id % 3 AS kind "
        f"FROM {facts} WHERE id IN (5, 6, 777, 1203)"
    )
    frame = spark.sql(f"SELECT f.id FROM {facts} f JOIN {dim} d ON f.{column} = d.k WHERE d.kind = 0")
    rows = sorted(row.id for row in frame.collect())
    assert rows == [6, 777, 1203]
    assert "dynamicpruning" in plan(frame).lower()
    found = metrics(frame, "facts")
    assert found["files"] == 3
    assert found["skipped_by_statistics"] == FILES - 3


def test_no_subquery_for_a_column_that_skips_nothing(spark: SparkSession, facts: str, table: Named) -> None:
    dim = table("dim")
    spark.sql(f"CREATE TABLE {dim} AS SELECT n AS k, 1 AS kind FROM {facts} WHERE id IN (5, 777)")
    frame = spark.sql(f"SELECT f.id FROM {facts} f JOIN {dim} d ON f.n = d.k WHERE d.kind = 1")
    assert frame.count() == 2 * FILES
    assert "dynamicpruning" not in plan(frame).lower()


@pytest.fixture(scope="module")
def hunted(spark: SparkSession, facts: str) -> str:
    """20 files with an index of values: each has a host of its own between two that all have."""
    name = "lake.runtime.hunted"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, host STRING) TBLPROPERTIES ('index.values.columns' = 'host')")
    hosts = "CASE id % 100 WHEN 0 THEN 'a' WHEN 1 THEN concat('h', id div 100) ELSE 'z' END AS host"
    rows = spark.sql(f"SELECT id, {hosts} FROM range({FILES * ROWS})")
    rows.repartitionByRange(FILES, "id").writeTo(name).append()
    return name


@pytest.mark.parametrize("threshold", ["-1", "10mb"])
@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("SELECT f.id FROM {facts} f JOIN {small} s ON f.host = s.k", [301, 701]),
        ("SELECT f.id FROM {facts} f WHERE host IN (SELECT k FROM {small})", [301, 701]),
        ("SELECT f.id FROM {small} s LEFT JOIN {facts} f ON f.host = s.k", [301, 701, None]),
        (
            "SELECT f.id FROM (SELECT host AS h, id FROM {facts} WHERE id > 400) f JOIN {small} s ON h = k",
            [701],
        ),
    ],
)
def test_a_small_side_without_a_filter(
    spark: SparkSession, hunted: str, table: Named, query: str, ids: list[int | None], threshold: str
) -> None:
    small = table("small")
    spark.sql(f"CREATE TABLE {small} AS SELECT * FROM VALUES ('h3'), ('h7'), ('nobody') AS t(k)")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    try:
        frame = spark.sql(query.format(facts=hunted, small=small))
        assert sorted((row.id for row in frame.collect()), key=str) == ids
        if "AS h" not in query:  # a renamed column is another one by then
            assert metrics(frame, "hunted")["files"] == 2
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_a_side_that_must_stay_whole_is_not_pruned(spark: SparkSession, hunted: str, table: Named) -> None:
    small = table("small")
    spark.sql(f"CREATE TABLE {small} AS SELECT 'h3' AS k")
    for kind, count in (("LEFT", 2000), ("FULL", 2000), ("LEFT ANTI", 1999)):
        frame = spark.sql(f"SELECT f.id FROM {hunted} f {kind} JOIN {small} s ON f.host = s.k")
        assert frame.count() == count, kind


def test_lists_of_thousands_of_values(spark: SparkSession, facts: str, table: Named) -> None:
    """Longer ones than are sent are asked for by their bounds."""
    for count, far, files in [(1000, 0, 10), (1000, 10**9, 10), (25_000, 10**9, FILES)]:
        dim = table(f"dim{count}_{far}")
        spark.sql(
            f"CREATE TABLE {dim} AS SELECT id AS k, 1 AS kind FROM range({count}) UNION ALL SELECT {far}L, 1"
        )
        frame = spark.sql(f"SELECT f.id FROM {facts} f JOIN {dim} d ON f.id = d.k WHERE d.kind = 1")
        assert frame.where("id > 0").count() == min(count, FILES * ROWS) - 1
        frame.collect()
        assert metrics(frame, "facts")["files"] == files


def test_key_tables_by_their_keys(spark: SparkSession, table: Named) -> None:
    name, dim = table("k"), table("dim")
    spark.sql(
        f"CREATE TABLE {name} (id INT, part INT, v INT) PARTITIONED BY (part) "
        "TBLPROPERTIES ('primary-key' = 'part,id', 'bucket' = '1')"
    )
    for part in range(4):
        spark.sql(f"INSERT INTO {name} SELECT id, {part}, 1 FROM range({part * 10}, {part * 10 + 10})")
        spark.sql(f"INSERT INTO {name} SELECT id, {part}, 2 FROM range({part * 10}, {part * 10 + 5})")
    spark.sql(
        f"CREATE TABLE {dim} AS SELECT * FROM VALUES (3, 2, 1), (28, 1, 1), (33, 2, 2) AS t(k, w, kind)"
    )
    by_key = spark.sql(f"SELECT f.id, f.v FROM {name} f JOIN {dim} d ON f.id = d.k WHERE d.kind = 1")
    assert sorted(map(tuple, by_key.collect())) == [(3, 2), (28, 1)]
    found = metrics(by_key, ".k")
    assert (found["files"], found["skipped_by_keys"]) == (3, 5)
    # A filter of values must not bring back older rows of a key.
    by_value = spark.sql(f"SELECT f.id FROM {name} f JOIN {dim} d ON f.v = d.w WHERE d.kind = 1 AND d.w = 1")
    assert sorted(row.id for row in by_value.collect()) == [
        10 * part + i for part in range(4) for i in range(5, 10)
    ]


SHUFFLED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
}


@pytest.fixture
def joined(spark: SparkSession, facts: str, table: Named) -> str:
    """A join by a column that files are left out by, with a filter on the small side."""
    dim = table("dim")
    spark.sql(
        f"CREATE TABLE {dim} AS SELECT id AS k, id % 3 AS kind FROM {facts} WHERE id IN (5, 6, 777, 1203)"
    )
    return f"SELECT {{hint}} f.id FROM {facts} f JOIN {dim} d ON f.id = d.k WHERE d.kind = 0"


def test_a_shuffle_join_has_its_bloom_filter(spark: SparkSession, joined: str) -> None:
    with confs(spark, SHUFFLED):
        for hint in ("", "/*+ MERGE(d) */"):
            frame = spark.sql(joined.format(hint=hint))
            assert sorted(row.id for row in frame.collect()) == [6, 777, 1203]
            assert "might_contain" in plan(frame)
            assert metrics(frame, "facts")["files"] == 3  # and few files, by the keys of the small side


def test_a_join_that_is_broadcast_all_the_same_has_dynamic_pruning(spark: SparkSession, joined: str) -> None:
    with confs(spark, SHUFFLED):
        hinted = spark.sql(joined.format(hint="/*+ BROADCAST(d) */"))
        assert sorted(row.id for row in hinted.collect()) == [6, 777, 1203]
        assert "dynamicpruning" in plan(hinted).lower()
        assert metrics(hinted, "facts")["files"] == 3
    with confs(
        spark, {**SHUFFLED, "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false"}
    ):
        subquery = spark.sql(joined.format(hint=""))
        assert sorted(row.id for row in subquery.collect()) == [6, 777, 1203]
        assert metrics(subquery, "facts")["files"] == 3


def test_no_filter_by_another_reading_of_a_side_that_may_change(
    spark: SparkSession, facts: str, tmp_path: Path
) -> None:
    """A join reads rows of a program once, those of files and snapshots as often as it helps."""
    rows = spark.sql("SELECT id AS k, id % 3 AS kind FROM range(9)")
    rows.write.parquet(str(tmp_path / "files"))
    spark.read.parquet(str(tmp_path / "files")).createOrReplaceTempView("of_files")
    spark.createDataFrame(rows.rdd, rows.schema).createOrReplaceTempView("of_rows")
    query = f"SELECT f.id FROM {facts} f JOIN {{}} d ON f.id = d.k WHERE d.kind = 0"
    some = "(SELECT * FROM of_files WHERE k + rand() < 100)"
    separate = {**SHUFFLED, "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false"}
    for values in (SHUFFLED, separate):
        with confs(spark, values):
            for side, is_read in (("of_files", True), ("of_rows", False), (some, False)):
                frame = spark.sql(query.format(side))
                found = plan(frame).lower()
                assert ("might_contain" in found or "dynamicpruning" in found) is is_read, (side, values)
                assert sorted(row.id for row in frame.collect()) == [0, 3, 6]


def test_bloom_filters_that_are_switched_off_stay_so(spark: SparkSession, joined: str) -> None:
    with confs(spark, {**SHUFFLED, "spark.sql.optimizer.runtime.bloomFilter.enabled": "false"}):
        frame = spark.sql(joined.format(hint=""))
        assert sorted(row.id for row in frame.collect()) == [6, 777, 1203]
        assert "might_contain" not in plan(frame)


@contextmanager
def confs(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Set confs for a while."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
