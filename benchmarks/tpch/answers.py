"""DuckDB's answers to the queries, and whether other answers are the same."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import duckdb

from tpch.queries import QUERIES
from tpch.tables import TABLES, query

Row = tuple[object, ...]

# A double has between 15 and 17 digits.
_DOUBLE = Decimal("1e-14")


def answers(source: Path, scale: float) -> dict[int, list[Row]]:
    """DuckDB's answers, by the numbers of the queries, from the Parquet files in `source`."""
    with duckdb.connect() as database:
        names = {}
        for name in TABLES:
            names[name] = name
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{source / name}.parquet')")
        return {number: database.execute(query(number, names, scale)).fetchall() for number in QUERIES}


def differences(found: Sequence[Row], expected: Sequence[Row]) -> list[str]:
    """Say where answers differ, row by row in the order that the query asks for; nothing if they do not.

    Everything is compared exactly, but for averages and quotients: DuckDB's are doubles, and Spark's, which
    are decimals, must equal them in all their digits.
    """
    if len(found) != len(expected):
        return [f"{len(found)} rows instead of {len(expected)}"]
    return [
        f"row {number}: {one!r} instead of {other!r}"
        for number, (left, right) in enumerate(zip(found, expected, strict=True))
        for one, other in zip(left, right, strict=True)
        if not _same(one, other)
    ]


def _same(found: object, expected: object) -> bool:
    if isinstance(found, Decimal) and isinstance(expected, float):
        exponent = found.as_tuple().exponent
        assert isinstance(exponent, int)
        exact = Decimal(expected)
        return abs(found - exact) <= Decimal(5).scaleb(exponent - 1) + abs(exact) * _DOUBLE
    return found == expected
