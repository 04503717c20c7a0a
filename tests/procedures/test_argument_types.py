"""Types of arguments: what fits, what does not, and that JSON and SQL say the same."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.procedures.argument_types import value_type

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("string", "a"),
        ("BOOLEAN", True),
        ("INT", -5),
        ("BIGINT", 2**40),
        ("DOUBLE", 1.5),
        ("DATE", datetime.date(2026, 3, 1)),
        ("TIMESTAMP", NOON),
        ("ARRAY<STRING>", ["a", "b"]),
        ("map<string, bigint>", {"a": 1}),
        ("STRING", None),
    ],
)
def test_values_round_trip_through_json(ddl: str, value: Any) -> None:
    kind = value_type(ddl)
    assert kind.check(value) == value
    assert kind.from_json(kind.to_json(value)) == value


@pytest.mark.parametrize(
    ("ddl", "text", "value"),
    [
        ("BOOLEAN", "TRUE", True),
        ("INT", "7", 7),
        ("TIMESTAMP", "2026-03-01T12:00:00+00:00", NOON),
        ("ARRAY<INT>", "1, 2", [1, 2]),
        ("MAP<STRING,STRING>", "a=b,c=d", {"a": "b", "c": "d"}),
    ],
)
def test_text_of_the_command_line(ddl: str, text: str, value: Any) -> None:
    assert value_type(ddl).from_text(text) == value


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("STRING", 1),
        ("BOOLEAN", 1),
        ("INT", True),
        ("INT", 2**31),
        ("INT", 5.5),
        ("INT", 5.0),
        ("INT", "5.5"),
        ("INT", "true"),
        ("INT", "1_000"),
        ("INT", "\u0665"),
        ("INT", ""),
        ("INT", "9" * 5000),
        ("BIGINT", 5.5),
        ("BOOLEAN", "1"),
        ("DOUBLE", True),
        ("DATE", "20260301"),
        ("BIGINT", -(2**63) - 1),
        ("TIMESTAMP", "yesterday"),
        ("ARRAY<STRING>", "a"),
        ("MAP<STRING,INT>", {"a": "b"}),
    ],
)
def test_values_of_another_type_are_refused(ddl: str, value: Any) -> None:
    with pytest.raises(InputError):
        value_type(ddl).check(value)


def test_sql_sends_text_for_values_of_another_type() -> None:
    for ddl, text, value in (("INT", "5", 5), ("DOUBLE", "0.5", 0.5), ("BOOLEAN", "true", True)):
        kind = value_type(ddl)
        assert kind.check(kind.from_json(text)) == value


@pytest.mark.parametrize(("ddl", "text"), [("BOOLEAN", "maybe"), ("INT", "1.5"), ("DATE", "1.3.2026")])
def test_texts_of_another_type_are_refused(ddl: str, text: str) -> None:
    with pytest.raises(InputError, match=f"is not an? {ddl}"):
        value_type(ddl).from_text(text)


@pytest.mark.parametrize("ddl", ["DECIMAL(5,2)", "STRUCT<a: INT>", "ARRAY<ARRAY<INT>>", "INTEGRE"])
def test_other_types_are_refused(ddl: str) -> None:
    with pytest.raises(UnsupportedTypeError, match="cannot take or return"):
        value_type(ddl)


@given(st.text())
def test_quotes_in_sql_are_escaped(text: str) -> None:
    literal = value_type("STRING").to_sql(text)
    inner = literal[1:-1]
    assert inner.replace("\\\\", "").replace("\\'", "").count("'") == 0
    assert inner.replace("\\\\", "\0").replace("\\'", "'").replace("\0", "\\") == text or "\0" in text


def test_numbers_in_sql() -> None:
    assert value_type("BOOLEAN").to_sql(False) == "false"
    assert value_type("INT").to_sql(None) == "NULL"
    assert value_type("DOUBLE").to_sql(0.5) == "0.5D"
    assert value_type("TIMESTAMP").to_sql(NOON) == "TIMESTAMP '2026-03-01 12:00:00+00:00'"
    assert value_type("ARRAY<INT>").to_sql([1]) == "CAST(array(1) AS ARRAY<INT>)"
