"""Every form of `writeTo` and of `writeStream.toTable`, on tables with and without a key.

Each form is checked for the rows it leaves, and for the snapshot that says what it did: an APPEND is what
followers of changes take for new rows, an OVERWRITE is not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

Named = Callable[[str], str]
Load = Callable[[str], "Table"]
Checked = Callable[["Table", list[tuple[Any, ...]]], None]
BEFORE = [(1, "x"), (2, "x"), (3, "y")]


@pytest.fixture
def load(lake: Lake, database: str) -> Load:
    return lambda name: lake.catalog.load_table(f"{database}.{name}")


@pytest.fixture
def target(spark: SparkSession, table: Named) -> Callable[[str], str]:
    """A function that makes a table of a kind with three rows: `append`, `buckets`, `key` or `key parts`."""
    properties = {
        "append": "",
        "buckets": "'bucket' = '2', 'bucket-key' = 'id'",
        "key": "'primary-key' = 'id', 'bucket' = '2'",
        "key parts": "'primary-key' = 'id,p', 'bucket' = '1'",
    }

    def make(kind: str) -> str:
        name = table("t")
        parts = "" if kind == "key" else "PARTITIONED BY (p)"
        options = f"TBLPROPERTIES ({properties[kind]})" if properties[kind] else ""
        spark.sql(f"CREATE TABLE {name} (id INT, p STRING) {parts} {options}")
        spark.createDataFrame(BEFORE, "id INT, p STRING").writeTo(name).append()
        return name

    return make


def check(spark: SparkSession, table: Table, expected: list[tuple[Any, ...]], *kinds: str) -> None:
    """Compare what Spark and Python read, the kinds of the snapshots, and the files on the disk."""
    name = f"lake.{table.identifier}"
    assert sorted(tuple(row) for row in spark.table(name).collect()) == sorted(expected)
    assert sorted(tuple(row.values()) for row in table.read().to_pylist()) == sorted(expected)
    snapshots = table.snapshots()
    assert [each.commit_kind.value for each in snapshots] == list(kinds)
    named = {entry.file.file_name for each in snapshots for entry in table.manifests.live_files(each)}
    assert {path.name for path in Path(table.location).rglob("data-*")} == named


KINDS = ["append", "buckets", "key", "key parts"]


@pytest.mark.parametrize("kind", KINDS)
def test_append_of_a_data_frame_keeps_rows(
    spark: SparkSession, target: Callable[[str], str], load: Load, kind: str
) -> None:
    name = target(kind)
    spark.sql("SELECT 'z' AS p, 3 AS id").writeTo(name).append()
    kept = BEFORE[:2] if kind == "key" else BEFORE
    check(spark, load("t"), [*kept, (3, "z")], "APPEND", "APPEND")


@pytest.mark.parametrize("kind", KINDS)
def test_overwrite_of_a_data_frame_replaces_rows(
    spark: SparkSession, target: Callable[[str], str], load: Load, kind: str
) -> None:
    name = target(kind)
    spark.sql("SELECT 9 AS id, 'x' AS p").writeTo(name).overwrite(f.lit(True))
    check(spark, load("t"), [(9, "x")], "APPEND", "OVERWRITE")


@pytest.mark.parametrize("kind", ["append", "buckets", "key parts"])
def test_overwrite_by_a_condition(
    spark: SparkSession, target: Callable[[str], str], load: Load, kind: str
) -> None:
    name = target(kind)
    spark.sql("SELECT 9 AS id, 'x' AS p").writeTo(name).overwrite(f.col("p").isin("x", "none"))
    check(spark, load("t"), [(3, "y"), (9, "x")], "APPEND", "OVERWRITE")
    spark.table(name).limit(0).writeTo(name).overwrite(f.col("p") == "y")
    check(spark, load("t"), [(9, "x")], "APPEND", "OVERWRITE", "OVERWRITE")


@pytest.mark.parametrize("kind", ["append", "buckets", "key parts"])
def test_overwrite_the_partitions_that_come(
    spark: SparkSession, target: Callable[[str], str], load: Load, kind: str
) -> None:
    name = target(kind)
    rows = spark.sql("SELECT 9 AS id, 'x' AS p UNION ALL SELECT 8, 'new'")
    rows.writeTo(name).overwritePartitions()
    check(spark, load("t"), [(3, "y"), (8, "new"), (9, "x")], "APPEND", "OVERWRITE")


def test_create_and_replace(spark: SparkSession, table: Named, load: Load) -> None:
    name = table("made")
    rows = spark.sql("SELECT 1 AS id, 'x' AS p UNION ALL SELECT 2, 'y'")
    with pytest.raises(AnalysisException, match=r"(?i)made"):
        rows.writeTo(name).replace()
    options = {"primary-key": "id,p", "bucket": "1", "orc.compress": "snappy"}
    writer = rows.writeTo(name).using("lockgate").partitionedBy("p")
    for key, value in options.items():
        writer = writer.tableProperty(key, value)
    writer.create()
    made = load("made")
    assert (made.schema.primary_keys, made.schema.partition_keys) == (("id", "p"), ("p",))
    assert made.schema.options["orc.compress"] == "snappy"
    check(spark, made, [(1, "x"), (2, "y")], "APPEND")
    with pytest.raises(AnalysisException, match=r"(?i)already exists"):
        rows.writeTo(name).create()
    spark.sql("SELECT 7L AS n").writeTo(name).replace()
    replaced = load("made")
    assert (replaced.schema.primary_keys, replaced.schema.field_names) == ((), ("n",))
    check(spark, replaced, [(7,)], "APPEND", "OVERWRITE")
    spark.table(name).selectExpr("n", "n * 2 AS twice").writeTo(name).createOrReplace()
    check(spark, load("made"), [(7, 14)], "APPEND", "OVERWRITE", "OVERWRITE")
    spark.range(1).writeTo(table("fresh")).createOrReplace()
    check(spark, load("fresh"), [(0,)], "OVERWRITE")


@pytest.mark.parametrize("kind", ["append", "buckets", "key", "key parts"])
def test_streams_that_restart(
    spark: SparkSession,
    target: Callable[[str], str],
    load: Load,
    tmp_path: Path,
    kind: str,
) -> None:
    """Once between two batches, once after a batch that Spark forgot it had committed."""
    name = target(kind)

    def batch(*rows: tuple[int, str]) -> None:
        frame = spark.createDataFrame(list(rows), "id INT, p STRING").coalesce(1)
        frame.write.mode("append").parquet(str(tmp_path / "in"))

    def run() -> None:
        stream: DataFrame = spark.readStream.schema("id INT, p STRING").parquet(str(tmp_path / "in"))
        query = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).toTable(name).awaitTermination()

    batch((3, "y"), (4, "y"))
    run()
    batch((4, "z"), (5, "z"))
    run()
    upserted = {"key": [(1, "x"), (2, "x"), (3, "y"), (4, "z"), (5, "z")]}
    upserted["key parts"] = [*BEFORE, (4, "y"), (4, "z"), (5, "z")]
    expected = upserted.get(kind, [*BEFORE, (3, "y"), (4, "y"), (4, "z"), (5, "z")])
    check(spark, load("t"), expected, "APPEND", "APPEND", "APPEND")
    for entry in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        entry.unlink()
    run()
    check(spark, load("t"), expected, "APPEND", "APPEND", "APPEND")


@pytest.fixture
def middle(spark: SparkSession, table: Named) -> str:
    """A table whose two partition columns stand between and before others."""
    name = table("middle")
    spark.sql(
        f"CREATE TABLE {name} (id INT, a STRING, s STRUCT<x: INT, y: INT>, b STRING, "
        "v STRING DEFAULT 'none') PARTITIONED BY (a, b)"
    )
    return name


def rows(spark: SparkSession, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).select(*columns).collect())


def test_the_last_columns_of_a_query_are_those_of_its_partition(spark: SparkSession, middle: str) -> None:
    """As in Hive and in Spark's own tables; a struct's fields are taken by position, too."""
    struct = "named_struct('y', 1, 'x', 2)"
    for statement in (
        "INSERT INTO {} PARTITION (a, b) SELECT 1, {}, 'v1', 'a1', 'b1'",
        "INSERT INTO {} PARTITION (a = 'a2', B) SELECT 2, {}, 'v2', 'b2'",
        "INSERT INTO {} PARTITION (b = 'b3', a) SELECT 3, {}, 'v3', 'a3'",
        "INSERT INTO {} PARTITION (a, b) WITH q AS (SELECT 4, {} AS s, 'v4', 'a4', 'b4') SELECT * FROM q",
        "INSERT INTO {} PARTITION (a, b) SELECT 5, {}, DEFAULT, 'a5', 'b5'",
        "INSERT INTO {} PARTITION (a, b) VALUES (6, {}, DEFAULT, 'a6', 'b6'), (7, NULL, 'v7', 'a7', 'b7')",
        "INSERT INTO {} PARTITION (a = 'a8', b = 'b8') SELECT 8, {}, 'v8'",
        "INSERT INTO {} PARTITION (a, b) BY NAME SELECT 9 AS id, 'v9' AS v, 'b9' AS b, 'a9' AS a, {} AS s",
        "INSERT INTO {} PARTITION (a = 'a10') (b, id, s, v) SELECT 'b10', 10, {}, 'v10'",
    ):
        named = "BY NAME" in statement or "(b, id" in statement
        spark.sql(statement.format(middle, "struct(1 x, 2 y)" if named else struct))
    expected = [
        (n, f"a{n}", f"b{n}", "none" if n in (5, 6) else f"v{n}", None if n == 7 else 1) for n in range(1, 11)
    ]
    assert rows(spark, middle, "id", "a", "b", "v", "s.x") == expected


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_an_overwrite_replaces_the_partitions_of_its_last_columns(
    spark: SparkSession, middle: str, mode: str
) -> None:
    spark.sql(
        f"INSERT INTO {middle} PARTITION (a, b) VALUES "
        "(1, NULL, 'v', 'a', 'b'), (2, NULL, 'v', 'a', 'c'), (3, NULL, 'v', 'x', 'b')"
    )
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", mode)
    try:
        spark.sql(f"INSERT OVERWRITE {middle} PARTITION (a = 'a', b) SELECT 4, NULL, 'x', 'c'")
        kept = [] if mode == "static" else [(1, "a", "b")]
        assert rows(spark, middle, "id", "a", "b") == [*kept, (3, "x", "b"), (4, "a", "c")]
        spark.sql(f"INSERT OVERWRITE {middle} PARTITION (a, b) SELECT 5, NULL, 'b', 'x', 'b'")
        kept = [] if mode == "static" else [*kept, (4, "a", "c")]
        assert rows(spark, middle, "id", "a", "b") == [*kept, (5, "x", "b")]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def test_partition_clauses_that_are_refused(spark: SparkSession, middle: str) -> None:
    for clause, query, complaint in (
        ("b, a", "1, NULL, 'v', 'b', 'a'", r"name all of them in the table's order, \(a, b\)"),
        ("a", "1, NULL, 'v', 'b', 'a'", r"name all of them in the table's order, \(a, b\)"),
        ("a, c", "1, NULL, 'v', 'b', 'a'", "(?i)c"),
        ("a, b", "1, NULL, 'a', 'b'", "INSERT_COLUMN_ARITY_MISMATCH"),
        ("a, b", "1, NULL, 'v', 'w', 'a', 'b'", "INSERT_COLUMN_ARITY_MISMATCH"),
    ):
        with pytest.raises(AnalysisException, match=complaint):
            spark.sql(f"INSERT INTO {middle} PARTITION ({clause}) SELECT {query}")
    with pytest.raises(AnalysisException, match="there is no table"):
        spark.sql(f"INSERT INTO {middle}_not PARTITION (a, b) SELECT 1, 2")
    assert spark.table(middle).count() == 0


def test_other_tables_take_the_clause_as_they_did(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE spark_catalog.default.parts (id INT, v STRING, p STRING) PARTITIONED BY (p)")
    try:
        spark.sql("INSERT INTO spark_catalog.default.parts PARTITION (p) SELECT 1, 'v', 'p'")
        assert rows(spark, "spark_catalog.default.parts", "id", "p", "v") == [(1, "p", "v")]
    finally:
        spark.sql("DROP TABLE spark_catalog.default.parts")


@pytest.mark.parametrize("new", ["", ", 'new' AS extra"])
def test_schema_evolution_is_refused_by_name(spark: SparkSession, middle: str, new: str) -> None:
    source = f"(SELECT 1 AS id, 'a' AS a, named_struct('x', 1, 'y', 1) AS s, 'b' AS b, 'v' AS v{new})"
    clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    for statement in (
        f"MERGE WITH SCHEMA EVOLUTION INTO {middle} t USING {source} q ON t.id = q.id {clauses}",
        f"INSERT WITH SCHEMA EVOLUTION INTO {middle} BY NAME SELECT * FROM {source}",
        f"INSERT WITH SCHEMA EVOLUTION INTO {middle} SELECT * FROM {source}",
    ):
        with pytest.raises(AnalysisException, match=r"WITH SCHEMA EVOLUTION does not add columns to table"):
            spark.sql(statement)
    merged = spark.sql(f"SELECT * FROM {source}").mergeInto(middle, f.expr("false"))
    with pytest.raises(AnalysisException, match=r"WITH SCHEMA EVOLUTION does not add columns to table"):
        merged.whenNotMatched().insertAll().withSchemaEvolution().merge()
    assert spark.table(middle).count() == 0


CHANGES = (
    "INSERT INTO {t} VALUES (9, 'z')",
    "DELETE FROM {t} WHERE id = 9",
    "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 7",
    "UPDATE {t} SET id = 8 WHERE id = 7",
    "INSERT OVERWRITE {t} PARTITION (p = 'x') VALUES (4)",
    "CALL lake.sys.drop_partition('{n}', 'p=y')",
    "CALL lake.sys.rollback('{n}', '1')",
    "ALTER TABLE {t} ADD COLUMNS (more INT)",
    "INSERT INTO {t} VALUES (5, 'z', 1)",
    "TRUNCATE TABLE {t}",
)


@pytest.mark.parametrize(
    "changes", [(CHANGES[0], CHANGES[5]), pytest.param(CHANGES, marks=pytest.mark.long, id="all")]
)
def test_what_is_cached_shows_each_change(
    spark: SparkSession, target: Callable[[str], str], load: Load, database: str, changes: tuple[str, ...]
) -> None:
    """Of frames, of CACHE TABLE and of views; also a frame that was cached before two changes."""
    name = target("append")
    shapes = {
        "rows": f"SELECT id, p FROM {name} WHERE id > 0",
        "sum": f"SELECT count(*), sum(id) FROM {name}",
        "files": f"SELECT sum(record_count) FROM lake.{database}.`t$files`",
    }

    def found(query: str) -> list[Any]:
        return sorted(tuple(row) for row in spark.sql(query).collect())

    try:
        spark.sql(f"CACHE TABLE {name}")
        spark.sql(f"CREATE TEMPORARY VIEW cached_rows AS {shapes['rows']}")
        spark.sql("CACHE TABLE cached_rows")
        before: dict[str, DataFrame] = {}
        for change in changes:
            frames = {shape: spark.sql(query).cache() for shape, query in shapes.items()}
            assert all(frame.count() for frame in frames.values())
            spark.sql(change.format(t=name, n=f"{database}.t"))
            cached = {shape: found(query) for shape, query in shapes.items()}
            cached["view"] = found("SELECT * FROM cached_rows")
            of_frames = {
                (shape, age): sorted(tuple(row) for row in frame.collect())
                for age, some in enumerate((frames, before))
                for shape, frame in some.items()
            }
            rows = [(row["id"], row["p"]) for row in load("t").read().to_pylist()]
            truth: dict[str, list[Any]] = {
                "rows": sorted(rows),
                "sum": [(len(rows), sum(row[0] for row in rows) if rows else None)],
                "files": [(len(rows) or None,)],
            }
            assert cached == {**truth, "view": truth["rows"]}, change
            assert of_frames == {key: truth[key[0]] for key in of_frames}, change
            before = {shape: spark.sql(query).cache() for shape, query in shapes.items()}
    finally:
        spark.catalog.clearCache()
        spark.catalog.dropTempView("cached_rows")
