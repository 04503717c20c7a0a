"""Grants of rows as policies: a query shows exactly what is granted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from ranger_world import LEVELS, engine

from lockgate.errors import InputError
from lockgate.framework.governance.points.cover import covers
from lockgate.framework.governance.points.enforced import enforced_policies
from lockgate.framework.governance.points.point import Point
from lockgate.framework.governance.points.policies import PointGrant
from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.table_decision import decide_table
from lockgate.framework.governance.row_filters import parsed
from lockgate.pushdown.evaluation import evaluate

COLUMNS = ("id", "day", "name")
ROWS = [
    {"id": number, "day": day, "name": number * 10} for number, day in itertools.product(range(3), range(3))
]
Cell = tuple[int, int, str]
LIMITS = st.dictionaries(
    st.sampled_from(("id", "day")), st.frozensets(st.integers(0, 2), min_size=1, max_size=2), max_size=2
)
POINTS = st.builds(Point, st.just("db"), st.just("t"), st.none() | st.sampled_from(COLUMNS), LIMITS)


def holds(text: str, row: dict[str, int]) -> bool:
    return evaluate(parsed(text), {(name,): pa.scalar(value) for name, value in row.items()}) is True


def shown(policies: Sequence[dict[str, Any]], groups: Sequence[str] = ()) -> set[Cell]:
    """The values that ann sees: row and column."""
    named = dict(zip(LEVELS, ("lake", "db", "t"), strict=False))
    asked = RangerRequest(resource=named, access="select", user="ann", groups=frozenset(groups))
    answer = decide_table(engine(*policies), asked, COLUMNS)
    rows = answer.row_filter.info.get("filterExpr") if answer.row_filter.allowed else None
    found = set()
    for row, column in itertools.product(ROWS, COLUMNS):
        mask = answer.masks.get(column)
        text = str(mask.info["maskedValue"]) if mask is not None and mask.allowed else None
        condition = None if text is None else re.fullmatch(r"CASE WHEN (.*) THEN \{col\} END", text)
        if (
            answer.access[column].allowed
            and (rows is None or holds(rows, row))
            and (condition is None or holds(condition[1], row))
        ):
            found.add((row["id"], row["day"], column))
    return found


def granted(points: Sequence[Point]) -> set[Cell]:
    return {
        (row["id"], row["day"], column)
        for row, column in itertools.product(ROWS, COLUMNS)
        if any(
            covers(
                each, Point("db", "t", column, {"id": frozenset({row["id"]}), "day": frozenset({row["day"]})})
            )
            for each in points
        )
    }


def policies(points: Sequence[Point], number: int = 1, **who: tuple[str, ...]) -> list[dict[str, Any]]:
    grants = [PointGrant(each, **who) for each in points]
    return enforced_policies(grants, number=number, service="lake", catalog="lake")


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(POINTS, min_size=1, max_size=4))
def test_a_query_shows_what_is_granted(points: list[Point]) -> None:
    assert shown(policies(points, users=("ann",))) == granted(points)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(POINTS, min_size=1, max_size=3), st.lists(POINTS, min_size=1, max_size=3))
def test_grants_of_a_user_and_of_its_group_never_show_more(own: list[Point], groups: list[Point]) -> None:
    both = [*policies(own, users=("ann",)), *policies(groups, number=100, groups=("staff",))]
    assert shown(both, ["staff"]) <= granted([*own, *groups])
    assert shown(both) == granted(own)


def test_the_two_grains_of_rows() -> None:
    one = {"id": frozenset({1, 2})}
    table, mask, rows = policies([Point("db", "t", None, one)], users=("ann",))
    assert table["resources"]["column"] == {"values": ["*"]}
    assert rows["rowFilterPolicyItems"][0]["rowFilterInfo"] == {"filterExpr": "(`id` IN (1, 2))"}
    assert "column" not in rows["resources"]
    assert [each["id"] for each in (table, mask, rows)] == [1, 2, 3]
    column, _, _ = policies([Point("db", "t", "name", one)], users=("ann",))
    assert column["resources"]["column"] == {"values": ["name"]}
    assert len(policies([Point("db", "t", "name")], users=("ann",))) == 1


@pytest.mark.parametrize(
    ("grants", "message"),
    [
        ([], "at least one grant"),
        ([PointGrant(Point("db"), ("ann",))], "grant of a database"),
        ([PointGrant(Point("db", "t*"), ("ann",))], "wildcard"),
        ([PointGrant(Point("db", "t"), ("ann",)), PointGrant(Point("db", "u"), ("ann",))], "several tables"),
        ([PointGrant(Point("db", "t"), ("ann",)), PointGrant(Point("db", "t"), ("bob",))], "holders"),
        # The text of a policy: its words in braces are filled in for each request.
        ([PointGrant(Point("db", "t", None, {"a": frozenset({"${{USER.x}}"})}), ("ann",))], "braces"),
        ([PointGrant(Point("db", "t", None, {"{col}": frozenset({1})}), ("ann",))], "braces"),
        ([PointGrant(Point("db", "t", None, {"a": frozenset({None})}), ("ann",))], "null"),
    ],
)
def test_grants_that_cannot_be_written_are_refused(grants: list[PointGrant], message: str) -> None:
    with pytest.raises(InputError, match=message):
        enforced_policies(grants, number=1, service="lake")
