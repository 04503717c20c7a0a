"""Bugs that recur in readers of this format, asked for in SQL; see `framework/store/test_known_bugs.py`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import lockgate
from lockgate.errors import MaskedDataWarning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


def ids(spark: SparkSession, query: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(query).collect())


@pytest.fixture
def numbers(spark: SparkSession, table: Named) -> str:
    """Five files, whose bounds of `v` are all alike; `id` grows from file to file."""
    name = table("numbers")
    spark.sql(f"CREATE TABLE {name} (id INT, v INT, s STRING)")
    for start in range(0, 50, 10):
        spark.sql(
            f"INSERT INTO {name} SELECT id, id % 10, concat('s', id) FROM range({start}, {start + 10}, 1, 1)"
        )
    return name


def test_4296_a_limit_counts_no_deleted_rows(spark: SparkSession, table: Named) -> None:
    name = table("k")
    spark.sql(f"CREATE TABLE {name} (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    spark.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(100)")
    compact = f"CALL lake.sys.compact(table => '{name.removeprefix('lake.')}', compact_strategy => 'full')"
    spark.sql(compact)
    spark.sql(f"DELETE FROM {name} WHERE id < 97")
    for limit in (1, 3, 4):
        assert len(spark.sql(f"SELECT * FROM {name} LIMIT {limit}").collect()) == min(limit, 3)
    appended = table("a")
    spark.sql(f"CREATE TABLE {appended} (id INT)")
    spark.sql(f"INSERT INTO {appended} SELECT id FROM range(0, 20, 1, 2)")
    spark.sql(f"DELETE FROM {appended} WHERE id % 10 <> 0")
    assert ids(spark, f"SELECT id FROM {appended} LIMIT 3") == [0, 10]


def test_7665_a_limit_comes_after_the_filter(spark: SparkSession, numbers: str) -> None:
    assert len(ids(spark, f"SELECT id FROM {numbers} WHERE v = 7 LIMIT 5")) == 5
    assert ids(spark, f"SELECT id FROM {numbers} WHERE v = 7 AND s LIKE '%47' LIMIT 1") == [47]
    assert ids(spark, f"SELECT id FROM {numbers} WHERE upper(s) = 'S49' LIMIT 1") == [49]


def test_8458_top_rows_are_chosen_after_the_filter(spark: SparkSession, numbers: str) -> None:
    query = "SELECT id FROM {} WHERE {} ORDER BY id DESC LIMIT 2"
    assert ids(spark, query.format(numbers, "v < 3 AND id < 30")) == [21, 22]
    assert ids(spark, query.format(numbers, "s IN ('s1', 's2', 's3')")) == [2, 3]
    assert ids(spark, query.format(numbers, "length(s) = 2")) == [8, 9]


def test_6085_top_rows_of_evolved_columns(spark: SparkSession, numbers: str) -> None:
    spark.sql(f"ALTER TABLE {numbers} ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"ALTER TABLE {numbers} RENAME COLUMN v TO w")
    spark.sql(f"ALTER TABLE {numbers} ADD COLUMN v INT")
    spark.sql(f"INSERT INTO {numbers} (id, w, s, v) VALUES (1099511627776, -5, 'last', 3)")
    top = "SELECT id FROM {} ORDER BY {} LIMIT 1"
    assert ids(spark, top.format(numbers, "id DESC")) == [1099511627776]
    assert ids(spark, top.format(numbers, "id")) == [0]
    assert ids(spark, top.format(numbers, "w")) == [1099511627776]
    assert ids(spark, top.format(numbers, "w DESC, id")) == [9]
    assert ids(spark, top.format(numbers, "v DESC NULLS LAST")) == [1099511627776]
    assert ids(spark, top.format(numbers, "v NULLS FIRST, id DESC")) == [49]


def foreign_schema(lake: Lake, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Give a table a next schema, as a writer would that allows what is refused here."""
    stored = lake.catalog.load_table(name.removeprefix("lake."))
    folder = Path(stored.location) / "schema"
    schema = json.loads((folder / f"schema-{stored.schema.id}").read_text())
    change(schema)
    schema["id"] += 1
    (folder / f"schema-{schema['id']}").write_text(json.dumps(schema))


def test_5825_bounds_of_text_are_not_those_of_numbers(spark: SparkSession, table: Named, lake: Lake) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING)")
    spark.sql(f"INSERT INTO {name} SELECT * FROM VALUES (1, '9'), (2, '10'), (3, '11') ORDER BY 1")
    foreign_schema(lake, name, lambda schema: schema["fields"][1].update(type="INT"))
    spark.sql(f"INSERT INTO {name} VALUES (4, 8), (5, 12)")
    assert ids(spark, f"SELECT s FROM {name}") == [8, 9, 10, 11, 12]
    for condition, expected in [
        ("s > 9", [10, 11, 12]),
        ("s < 10", [8, 9]),
        ("s = 10", [10]),
        ("s IN (9, 11)", [9, 11]),
        ("NOT (s <= 9)", [10, 11, 12]),
        ("s BETWEEN 9 AND 10", [9, 10]),
    ]:
        assert ids(spark, f"SELECT s FROM {name} WHERE {condition}") == expected, condition
    assert spark.sql(f"SELECT max(s), min(s) FROM {name}").collect() == [(12, 8)]
    assert ids(spark, f"SELECT s FROM {name} ORDER BY s DESC LIMIT 2") == [11, 12]


def test_9141_and_5874_deletion_vectors_need_a_full_compaction(spark: SparkSession, table: Named) -> None:
    name = table("k")
    vectors = "'deletion-vectors.enabled' = 'true'"
    spark.sql(f"CREATE TABLE {name} (id INT) TBLPROPERTIES ('primary-key' = 'id')")
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    with pytest.raises(AnalysisException, match=r"deletion-vectors\.enabled"):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({vectors})")


@pytest.fixture(params=["bounds", "Bloom filters"])
def _indexes(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    if request.param == "Bloom filters":
        spark.conf.set("orc.bloom.filter.columns", "f,d")
    yield
    spark.conf.unset("orc.bloom.filter.columns")


@pytest.mark.usefixtures("_indexes")
def test_9143_nan_is_found(spark: SparkSession, table: Named) -> None:
    name = table("n")
    spark.sql(f"CREATE TABLE {name} (id INT, f FLOAT, d DOUBLE)")
    for number, value in enumerate(["1.5", "double('NaN')", "-0.0D", "NULL", "double('Infinity')"]):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, {value}, {value}), (10, 1, 1)")
    for column in ("f", "d"):
        for condition, expected in [
            (f"isnan({column})", [1]),
            (f"{column} = double('NaN')", [1]),
            (f"{column} IN (double('NaN'), 0)", [1, 2]),
            (f"{column} > 1e300", [1, 4]),
            (f"NOT isnan({column}) AND {column} <> 1", [0, 2, 4]),
            (f"{column} = 0", [2]),
        ]:
            assert ids(spark, f"SELECT id FROM {name} WHERE {condition}") == expected, condition
        assert ids(spark, f"SELECT id FROM {name} ORDER BY {column} DESC LIMIT 1") == [1]


@pytest.mark.parametrize("key", ["", "'primary-key' = 'id', 'bucket' = '1', "], ids=["append", "key"])
def test_8570_masks_are_not_pruned_by_what_they_hide(
    spark: SparkSession, lake: Lake, lake_folder: Path, table: Named, key: str
) -> None:
    name = table("people")
    spark.sql(
        f"CREATE TABLE {name} (id INT, pay BIGINT, name STRING) TBLPROPERTIES "
        f"({key}'orc.encrypt' = 'pii:pay,name', 'orc.mask' = 'redact:pay,name')"
    )
    for start in (100, 200):
        spark.sql(
            f"INSERT INTO {name} SELECT id, id, concat('n', id) FROM range({start}, {start + 20}, 1, 1)"
        )
    assert ids(spark, f"SELECT id FROM {name} WHERE pay = 111 AND name = 'n111'") == [111]
    blind = lockgate.connect(str(lake_folder / "warehouse"), spark=lake.spark, catalog="blind_bugs")
    masked = f"{blind.name}.{name.removeprefix('lake.')}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskedDataWarning)
        rows = spark.table(masked).collect()
        for column, hidden in (("pay", "111"), ("name", "'n111'")):
            for mask in {row[column] for row in rows}:
                expected = sorted(row.id for row in rows if row[column] == mask)
                assert ids(spark, f"SELECT id FROM {masked} WHERE {column} = {mask!r}") == expected
            assert ids(spark, f"SELECT id FROM {masked} WHERE {column} = {hidden}") == []
        highest = spark.sql(f"SELECT max(pay), min(name) FROM {masked}").collect()[0]
        assert highest == (max(row.pay for row in rows), min(row.name for row in rows))


def test_bounds_say_nothing_of_expressions(spark: SparkSession, table: Named) -> None:
    for keys in ("", "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"):
        name = table("k" if keys else "a")
        spark.sql(f"CREATE TABLE {name} (id INT, d DATE) {keys}")
        spark.sql(
            f"INSERT INTO {name} SELECT id, date_add(DATE '2024-01-01', CAST(id AS INT)) FROM range(0, 8)"
        )
        spark.sql(
            f"INSERT INTO {name} SELECT id, date_add(DATE '2023-12-01', CAST(id AS INT)) FROM range(8, 20)"
        )
        for condition, expected in [
            ("id % 8 = 2", [2, 10, 18]),
            ("-id > -2", [0, 1]),
            ("abs(id - 10) < 2", [9, 10, 11]),
            ("CAST(id AS STRING) > '8'", [9]),
            ("day(d) = 2", [1]),
            ("month(d) = 12", list(range(8, 20))),
        ]:
            assert ids(spark, f"SELECT id FROM {name} WHERE {condition}") == expected, condition
        assert spark.sql(f"SELECT max(id % 8), min(-id) FROM {name}").collect() == [(7, -19)]
        assert ids(spark, f"SELECT id FROM {name} ORDER BY id % 8 DESC, id LIMIT 2") == [7, 15]
