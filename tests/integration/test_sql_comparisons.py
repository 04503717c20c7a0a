"""`SELECT * FROM t WHERE f < 111.321` and its kin mean what they mean in plain Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Named = Callable[[str], str]

VALUES = {
    "INT": ["110", "111", "112", "-2147483648", "2147483647", "NULL"],
    "BIGINT": ["110", "111", "112", "-9223372036854775808", "9223372036854775807", "NULL"],
    "FLOAT": [
        "111.321F",
        "111.32F",
        "111.33F",
        "float('NaN')",
        "float('-Infinity')",
        "-0.0F",
        "0.0F",
        "NULL",
    ],
    "DOUBLE": ["111.321D", "111.3209999D", "111.4D", "double('NaN')", "double('Infinity')", "-0.0D", "NULL"],
    "DECIMAL(9, 3)": ["111.321", "111.320", "111.322", "-999999.999", "0", "NULL"],
    "DECIMAL(20, 6)": ["111.321", "111.3209999", "111.321001", "NULL"],
}
CONDITIONS = [
    "f < 111.321",
    "f <= 111.321",
    "f > 111.321",
    "f = 111.321",
    "f <> 111.321",
    "f < 111.321D",
    "f < CAST(111.321 AS FLOAT)",
    "f = 0",
    "f >= 0.0",
    "f = double('NaN')",
    "f <=> NULL",
    "f IN (111, 111.321, 0)",
    "NOT (f < 111.321)",
    "f IS NULL OR f > 111",
    "f BETWEEN 110.5 AND 111.5",
]


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def expected(plain: DataFrame, conditions: list[str]) -> list[list[int]]:
    """The ids of the rows of which each condition is true, by plain Spark in one query."""
    truths = [f"({condition}) AS c{i}" for i, condition in enumerate(conditions)]
    rows = plain.selectExpr("id", *truths).collect()
    return [sorted(row.id for row in rows if row[f"c{i}"]) for i in range(len(conditions))]


@pytest.mark.parametrize("kind", VALUES)
def test_comparisons_as_in_plain_spark(spark: SparkSession, table: Named, kind: str) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, f {kind})")
    union = " UNION ALL ".join(
        f"SELECT {i} AS id, CAST({value} AS {kind}) AS f" for i, value in enumerate(VALUES[kind])
    )
    plain = spark.sql(union)
    # One file a value, so that statistics decide on each alone.
    plain.repartitionByRange(len(VALUES[kind]), "id").writeTo(name).append()
    for condition, wanted in zip(CONDITIONS, expected(plain, CONDITIONS), strict=True):
        assert ids(spark.sql(f"SELECT * FROM {name} WHERE {condition}")) == wanted, condition


def test_texts_and_patterns_are_those_of_the_vectors(spark: SparkSession) -> None:
    """Spark is the referee of what Python reads (`tests/pushdown/test_sql_reader.py`)."""
    vectors = json.loads((Path(__file__).parents[1] / "fixtures" / "sql_texts.json").read_text())
    (texts,) = spark.sql(f"SELECT {', '.join(text for text, _ in vectors['texts'])}").collect()
    assert list(texts) == [value for _, value in vectors["texts"]]
    values = spark.createDataFrame([[value for value, _, _ in vectors["likes"]]])
    likes = values.selectExpr(*(f"_{at} LIKE {each[1]}" for at, each in enumerate(vectors["likes"], 1)))
    assert list(likes.head() or ()) == [is_like for _, _, is_like in vectors["likes"]]


def _atom(pick: random.Random) -> str:
    column = pick.choice(["i", "d", "s", "p", "b", "t", "x"])
    number = pick.randrange(-3, 13)
    literals = {
        "i": str(number),
        "d": f"{number}.{pick.randrange(100):02d}",
        "s": f"'v{number}'",
        "p": f"'{pick.choice('abcz')}'",
        "b": pick.choice(["true", "false"]),
        "t": f"TIMESTAMP'2024-01-{pick.randrange(1, 29):02d} 03:00:00'",
        "x": f"{number}.5D",
    }
    literal = literals[column]
    shapes = [
        f"{column} {pick.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {literal}",
        f"{literal} < {column}",
        f"{column} IN ({literal}, {literal})",
        f"{column} IS NULL",
        f"{column} IS NOT NULL",
    ]
    if column in "sp":
        shapes += [f"{column} LIKE 'v1%'", f"{column} LIKE '%2'", f"{column} LIKE '%1%'"]
    return pick.choice(shapes)


def _condition(pick: random.Random, depth: int = 0) -> str:
    if depth == 2 or pick.random() < 0.3:
        return _atom(pick)
    left, right = _condition(pick, depth + 1), _condition(pick, depth + 1)
    return pick.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "key"])
def test_random_queries_as_in_plain_spark(spark: SparkSession, table: Named, keyed: bool) -> None:
    name = table("t")
    properties = "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '2')" if keyed else ""
    spark.sql(f"""
        CREATE TABLE {name} (id BIGINT, i INT, d DECIMAL(10, 2), s STRING, b BOOLEAN, t TIMESTAMP, x DOUBLE,
            p STRING) PARTITIONED BY (p) {properties}""")
    selected = """
        SELECT id + {at} AS id, IF(id % 11 = 0, NULL, CAST(id % 10 AS INT)) AS i,
            CAST(id % 13 - 2 AS DECIMAL(10, 2)) + CAST(0.25 AS DECIMAL(10, 2)) AS d,
            IF(id % 7 = 0, NULL, concat('v', id % 12)) AS s, id % 3 = 0 AS b,
            timestampadd(DAY, CAST(id % 28 AS INT), TIMESTAMP'2024-01-01 03:00:00') AS t,
            CASE WHEN id % 17 = 0 THEN double('NaN') WHEN id % 9 = 0 THEN NULL ELSE id % 12 + 0.5D END AS x,
            {p} AS p
        FROM range(60)"""
    pieces = [(at, p) for at in (0, 60) for p in ("'a'", "'b'", "'c'")]
    for at, p in pieces:
        spark.sql(selected.format(at=at, p=p)).coalesce(1).writeTo(name).append()
    union = " UNION ALL ".join(f"({selected.format(at=at, p=p)})" for at, p in pieces)
    plain = spark.sql(f"SELECT *, concat(id, p) AS key FROM ({union})").cache()
    rows = {row.key: row for row in plain.collect()}
    pick = random.Random(20240229)
    conditions = [_condition(pick) for _ in range(25)]
    truths = plain.selectExpr("key", *(f"({each}) AS c{i}" for i, each in enumerate(conditions))).collect()
    for i, condition in enumerate(conditions):
        columns = pick.sample(["id", "i", "d", "s", "b", "t", "x", "p"], pick.randrange(1, 5))
        wanted = [tuple(rows[row.key][column] for column in columns) for row in truths if row[f"c{i}"]]
        found = spark.sql(f"SELECT {', '.join(columns)} FROM {name} WHERE {condition}").collect()
        assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, wanted)), condition
    plain.unpersist()
