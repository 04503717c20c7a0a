"""Values in messages: the vectors of `tests/fixtures/json_values.json`, which the connector runs too.

Two codecs of Python read them: that of values in messages, and that of literals in predicates.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import InputError
from lockgate.framework.types import parse_type, to_spark_type, value_from_json, value_to_json
from lockgate.pushdown import from_json, to_json
from lockgate.pushdown.json_codec import reason_unsupported

CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "json_values.json").read_text())
LITERALS = [case for case in CASES if not parse_type(case["type"]).is_nested]


def named(case: dict[str, Any]) -> str:
    return json.dumps(case["type"])[:60]


def text_of(value: Any) -> str | None:
    """Return the text that Spark shows in UTC."""
    if isinstance(value, datetime.datetime):
        second, _, fraction = f"{value:%H:%M:%S.%f}".partition(".")
        text = f"{value.date()} {second}.{fraction.rstrip('0')}"
        return text.rstrip(".")
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_values_in_messages(case: dict[str, Any]) -> None:
    kind = parse_type(case["type"])
    values = [value_from_json(kind, value) for value in case["values"]]
    # The JSON tells the two zeros apart, and numbers from booleans.
    assert json.dumps([value_to_json(kind, value) for value in values]) == json.dumps(case["values"])
    if "texts" in case:
        assert [text_of(value) for value in values] == case["texts"]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_values_that_are_refused_in_messages(case: dict[str, Any]) -> None:
    kind = parse_type(case["type"])
    for value in case["refused"]:
        with pytest.raises(InputError, match="is not a value of type"):
            value_from_json(kind, value)


def compared(case: dict[str, Any], value: Any) -> dict[str, Any]:
    literal = {"value": value, "type": to_spark_type(parse_type(case["type"]))}
    return {"op": "=", "args": [{"col": ["c"]}, literal]}


@pytest.mark.parametrize("case", LITERALS, ids=named)
def test_literals_of_predicates(case: dict[str, Any]) -> None:
    for value in case["values"]:
        predicate = from_json(compared(case, value))
        assert predicate is not None
        assert json.dumps(to_json(predicate)["args"][1]["value"]) == json.dumps(value)


@pytest.mark.parametrize("case", LITERALS, ids=named)
def test_literals_that_are_refused_in_predicates(case: dict[str, Any]) -> None:
    for value in case["refused"]:
        assert from_json(compared(case, value)) is None, value
        assert reason_unsupported(compared(case, value))
