"""The parser of SQL conditions: texts and patterns with Spark's meaning."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import InputError
from lockgate.pushdown import Comparison, Op, parse_condition
from lockgate.pushdown.evaluation import evaluate
from lockgate.pushdown.sql import sql_text

VECTORS = json.loads((Path(__file__).parents[1] / "fixtures" / "sql_texts.json").read_text())


@pytest.mark.parametrize(("text", "value"), VECTORS["texts"])
def test_texts_have_sparks_values(text: str, value: str) -> None:
    predicate = parse_condition(f"c = {text}")
    assert isinstance(predicate, Comparison)
    assert predicate.literals[0].as_py() == value


@pytest.mark.parametrize(("value", "pattern", "is_like"), VECTORS["likes"])
def test_patterns_match_as_in_spark(value: str, pattern: str, is_like: bool) -> None:
    row = {("c",): pa.scalar(value, pa.string())}
    assert evaluate(parse_condition(f"c LIKE {pattern}"), row) is is_like
    assert evaluate(parse_condition(f"c NOT LIKE {pattern}"), row) is not is_like


@pytest.mark.parametrize(
    "text", ["it's", "a\\tb", "\\%_", "a\nb", "${x}", "$\\{x}", "", "'", "\\", "\\u0041", "\0"]
)
def test_sql_texts_round_trip(text: str) -> None:
    predicate = parse_condition(f"c = {sql_text(text)}")
    assert isinstance(predicate, Comparison)
    assert predicate.literals[0].as_py() == text


@pytest.mark.parametrize(
    ("pattern", "op"),
    [
        ("'ab'", Op.EQ),
        ("'ab%'", Op.STARTS_WITH),
        ("'%ab'", Op.ENDS_WITH),
        ("'%ab%'", Op.CONTAINS),
        ("'a_b'", Op.LIKE),
        ("'%'", Op.LIKE),
    ],
)
def test_simple_patterns_can_be_pruned(pattern: str, op: Op) -> None:
    predicate = parse_condition(f"c LIKE {pattern}")
    assert isinstance(predicate, Comparison)
    assert predicate.op is op


@pytest.mark.parametrize(
    "text",
    [
        r"c = '\uD83D'",
        r"c = '\UFFFFFFFF'",
        "c = 'a",
        'c = "a"',
        "c = '${x}'",
        r"c LIKE 'a\\'",
        r"c LIKE 'a\\b'",
        "c LIKE 'a!b' ESCAPE '!'",
        "c LIKE 'ab' ESCAPE '!!'",
        "c = DATE '2026-01-01' 'x'",
        "c LIKE 1",
    ],
)
def test_ambiguous_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_condition(text)


def test_the_depth_of_parentheses_is_limited() -> None:
    """The parser also reads row filters of policies; repeated minus signs add no depth."""
    assert parse_condition("(" * 64 + "c = 1" + ")" * 64) == parse_condition("c = 1")
    with pytest.raises(InputError, match="parentheses nest deeper than 64 levels at token 65"):
        parse_condition("(" * 65 + "c = 1" + ")" * 65)
    assert parse_condition("NOT " * 5_000 + "c = 1") == parse_condition("c = 1")
    assert parse_condition("NOT " * 5_001 + "c = 1") == parse_condition("NOT c = 1")
    assert parse_condition("c = " + "- " * 5_001 + "1") == parse_condition("c = -1")
