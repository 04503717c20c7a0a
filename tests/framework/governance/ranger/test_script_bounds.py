"""Scripts, globs and addresses of policies are texts of others: each ends soon, in a value or ScriptError."""

from __future__ import annotations

import json
import random
import re
from fnmatch import fnmatchcase

import pytest

from lockgate.framework.governance.ranger.conditions import script as scripts
from lockgate.framework.governance.ranger.conditions.environment import KNOWN, Environment
from lockgate.framework.governance.ranger.conditions.evaluators import (
    UnsupportedConditionError,
    condition_of,
    resolved,
)
from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.conditions.script import compiled
from lockgate.framework.governance.ranger.conditions.script_tokens import ScriptError
from lockgate.framework.governance.ranger.matching.globs import glob
from lockgate.framework.governance.ranger.policies.definition import ServiceDefinition

# Ranger's own expression, which backtracks exponentially.
BRACKETS = re.compile(r"""\[\[([}{$"a-zA-Z0-9_.\[\]]+)(,['"](.+?)['"])*\]\]""")
REQUEST = RangerRequest(
    resource={"database": "d"},
    access="select",
    user="ann",
    groups=frozenset({"g1", "g2"}),
    users={"ann": {"teams": "a,b"}},
)


def value(text: str) -> object:
    return compiled(text, KNOWN).value(Environment(REQUEST))


def test_brackets_are_those_of_rangers_expression() -> None:
    random_texts = random.Random(35)
    for _ in range(30_000):
        pieces = random_texts.choices(["[[", "]]", "[", "]", "a", ",'", ',"', "'", '"', ",", "\n", " "], k=9)
        text = "".join(["[[a", *pieces])
        expected = BRACKETS.sub(lambda match: f'{match[1]}.split("{match[3] or ","}")', text)
        assert scripts._without_double_brackets(text) == expected, text


@pytest.mark.parametrize(
    "text",
    [
        "[[a" + ",'a'" * 2_000 + "]",
        "[[" * 10_000,
        "[[a" * 10_000,
        '[[a,"' * 6_000,
        "[[a]] " * 5_000,
        "'" * 30_001,
        "/*" * 10_000,
    ],
    ids=["lists", "brackets", "names", "quotes", "values", "texts", "comments"],
)
def test_texts_that_match_nothing_are_refused_soon(text: str) -> None:
    with pytest.raises(ScriptError):
        compiled(text, KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 400 + "1" + ")" * 400,
        "[" * 400 + "1" + "]" * 400,
        "!" * 5_000 + "true",
        "- " * 5_000 + "1",
        "{" * 5_000 + "}" * 5_000,
        "if (true) " * 3_000 + "1",
        "UGNAMES[" * 400 + "0" + "]" * 400,
        "IS_IN_GROUP(" * 400 + "'g'" + ")" * 400,
        "true ? " * 1_000 + "1" + " : 0" * 1_000,
    ],
)
def test_deep_scripts_are_refused(text: str) -> None:
    with pytest.raises(ScriptError, match="nested deeper than 32 levels"):
        compiled(text, KNOWN)


def test_long_scripts_are_refused() -> None:
    assert compiled("1" + " " * ((1 << 15) - 1), KNOWN)
    with pytest.raises(ScriptError, match="32,769 characters, more than 32,768"):
        compiled("1" + " " * (1 << 15), KNOWN)


def test_long_chains_are_read() -> None:
    """What stands side by side has no depth, however much of it there is."""
    assert value(" || ".join(["false"] * 3_000 + ["'last'"])) == "last"
    assert value(" && ".join(["true"] * 3_000 + ["0"])) == 0
    assert value("+".join(["1"] * 3_000)) == 3_000
    assert value("'a'" + ".toString()" * 2_000) == "a"
    assert value(" : ".join(["false ? 1"] * 2_000 + ["2"])) == 2
    branches = " else ".join(["if (IS_IN_GROUP('none')) { 1; }"] * 800)
    assert value(f"{branches} else if (IS_IN_GROUP('g2')) {{ 'mine'; }} else {{ 3; }}") == "mine"
    assert value("(" * 31 + "1" + ")" * 31) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 'ab';" + "x = x + x;" * 200, "more than 524,288 characters"),
        ("x = 'aa';" + "x = x.split('').join('aaaaaaaaaaa');" * 30, "more than 524,288 characters"),
        ("x = 'aa';" + "x = x + x;" * 12 + "x.split('').join('" + "-" * 20_000 + "')", "more than 524,288"),
        ("x = ['" + "a" * 9_000 + "'];" + "x = [x, x];" * 14 + "x + ''", "more than 524,288"),
        ("x = [1];" + "x = [x];" * 900 + "x.toString()", "nests lists deeper than 16 levels"),
        ("x = [USER];" + "x = [x, x, x, x, x, x];" * 14 + "J(x)", "more than 524,288"),
        ("x = 'aa';" + "x = x + x;" * 15 + "x.split('').intersects(x.split(''));" * 400, "8,388,608 steps"),
        (
            "x = 'aa';" + "x = x + x;" * 17 + "UGNAMES_x = x; GET_UG_NAMES(null, x, 0) + x + x + x",
            "more than",
        ),
    ],
    ids=["plus", "join", "mark", "lists", "nested", "json", "intersects", "macros"],
)
def test_values_and_steps_of_a_run_are_bounded(text: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        value(text)


def test_lists_intersect_where_an_element_is_strictly_equal() -> None:
    for one, other, expected in (
        ("[1, 2]", "[3, 2]", True),
        ("['1']", "[1]", False),
        ("[true]", "[1]", False),
        ("[NaN]", "[NaN]", False),
        ("[null]", "[undefined]", False),
        ("[undefined]", "[undefined]", True),
        ("[ [1]]", "[ [1]]", False),
        ("[]", "[]", False),
    ):
        assert value(f"{one}.intersects({other})") is expected, (one, other)


def test_numbers_and_letters_at_the_limits_have_values() -> None:
    digits = "9" * 5_000
    assert value(f"'0x{'f' * 5_000}' - 0") == float("inf")
    assert value(f"'{digits}' in [1]") is False
    assert value(r"'\ud800' < 'a'") is False


@pytest.mark.parametrize(
    "call", ["IS_ACCESS_TIME_BEFORE([1])", "ctx.isAccessTimeAfter(1)", "ctx.getAttributeValue()", "J(ctx)"]
)
def test_functions_called_with_other_arguments_are_refused(call: str) -> None:
    with pytest.raises(ScriptError, match="other arguments than it takes"):
        value(call)


def _document(text: str) -> dict[str, object]:
    return {"type": "_expression", "values": [text]}


def _service() -> ServiceDefinition:
    return ServiceDefinition(
        {"name": "s", "resources": [{"name": "database", "level": 1}], "accessTypes": []}
    )


def test_conditions_beyond_the_bounds_are_closed() -> None:
    """Too deep is known before anything is decided, and too large when it is met; none holds."""
    deep = condition_of(_document("(" * 400 + "true" + ")" * 400), _service())
    assert deep is not None
    assert deep.unreadable is not None
    assert not deep.holds(REQUEST)
    large = condition_of(_document("x = 'ab';" + "x = x + x;" * 200 + "true"), _service())
    assert large is not None
    with pytest.raises(UnsupportedConditionError, match="more than 524,288 characters"):
        large.holds(REQUEST)


def test_macros_beyond_the_bounds_are_empty() -> None:
    assert resolved("a${{" + "(" * 400 + "1" + ")" * 400 + "}}b${{USER.teams}}", REQUEST) == "aba,b"
    assert resolved("${{" * 200_000, REQUEST) == "${{" * 200_000


def test_globs_take_no_more_time_with_every_star() -> None:
    assert not glob("*a" * 40 + "b", False)("a" * 400)
    assert glob("*a" * 40, True)("A" * 400)
    random_globs = random.Random(35)
    for _ in range(5_000):
        pattern, text = ("".join(random_globs.choices(letters, k=7)) for letters in ("ab**?\n", "ab\n"))
        assert bool(glob(pattern, False)(text)) is fnmatchcase(text, pattern), (pattern, text)


def test_addresses_with_many_wildcards_end_soon() -> None:
    pattern = "10" + ".*" * 200_000
    document = {"type": "ip", "values": [pattern + "x", pattern]}
    service = ServiceDefinition(
        {
            "name": "s",
            "resources": [{"name": "database", "level": 1}],
            "accessTypes": [],
            "policyConditions": [{"name": "ip", "evaluator": "org.apache.ranger.RangerIpMatcher"}],
        }
    )
    condition = condition_of(json.loads(json.dumps(document)), service)
    assert condition is not None
    inside, outside = (
        RangerRequest(resource={}, access="select", user="ann", client_ip=ip)
        for ip in ("10.1.2.3", "11.1.2.3")
    )
    assert condition.holds(inside)
    assert not condition.holds(outside)
