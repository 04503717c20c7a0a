"""Ids of rows, also in files that rows were moved to."""

from __future__ import annotations

from typing import Any

import pytest
from tracked_rows import ROWS, tracked_table

from lockgate.framework.store import Catalog
from lockgate.pushdown import col


def tuples(found: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_rows_keep_their_ids(catalog: Catalog, form: str) -> None:
    table = tracked_table(catalog, form)
    assert tuples(table.read()) == [row[:2] for row in ROWS]
    assert tuples(table.system("row_tracking")) == ROWS
    assert tuples(table.system("row_tracking", predicate=col("k") > 2)) == ROWS[2:]
    assert tuples(table.system("row_tracking", columns=["v"], snapshot_id=1)) == [
        (row[1], *row[2:]) for row in ROWS if row[3] == 1
    ]
    assert table.system("row_tracking", limit=3).num_rows == 3
