"""Rows found by their bucket key, of each type, by `=` and IN: the same as without leaving out buckets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lockgate.framework.types import to_arrow
from lockgate.pushdown import col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

# By type, values as SQL that are in the table, and more literals that may be equal to some of them.
TYPES: dict[str, tuple[list[str], list[str]]] = {
    "BOOLEAN": (["true", "false"], []),
    "TINYINT": (["-128", "0", "7"], ["7L", "7.0BD"]),
    "SMALLINT": (["-32768", "0", "300"], ["300L", "300.00BD"]),
    "INT": (["-2147483648", "0", "70000"], ["70000L", "70000.0BD"]),
    "BIGINT": (["-9223372036854775808L", "0", "70000"], ["70000.0BD", "cast(0 AS SMALLINT)"]),
    "FLOAT": (["0.0F", "-0.0F", "1.5F", "float('NaN')"], ["0", "1.5BD"]),
    "DOUBLE": (["0.0D", "-0.0D", "1.5D", "double('NaN')"], ["0", "1.5BD"]),
    "DECIMAL(10,2)": (["1.50BD", "-7.00BD", "0.00BD"], ["1.5BD", "-7", "0.000BD", "1.500BD"]),
    "DECIMAL(30,3)": (["1.500BD", "123456789012345678901.250BD"], ["1.5BD", "123456789012345678901.25BD"]),
    "STRING": (["'ab'", "'ab  '", "''", "'ü'"], ["'ab '"]),
    "VARCHAR(5)": (["'ab'", "'ab  '", "''", "'abcde'"], ["'ab '", "'abcdef'"]),
    "CHAR(5)": (["'ab'", "''", "'abcde'", "'ü'"], ["'ab '", "'ab   '", "'ab       '", "'abcdef'"]),
    "BINARY": (["X''", "X'00'", "X'00FF'"], []),
    "DATE": (["DATE'1969-12-31'", "DATE'2024-02-29'"], ["'2024-02-29'", "TIMESTAMP'2024-02-29 00:00:00'"]),
    "TIMESTAMP": (["TIMESTAMP'2024-01-01 00:00:00.000001'", "TIMESTAMP'1969-12-31 23:59:59'"], []),
    "TIMESTAMP_NTZ": (["TIMESTAMP_NTZ'2024-01-01 00:00:00.5'"], ["TIMESTAMP'2024-01-01 00:00:00.5'"]),
}

# Types that are much like another one here: the long lane has them.
LIKE_OTHERS = {"BOOLEAN", "SMALLINT", "INT", "FLOAT", "DECIMAL(30,3)", "VARCHAR(5)", "TIMESTAMP_NTZ"}


def found(spark: SparkSession, name: str, condition: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {name} WHERE {condition}").collect())


def found_in_all(spark: SparkSession, name: str, conditions: list[str]) -> list[list[int]]:
    """Rows of each condition by one scan of all buckets: no condition of a column is pushed."""
    columns = ", ".join(f"{condition} AS c{number}" for number, condition in enumerate(conditions))
    rows = spark.sql(f"SELECT id, {columns} FROM {name}").collect()
    return [sorted(row.id for row in rows if row[f"c{number}"]) for number in range(len(conditions))]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] if kind in LIKE_OTHERS else []) for kind in TYPES]
)
def test_a_key_is_found_in_its_bucket(
    spark: SparkSession, lake: Lake, table: Callable[[str], str], kind: str
) -> None:
    name = table("t")
    values, others = TYPES[kind]
    spark.sql(f"CREATE TABLE {name} (id INT, k {kind}) TBLPROPERTIES ('bucket' = '7', 'bucket-key' = 'k')")
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
    spark.sql(f"INSERT INTO {name} VALUES {rows}, (99, null)")
    opened = lake.catalog.load_table(name.partition(".")[2])
    written = opened.read()
    # By another writer: CHAR without the blanks that Spark adds.
    keys = written["k"].combine_chunks()
    if kind.startswith("CHAR"):
        keys = pa.array([None if key is None else key.rstrip(" ") for key in keys.to_pylist()])
    ids = pa.array([number + 100 for number in written["id"].to_pylist()], pa.int32())
    opened.append(pa.table({"id": ids, "k": keys.cast(to_arrow(opened.schema.field("k").type))}))
    literals = [*values, *others]
    conditions = [f"k = {literal}" for literal in literals]
    conditions += [f"k IN ({literals[0]}, {literal})" for literal in literals[1:]]
    conditions += [f"k IN ({', '.join(literals)})", f"k <=> {literals[0]}", "k IS NULL"]
    for condition, expected in zip(conditions, found_in_all(spark, name, conditions), strict=True):
        assert found(spark, name, condition) == expected, condition
    every = [*range(len(values)), *range(100, 100 + len(values))]
    assert found(spark, name, f"k IN ({', '.join(values)})") == every
    rows_found = opened.read().to_pylist()
    for row in rows_found:
        alike = sorted(each["id"] for each in rows_found if each["k"] == row["k"])
        for where in (col("k") == row["k"], col("k").isin([row["k"]])):
            ids = sorted(opened.read(predicate=where)["id"].to_pylist())
            assert ids == alike or row["k"] is None or row["k"] != row["k"], (row, ids)
