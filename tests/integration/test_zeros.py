"""Both zeros come back as they were written, from each place that a number can have in a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

# A batch of the reader with zeros of both signs only, and one with other numbers too.
ROWS, BATCH = 5000, 4096
ZEROS = ["0.0", "-0.0", "-0.0", "0.0"]
NUMBERS = [*ZEROS, "NaN", "-0.0", "1.5"]
TABLES = {
    "plain": "",
    "encrypted": "TBLPROPERTIES ('orc.encrypt' = 'pii:d,f,st,ar,ma')",
    "key": "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')",
}


def number(at: int) -> str:
    numbers = ZEROS if at < BATCH else NUMBERS
    return numbers[at % len(numbers)]


def sql_number(at: str) -> str:
    # By texts: Spark takes the literals 0.0 and -0.0 for one.
    zeros, numbers = (", ".join(f"'{item}'" for item in items) for items in (ZEROS, NUMBERS))
    chosen = (
        f"IF({at} < {BATCH}, array({zeros})[{at} % {len(ZEROS)}], array({numbers})[{at} % {len(NUMBERS)}])"
    )
    return f"CAST({chosen} AS DOUBLE)"


def insert(spark: SparkSession, name: str, condition: str = "true") -> None:
    spark.sql(f"""
        INSERT INTO {name} SELECT id, x, CAST(x AS FLOAT), named_struct('d', x, 'f', CAST(x AS FLOAT)),
               array(x, y), map(id, CAST(x AS FLOAT))
        FROM (SELECT CAST(id AS INT) AS id, {sql_number("id")} AS x, {sql_number("(id + 1)")} AS y
              FROM range(0, {ROWS}, 1, 1)) WHERE {condition}""")


def texts(value: Any) -> Any:
    """The numbers of a value as texts, which tell the zeros apart."""
    if isinstance(value, dict):
        return texts(list(value.values()))
    return (
        [texts(item) for item in value]
        if isinstance(value, (list, tuple))
        else str(value).replace("nan", "NaN")
    )


@pytest.mark.parametrize("kind", TABLES)
def test_zeros_keep_their_signs(spark: SparkSession, lake: Lake, table: Named, kind: str) -> None:
    name = table("zeros")
    spark.sql(
        f"CREATE TABLE {name} (id INT, d DOUBLE, f FLOAT, st STRUCT<d: DOUBLE, f: FLOAT>, "
        f"ar ARRAY<DOUBLE>, ma MAP<INT, FLOAT>) {TABLES[kind]}"
    )
    insert(spark, name)
    if kind == "key":  # two files that are merged
        insert(spark, name, "id % 2 = 0")
    x = [number(at) for at in range(ROWS + 1)]
    wanted = [[x[i], x[i], [x[i], x[i]], [x[i], x[i + 1]], [x[i]]] for i in range(ROWS)]
    rows = sorted(spark.table(name).collect())
    assert [texts(row[1:]) for row in rows] == wanted
    read = lake.catalog.load_table(name.removeprefix("lake.")).read().sort_by("id")
    assert [texts([row["d"], row["f"]]) for row in read.select(["d", "f"]).to_pylist()] == [
        row[:2] for row in wanted
    ]


def test_zeros_of_a_type_that_was_widened(spark: SparkSession, table: Named) -> None:
    name = table("widened")
    spark.sql(f"CREATE TABLE {name} (id INT, f FLOAT, i INT)")
    spark.sql(f"INSERT INTO {name} SELECT id, {sql_number('id')}, 0 FROM range(0, {BATCH}, 1, 1)")
    for column in ("f", "i"):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE DOUBLE")
    for row in spark.table(name).collect():
        assert (str(row.f), math.copysign(1, row.i)) == (number(row.id), 1)


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
@pytest.mark.parametrize("properties", ["", "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '1')"])
def test_zeros_of_either_sign_are_two_partitions(
    spark: SparkSession, table: Named, lake: Lake, kind: str, properties: str
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, p {kind}) PARTITIONED BY (p) {properties}")
    rows = [(0, "0.0"), (1, "-0.0"), (2, "NaN"), (3, "-0.0"), (4, "0.0")]
    for number, text in rows[:2]:
        spark.sql(f"INSERT INTO {name} VALUES ({number}, CAST('{text}' AS {kind}))")
    values = ", ".join(f"({number}, CAST('{text}' AS {kind}))" for number, text in rows[2:])
    spark.sql(f"INSERT INTO {name} SELECT * FROM VALUES {values}")

    def stored(condition: str = "true") -> list[tuple[int, str]]:
        return [(each.id, str(each.p).replace("nan", "NaN")) for each in spark.sql(
            f"SELECT * FROM {name} WHERE {condition} ORDER BY id").collect()]  # fmt: skip

    assert stored() == rows
    assert (
        [number for number, _ in stored("p = 0")]
        == [number for number, _ in stored("p = -0.0D")]
        == [0, 1, 3, 4]
    )
    assert stored("p IN (0, 7)") == stored("NOT p > 0")
    counts = spark.sql(f"SELECT p, count(*) AS rows FROM {name} GROUP BY p").collect()
    assert sorted(each.rows for each in counts) == [1, 4]
    python = lake.catalog.load_table(name.partition(".")[2]).read().sort_by("id")
    assert python["id"].to_pylist() == [0, 1, 2, 3, 4]
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    spark.sql(f"CALL lake.sys.compact('{name.partition('.')[2]}')")
    assert [number for number, _ in stored()] == [0, 1, 2, 4]
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql(f"INSERT OVERWRITE {name} SELECT 9, CAST('-0.0' AS {kind})")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert stored() == [(0, "0.0"), (2, "NaN"), (4, "0.0"), (9, "-0.0")]


def test_statements_name_one_of_the_two_partitions_of_zeros(spark: SparkSession, table: Named) -> None:
    name = table("named")
    spark.sql(f"CREATE TABLE {name} (id INT, p DOUBLE, q INT) PARTITIONED BY (p, q)")
    call = f"CALL lake.sys.drop_partition('{name.partition('.')[2]}', partitions =>"

    def written() -> None:
        spark.sql(f"DELETE FROM {name}")
        rows = ", ".join(
            f"(CAST('{text}' AS DOUBLE), {q})" for text in ("0.0", "-0.0", "NaN") for q in (1, 2)
        )
        spark.sql(f"INSERT INTO {name} SELECT 0, * FROM VALUES {rows}")

    def shown(partition: str = "") -> list[str]:
        return [row[0] for row in spark.sql(f"SHOW PARTITIONS {name} {partition}").collect()]

    plus, minus, nan = (f"p={text}/q=2" for text in ("0.0", "-0.0", "NaN"))
    others = [f"p={text}/q=1" for text in ("-0.0", "0.0", "NaN")]
    for spec, gone in (("p=0.0", plus), ("p='-0.0'", minus), ("p='NaN'", nan)):
        kept = sorted({*others, plus, minus, nan} - {gone})
        text = gone.partition("/")[0]
        for statement, rest in (
            (f"ALTER TABLE {name} DROP PARTITION ({spec}, q=2)", kept),
            (f"TRUNCATE TABLE {name} PARTITION ({spec}, q=2)", kept),
            (f"{call} '{text},q=2')", kept),
            (f"INSERT OVERWRITE {name} PARTITION ({spec}, q=2) SELECT 1 WHERE false", kept),
            (f"INSERT OVERWRITE {name} PARTITION ({spec}, q) SELECT 1, 1", kept),
        ):
            written()
            assert shown(f"PARTITION ({spec})") == [f"{text}/q=1", gone]
            spark.sql(statement)
            assert sorted(shown()) == rest, statement
    written()
    assert shown() == [f"p={text}/q={q}" for text in ("-0.0", "0.0", "NaN") for q in (1, 2)]
    spark.sql(f"DELETE FROM {name} WHERE p = 0.0")  # a condition, by which the zeros are equal
    assert shown() == ["p=NaN/q=1", "p=NaN/q=2"]
