"""Columns of old files as types that were altered since: the vectors of `tests/fixtures/altered_types.json`.

The connector runs them too, on files of both formats.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import UnsupportedError
from lockgate.framework.store.schema.evolution import convert
from lockgate.framework.types import can_widen, parse_type, to_arrow, value_from_json, value_to_json

CASES = json.loads((Path(__file__).parents[3] / "fixtures" / "altered_types.json").read_text())


def converted(case: dict[str, Any], values: list[Any]) -> list[Any]:
    written, current = parse_type(case["from"]), parse_type(case["to"])
    stored = pa.chunked_array(
        [pa.array([value_from_json(written, value) for value in values], to_arrow(written))]
    )
    return [value_to_json(current, value) for value in convert(stored, written, current, "c").to_pylist()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['from']}-{case['to']}")
def test_values_of_altered_columns(case: dict[str, Any]) -> None:
    # Another engine may narrow a type, and then some values do not fit.
    assert can_widen(parse_type(case["from"]), parse_type(case["to"])) == ("refused" not in case)
    assert json.dumps(converted(case, case["values"])) == json.dumps(case["become"])
    for value in case.get("refused", []):
        with pytest.raises(UnsupportedError, match="column 'c' cannot be read as"):
            converted(case, [value])
