"""The necessary predicate of a Spark condition is true for every row for which the condition is true."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.pushdown import describe, evaluate, necessary_condition

C: dict[str, Any] = {"col": ["c"]}
UNKNOWN: dict[str, Any] = {"op": "?", "args": []}


def text(value: str | None) -> dict[str, Any]:
    return {"value": value, "type": "string"}


def op(name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"op": name, "args": [*arguments]}


def lower(node: dict[str, Any]) -> dict[str, Any]:
    return op("LOWER", node)


CASES = [
    (op("LIKE", C, text("a%b%c")), "startswith(c, 'a') AND contains(c, 'b') AND endswith(c, 'c')"),
    (
        op("RLIKE", C, text("mimi(katz|dogz)")),
        "contains(c, 'mimi') AND (contains(c, 'katz') OR contains(c, 'dogz'))",
    ),
    (op("MATCH", C, text("Foo bar")), "match(c, 'Foo bar')"),
    (op("LIKE", lower(C), text("%foo%bar%")), "c ILIKE '%foo%' AND c ILIKE '%bar%'"),
    (
        op("RLIKE", lower(C), text("foo.*(bar|baz)")),
        "c RLIKE '(?i)foo' AND (c RLIKE '(?i)bar' OR c RLIKE '(?i)baz')",
    ),
    (op("=", lower(C), text("a_b")), r"c ILIKE '%a\_b%'"),
    (op("IN", lower(C), text("a"), text("b")), "c ILIKE '%a%' OR c ILIKE '%b%'"),
    (op("CONTAINS", lower(C), text("")), "TRUE"),
    (op("NOT", op("LIKE", C, text("a%b%c"))), "c IS NOT NULL"),
    (op("NOT", op("=", lower(C), text("a"))), "c IS NOT NULL"),
    (op("NOT", op("<=>", lower(C), text("a"))), "TRUE"),
    (op("<=>", lower(C), text(None)), "TRUE"),
    (op("NOT", op("IS_NULL", lower(C))), "c IS NOT NULL"),
    (op("NOT", op("IS_NOT_NULL", lower(C))), "c IS NULL"),
    (op("RLIKE", C, text(None)), "c IS NOT NULL"),
    (op("RLIKE", C, text("(")), "c IS NOT NULL"),
    (op("LIKE", C, text("a\\b")), "TRUE"),
    (op("AND", UNKNOWN, op("RLIKE", C, text("ab"))), "contains(c, 'ab')"),
    (op("OR", UNKNOWN, op("RLIKE", C, text("ab"))), "TRUE"),
    (op("NOT", op("OR", UNKNOWN, op("<>", C, text("ab")))), "c = 'ab'"),
    (
        op("OR", op("AND", UNKNOWN, op("=", C, text("a"))), op("AND", op("LIKE", C, text("b%")), UNKNOWN)),
        "c = 'a' OR startswith(c, 'b')",
    ),
    (op("NOT", UNKNOWN), "TRUE"),
    (op("LIKE", op("UPPER", C), text("A%")), "TRUE"),
    (op("LIKE", C, {"value": 1, "type": "integer"}), "TRUE"),
]


@pytest.mark.parametrize(("node", "expected"), CASES)
def test_necessary_condition(node: dict[str, Any], expected: str) -> None:
    assert describe(necessary_condition(node)) == expected


def test_evaluated_columns_have_no_comparison_that_ignores_case() -> None:
    """Java's lower case of the value contains the text, Arrow's does not."""
    node = op("OR", op("CONTAINS", lower(C), text("i\N{COMBINING DOT ABOVE}s")), op("=", C, text("x")))
    expected = necessary_condition(node, ("c",))
    assert describe(expected) == "c IS NOT NULL OR c = 'x'"
    assert evaluate(expected, {("c",): pa.scalar("İs")}) is True


LETTERS = st.sampled_from([*"abAB%_", "İ", "ı", "ſ", "é", "😀"])
WORDS = st.text(LETTERS, max_size=3)
REGEXES = st.sampled_from(["ab", "(?i)ab", "a|b", "a.b", "^a", "b+", "(a|bA)B", "[ab]", "é?a"])
Truth = bool | None


@st.composite
def leaves(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """A comparison, and a function that evaluates it on a value."""
    kind = draw(st.sampled_from(["LIKE", "RLIKE", "=", "LOWER", "?", "IS_NULL"]))
    if kind == "RLIKE":
        regex = draw(REGEXES)
        return op(kind, C, text(regex)), lambda value: re.search(regex, value, re.S) is not None
    if kind == "?":
        truth = draw(st.sampled_from([True, False, None]))
        return UNKNOWN, lambda value: truth
    if kind == "IS_NULL":
        return op(kind, C), lambda value: value is None
    word = draw(WORDS)
    if kind == "LIKE":
        regex = "".join({"%": ".*", "_": "."}.get(each, re.escape(each)) for each in word)
        return op(kind, C, text(word)), lambda value: re.fullmatch(regex, value, re.S) is not None
    if kind == "LOWER":
        return op("CONTAINS", lower(C), text(word)), lambda value: word in value.lower()
    return op("=", C, text(word)), lambda value: value == word


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> tuple[dict[str, Any], Any]:
    kind = draw(st.sampled_from(["AND", "OR", "NOT", "leaf"])) if depth else "leaf"
    if kind == "leaf":
        node, meaning = draw(leaves())
        plain = node["op"] in ("?", "IS_NULL")
        return node, lambda value: None if value is None and not plain else meaning(value)
    if kind == "NOT":
        node, meaning = draw(conditions(depth - 1))
        return op("NOT", node), lambda value: negated(meaning(value))
    (left, first), (right, second) = draw(conditions(depth - 1)), draw(conditions(depth - 1))
    strong = kind == "OR"
    return op(kind, left, right), lambda value: joined(first(value), second(value), strong=strong)


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def joined(one: Truth, other: Truth, *, strong: bool) -> Truth:
    if strong in (one, other):
        return strong
    return None if None in (one, other) else not strong


@settings(max_examples=examples(300))
@given(conditions(), st.lists(st.one_of(st.none(), st.text(LETTERS, max_size=6)), min_size=1, max_size=5))
def test_the_necessary_condition_keeps_all_matching_rows(
    condition: tuple[dict[str, Any], Any], values: list[str | None]
) -> None:
    node, meaning = condition
    required = necessary_condition(node, ("c",))
    for value in values:
        if meaning(value) is True:
            assert evaluate(required, {("c",): pa.scalar(value, pa.string())}) is True, describe(required)
