"""Paimon's Java core and Lockgate read each other's values of every type, in every kind of table."""

from __future__ import annotations

from typing import Any

import pytest
from both_engines import Both, check_same, next_to
from exact_rows import Rows
from paimon_values import COLUMNS, ROWS

pytestmark = pytest.mark.interop

KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "append in buckets": {"options": {"bucket": "3", "bucket-key": "id"}},
    "append partitioned": {"partition_keys": ["part"]},
    "key": {"primary_keys": ["id"], "options": {"bucket": "2"}},
    "key partitioned": {
        "primary_keys": ["id", "part"],
        "partition_keys": ["part"],
        "options": {"bucket": "2"},
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_in_every_kind_of_table(both: Both, kind: str) -> None:
    both.theirs.create(COLUMNS, **KINDS[kind])
    both.theirs.write(ROWS)
    both.agree(ROWS)
    by_spark, by_python = next_to(both, "by_spark"), next_to(both, "by_python")
    for copy in (by_spark, by_python):
        copy.theirs.create(COLUMNS, **KINDS[kind])
    both.sql(f"INSERT INTO {by_spark.sql_name} SELECT * FROM {{t}}")
    by_python.ours.append(both.ours.read())
    by_spark.agree(ROWS)
    by_python.agree(ROWS)


def test_char_is_stored_with_its_blanks(both: Both) -> None:
    both.theirs.create([("id", "INT"), ("c", "CHAR(5)")])
    both.theirs.write([[1, "ab"], [2, "abcde"]])
    both.sql("INSERT INTO {t} VALUES (3, 'ab')")
    # Paimon's core cuts the blanks off; SQL, and so Spark, has them.
    assert both.theirs.read().rows == [[1, "ab"], [2, "abcde"], [3, "ab"]]
    with_blanks: Rows = [[1, "ab   "], [2, "abcde"], [3, "ab   "]]
    assert both.python_rows() == with_blanks
    assert both.spark_rows() == with_blanks
    assert both.spark_rows("id", "WHERE c = 'ab'") == [[1], [3]]


def test_nanoseconds_and_times(both: Both) -> None:
    rows: Rows = [[1, 1_600_000_000_123_456_789, 1_600_000_000_123_456_001, 86_399_999], [2, None, None, 0]]
    columns = [
        ("id", "INT"),
        ("t", "TIMESTAMP(9)"),
        ("z", "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        ("c", "TIME(3)"),
    ]
    both.theirs.create(columns)
    both.theirs.write(rows)
    check_same("Python", both.python_rows(), rows)
    copy = next_to(both, "copy")
    copy.theirs.create(columns)
    copy.ours.append(both.ours.read())
    check_same("Paimon", copy.theirs.read().rows, rows)
