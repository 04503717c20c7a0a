"""Files that statistics may exclude, and files that they must not."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from lockgate.pushdown import AlwaysFalse, AlwaysTrue, ColumnStatistics, Predicate, col, may_match

NAN = math.nan
INTS = ColumnStatistics(pa.scalar(10), pa.scalar(20), 0)
TEXTS = ColumnStatistics(pa.scalar("ab"), pa.scalar("abz"), 1)
NULLS = ColumnStatistics(null_count=5)
FLOATS = ColumnStatistics(pa.scalar(-1.0), pa.scalar(1.0), 0)
STATISTICS = {("i",): INTS, ("s",): TEXTS, ("n",): NULLS, ("f",): FLOATS}


@pytest.mark.parametrize(
    ("predicate", "answer"),
    [
        (col("i") == 9, False),
        (col("i") == 10.5, True),
        (col("i").isin([1, 30]), False),
        (col("i").isin([]), False),
        (col("i") != 10, True),
        (col("i") < 10, False),
        (col("i") <= 10, True),
        (col("i") > 20, False),
        (~(col("i") <= 20), False),
        (col("i").is_null(), False),
        (col("i") == None, False),  # noqa: E711 - builds a predicate
        (col("i").eq_null_safe(None), False),
        (col("i") == "x", True),  # types do not compare, so the file may match
        (col("s").starts_with("ab"), True),
        (col("s").starts_with("b"), False),
        (~col("s").starts_with("ab"), False),
        (~col("s").starts_with("abz"), True),
        (col("s").contains("q"), True),
        (col("s").is_null(), True),
        (col("n") > 0, False),
        (col("n") != 0, False),
        (~col("n").starts_with("a"), False),
        (col("n").is_null(), True),
        (col("n").is_not_null(), False),
        # Writers omit NaN, the greatest of all values, from their bounds.
        (col("f") > 5, True),
        (col("f") == NAN, True),
        (col("f") >= NAN, True),
        (col("f") < -1, False),
        (col("f") == -2, False),
        (col("unknown") == 1, True),
        ((col("i") == 9) | (col("unknown") == 1), True),
        ((col("i") == 9) & (col("unknown") == 1), False),
        (AlwaysTrue(), True),
        (AlwaysFalse(), False),
    ],
)
def test_may_match(predicate: Predicate, answer: bool) -> None:
    assert may_match(predicate, STATISTICS, 5) is answer


def test_an_empty_file_matches_nothing() -> None:
    assert not may_match(AlwaysTrue(), {}, 0)


def test_float_bounds_count_without_nan() -> None:
    bounded = ColumnStatistics(pa.scalar(-1.0), pa.scalar(1.0), 0, nan_count=0)
    assert not may_match(col("f") > 5, {("f",): bounded}, 5)


def test_a_nan_minimum_excludes_nothing() -> None:
    first = ColumnStatistics(pa.scalar(NAN), pa.scalar(NAN), 0)
    assert may_match(col("f") < 0, {("f",): first}, 5)


def test_one_value_is_excluded_by_its_opposite() -> None:
    one = ColumnStatistics(pa.scalar(7), pa.scalar(7), 0)
    assert not may_match(col("i") != 7, {("i",): one}, 5)
    assert may_match(col("i") != 8, {("i",): one}, 5)
