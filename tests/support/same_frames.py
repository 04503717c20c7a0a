"""Comparing DataFrames of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def same(left: DataFrame, right: DataFrame) -> None:
    """Require the same columns, types and rows, in any order, and at least one row."""
    assert left.columns == right.columns
    assert left.schema.simpleString() == right.schema.simpleString()
    mine, theirs = (sorted((tuple(row) for row in frame.collect()), key=repr) for frame in (left, right))
    assert mine == theirs
    assert mine, "nothing was compared"
