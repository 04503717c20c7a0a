"""Keys that move between partitions, written by Spark and by Python in turn: each lies in one place."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

Named = Callable[[str], str]
Load = Callable[[str], "Table"]

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("n", pa.int64())])


@pytest.fixture
def load(lake: Lake, database: str) -> Load:
    return lambda name: lake.catalog.load_table(f"{database}.{name}")


def make(spark: SparkSession, table: Named, name: str = "t", **options: str) -> str:
    """Make a table whose buckets have 7 keys at most."""
    made = table(name)
    given = {"primary-key": "id", "bucket": "-1", "dynamic-bucket.target-row-num": "7", **options}
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    spark.sql(
        f"CREATE TABLE {made} (id BIGINT, p STRING, n BIGINT) PARTITIONED BY (p) TBLPROPERTIES ({properties})"
    )
    return made


def read(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).collect())


def in_python(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.read().to_pylist())


def append(spark: SparkSession, name: str, rows: dict[int, tuple[str | None, int]]) -> None:
    given = [(key, *row) for key, row in rows.items()]
    spark.createDataFrame(given, "id long, p string, n long").writeTo(name).append()


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_statements_against_a_model(spark: SparkSession, table: Named, load: Load, file_format: str) -> None:
    name = make(spark, table, **{"file.format": file_format})
    model: dict[int, tuple[str | None, int]] = {}
    chosen = random.Random(11)
    for turn in range(12):
        keys = chosen.sample(range(40), 15)
        kind = turn % 6
        if kind == 2:
            spark.sql(f"DELETE FROM {name} WHERE id IN ({', '.join(map(str, keys[:5]))})")
            model = {key: row for key, row in model.items() if key not in keys[:5]}
        elif kind == 3:
            spark.sql(f"UPDATE {name} SET p = 'moved', n = {turn} WHERE id % 4 = 1")
            model = {key: ("moved", turn) if key % 4 == 1 else row for key, row in model.items()}
        elif kind == 4:
            others = {key: (chosen.choice("abc"), turn) for key in keys}
            source = ", ".join(f"({key}, '{p}', {n})" for key, (p, n) in others.items())
            spark.sql(
                f"MERGE INTO {name} t USING (SELECT * FROM VALUES {source} AS v(id, p, n)) s ON t.id = s.id "
                "WHEN MATCHED AND s.id % 5 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
                "WHEN NOT MATCHED THEN INSERT *"
            )
            gone = {key for key in others if key in model and key % 5 == 0}
            model = {key: row for key, row in (model | others).items() if key not in gone}
        elif kind == 5:
            written = {key: (chosen.choice("abc"), turn) for key in keys}
            load("t").append(
                pa.Table.from_pylist([{"id": k, "p": p, "n": n} for k, (p, n) in written.items()], SCHEMA)
            )
            model |= written
        else:
            written = {key: (chosen.choice(["a", "b", "c", None]), turn) for key in keys}
            append(spark, name, written)
            model |= written
        expected = sorted((key, *row) for key, row in model.items())
        assert read(spark, name) == in_python(load("t")) == expected
    spark.sql(f"CALL lake.sys.compact('{name.partition('.')[2]}')")
    assert read(spark, name) == sorted((key, *row) for key, row in model.items())
    live = load("t").manifests.live_files(load("t").latest_snapshot())
    assert {entry.file.file_name.rpartition(".")[2] for entry in live} == {file_format}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"merge-engine": "first-row"}, [(1, "a", 1), (2, "b", 5)]),
        ({"merge-engine": "partial-update"}, [(1, "a", 7), (2, "b", 6)]),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, [(1, "a", 10), (2, "b", 11)]),
    ],
)
def test_other_engines_keep_the_partition(
    spark: SparkSession, table: Named, load: Load, options: dict[str, str], expected: list[Any]
) -> None:
    name = make(spark, table, **options)
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1)")
    rows = "(1, 'b', 2), (2, 'b', 5), (2, 'c', 6), (1, 'c', 7)"
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM (VALUES {rows})")
    # Rows of first-row are shown once they are compacted.
    spark.sql(f"CALL lake.sys.compact('{name.partition('.')[2]}')")
    assert read(spark, name) == in_python(load("t")) == expected


def test_more_rows_than_are_asked_for_at_once(
    spark: SparkSession, table: Named, load: Load, lake: Lake
) -> None:
    """One task asks several times; a key that comes again is where its last row says."""
    name = make(spark, table, **{"dynamic-bucket.target-row-num": "20000"})
    rows = spark.range(0, 60_000, 1, 1).selectExpr(
        "id % 50000 AS id", "concat('p', (id % 50000 + id DIV 50000) % 3) AS p", "id AS n"
    )
    rows.coalesce(1).writeTo(name).append()
    table_found = load("t").read()
    assert table_found.num_rows == 50_000
    again = spark.table(name).where("p != concat('p', (id + n DIV 50000) % 3) OR n % 50000 != id")
    assert again.count() == 0
    moved = spark.range(0, 50_000, 1, 2).selectExpr("id", "concat('q', id % 2) AS p", "-id AS n")
    moved.writeTo(name).append()
    assert spark.table(name).where("p LIKE 'p%' OR n != -id").count() == 0
    assert spark.table(name).count() == 50_000


def test_whole_tables_are_overwritten_and_partitions_are_not(
    spark: SparkSession, table: Named, load: Load
) -> None:
    name = make(spark, table)
    append(spark, name, {1: ("a", 1), 2: ("b", 2)})
    spark.sql(f"INSERT OVERWRITE {name} SELECT /*+ COALESCE(1) */ * FROM (VALUES (2, 'a', 3), (3, 'c', 3))")
    assert read(spark, name) == [(2, "a", 3), (3, "c", 3)]
    with pytest.raises(Exception, match="its keys move between them"):
        spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = 'a') SELECT 3, 4")
    mode = "spark.sql.sources.partitionOverwriteMode"
    spark.conf.set(mode, "dynamic")
    try:
        with pytest.raises(Exception, match="its keys move between them"):
            spark.sql(f"INSERT OVERWRITE {name} VALUES (3, 'a', 4)")
    finally:
        spark.conf.unset(mode)
    assert read(spark, name) == [(2, "a", 3), (3, "c", 3)]
    spark.sql(
        f"CREATE OR REPLACE TABLE {name} PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'id', "
        "'bucket' = '-1') AS SELECT id, 'z' AS p, id AS n FROM range(2, 5)"
    )
    append(spark, name, {3: ("y", 9)})
    assert read(spark, name) == [(2, "z", 2), (3, "y", 9), (4, "z", 4)]
    spark.sql(f"TRUNCATE TABLE {name}")
    append(spark, name, {3: ("x", 1)})
    assert read(spark, name) == in_python(load("t")) == [(3, "x", 1)]


def test_a_stream_moves_keys(spark: SparkSession, table: Named, load: Load, tmp_path: Path) -> None:
    name = make(spark, table)
    rows = spark.readStream.schema("id LONG, p STRING, n LONG").option("maxFilesPerTrigger", 1)
    for number in range(3):
        batch = spark.range(10).selectExpr("id", f"concat('p', (id + {number}) % 3) AS p", f"{number}L AS n")
        batch.coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    query = rows.parquet(str(tmp_path / "in")).writeStream.option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).toTable(name).awaitTermination()
    assert len(load("t").snapshots()) == 3
    found = in_python(load("t"))
    assert [row[0] for row in found] == list(range(10))
    assert {row[2] for row in found} == {found[0][2]}  # all of one batch, the last one


def test_a_writer_that_was_first_refuses_the_later_one(
    spark: SparkSession, table: Named, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.framework.store.tables import table as tables

    name = make(spark, table)
    committing, others = tables.Table.commit, [pa.Table.from_pylist([{"id": 1, "p": "a", "n": 1}], SCHEMA)]

    def commit(self: Table, *arguments: Any, **named: Any) -> Any:
        if others:
            load("t").append(others.pop())
        return committing(self, *arguments, **named)

    monkeypatch.setattr(tables.Table, "commit", commit)
    with pytest.raises(Exception, match="repeat the statement"):
        append(spark, name, {1: ("b", 2)})
    assert read(spark, name) == [(1, "a", 1)]
    append(spark, name, {1: ("b", 2)})
    assert read(spark, name) == [(1, "b", 2)]
    files = {path.name for path in Path(load("t").location).rglob("data-*")}
    live = {entry.file.file_name for entry in load("t").manifests.live_files(load("t").latest_snapshot())}
    assert files >= live
    assert len(files) == 3  # nothing is left of the write that was refused
