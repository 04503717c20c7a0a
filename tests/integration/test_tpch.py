"""The 22 queries of TPC-H on plain and on encrypted tables, next to DuckDB's answers from the same rows.

`./dev bench store --only tpch` does the same at scale 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from tpch.answers import Row, answers, differences
from tpch.queries import QUERIES
from tpch.tables import generate, load, query

from lockgate import Lake

SCALE = 0.01


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    generate(folder, SCALE)
    return folder


@pytest.fixture(scope="module")
def expected(source: Path) -> dict[int, list[Row]]:
    return answers(source, SCALE)


# An encrypted table takes every step that a plain one takes, and more.
@pytest.fixture(scope="module", params=[pytest.param("plain", marks=pytest.mark.slow), "encrypted"])
def names(request: pytest.FixtureRequest, lake: Lake, source: Path) -> Iterator[dict[str, str]]:
    database = f"tpch_{request.param}"
    lake.catalog.create_namespace(database)
    yield load(lake, source, database, encrypted=request.param == "encrypted")
    lake.catalog.drop_namespace(database, cascade=True)


@pytest.mark.long
@pytest.mark.parametrize("number", QUERIES)
def test_answers_equal_duckdb_s(
    lake: Lake, names: dict[str, str], expected: dict[int, list[Row]], number: int
) -> None:
    found = [tuple(row) for row in lake.sql(query(number, names, SCALE)).collect()]
    assert differences(found, expected[number]) == []
    assert expected[number]


def test_differences_are_seen() -> None:
    assert differences([(1, Decimal("0.3333"))], [(1, 1 / 3)]) == []
    assert differences([(1, Decimal("0.3334"))], [(1, 1 / 3)]) != []
    assert differences([(Decimal("0.10"),)], [(Decimal("0.11"),)]) == [
        "row 0: Decimal('0.10') instead of Decimal('0.11')"
    ]
    assert differences([(1,), (2,)], [(2,), (1,)]) != []
    assert differences([], [(1,)]) == ["0 rows instead of 1"]
