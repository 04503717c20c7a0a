"""Statistics of columns, by the vectors that the connector runs too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store.rows.file_statistics import ColumnCollector, StatsMode
from lockgate.framework.types import parse_type, to_arrow, value_from_json, value_to_json

CASES = json.loads((Path(__file__).parents[3] / "fixtures" / "statistics" / "columns.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_columns_of_the_vectors(case: dict[str, Any]) -> None:
    kind, mode = parse_type(case["type"]), StatsMode.parse(case["mode"])
    assert mode.counts == (case["nulls"] is not None)
    if not mode.counts:
        return
    collector = ColumnCollector(kind, mode)
    for value in case["values"]:
        collector.add(pa.chunked_array([pa.array([value_from_json(kind, value)], to_arrow(kind))]))
    low, high, nulls = collector.result()
    found = [value_to_json(kind, low), value_to_json(kind, high), nulls]
    assert repr(found) == repr([case["min"], case["max"], case["nulls"]])
