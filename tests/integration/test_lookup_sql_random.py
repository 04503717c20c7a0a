"""Random joins: in SQL, by `lookup_join`, and by Spark on the snapshot, over nulls, duplicates and types."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("lookups_end")]

# Types of keys with the stream's, and an expression of a small number `n`.
KEYS = {
    "BIGINT": ("SMALLINT", "n"),
    "INT": ("INT", "n - 3"),
    "STRING": ("STRING", "if(n % 2 = 0, '', concat('é', n))"),
    "DATE": ("DATE", "date_add(DATE'1969-12-30', cast(n AS INT))"),
    "TIMESTAMP": ("TIMESTAMP", "timestamp_micros(n * 1234567 - 5)"),
    "DECIMAL(12,3)": ("DECIMAL(12,3)", "n / 8"),
    "DOUBLE": ("DOUBLE", "if(n = 2, double('NaN'), if(n = 3, -0.0D, if(n = 4, 0.0D, n / 3)))"),
    "BINARY": ("BINARY", "cast(concat('b', n) AS BINARY)"),
}
CONDITIONS = (
    "d.v > 4",
    "d.w IS NOT NULL",
    "d.w LIKE 'w1%'",
    "d.v IN (1, 2, 3) OR d.w = 'w2'",
    "o.x > 3",
    "true",
)


def same(left: DataFrame, right: DataFrame) -> None:
    """Require the same rows; NaN is the same as NaN."""
    assert left.schema.simpleString() == right.schema.simpleString()
    mine, theirs = (sorted(map(repr, frame.collect())) for frame in (left, right))
    assert mine == theirs


def made(kind: str, expression: str, choice: random.Random) -> str:
    return f"cast(if(n % {choice.randint(5, 9)} = 0, null, {expression}) AS {kind})"


@pytest.mark.parametrize("seed", range(6))
def test_three_ways(
    spark: SparkSession, table: Callable[[str], str], options: dict[str, str], seed: int
) -> None:
    choice = random.Random(seed)
    kinds = choice.sample(list(KEYS), choice.randint(1, 2))
    name, kept = table("dim"), ", ".join(f"'{key}'='{value}'" for key, value in options.items())
    keys = [(f"k{number}", kind, KEYS[kind]) for number, kind in enumerate(kinds)]
    columns = ", ".join(f"{key} {kind}" for key, kind, _ in keys)
    spark.sql(f"CREATE TABLE {name} ({columns}, v INT, w STRING) TBLPROPERTIES ({kept})")
    values = ", ".join(made(kind, text, choice) for _, kind, (_, text) in keys)
    spark.sql(
        f"INSERT INTO {name} SELECT {values}, cast(id % 7 AS INT), if(id % 4 = 0, null, concat('w', id % 3)) "
        f"FROM (SELECT id, (id * {choice.randint(3, 11)}) % 13 AS n FROM range({choice.randint(30, 60)}))"
    )
    asked = ", ".join(f"{made(kind, text, choice)} AS s{n}" for n, (_, _, (kind, text)) in enumerate(keys))
    stream = spark.sql(
        f"SELECT {asked}, cast(id % 5 AS INT) AS x, id FROM (SELECT id, id % 17 AS n FROM range(80))"
    )
    stream.createOrReplaceTempView("asking")
    how, condition = choice.choice(["JOIN", "LEFT JOIN"]), choice.choice(CONDITIONS)
    met = " AND ".join(f"o.s{number} = d.k{number}" for number in range(len(keys)))
    text = f"SELECT o.*, d.v, d.w FROM asking o {how} {name} {{}} d ON {met}"
    clause = "FOR SYSTEM_TIME AS OF PROCTIME()"
    for more in ("", f" AND {condition}"):
        same(spark.sql(text.format(clause) + more), spark.sql(text.format("VERSION AS OF 1") + more))
    by_call = lookup_join(
        stream,
        name,
        on={f"s{number}": f"k{number}" for number in range(len(keys))},
        how="left" if how == "LEFT JOIN" else "inner",
        select=["v", "w"],
    )
    same(by_call, spark.sql(text.format(clause)))
