"""Points stored as policies of Ranger, and read from them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from ranger_world import allow, allowed, answer, deny, engine, mask

from lockgate.errors import InputError, PolicyError
from lockgate.framework.governance.points.cover import missing
from lockgate.framework.governance.points.point import Point
from lockgate.framework.governance.points.policies import PointGrant, points_of, policy_of

CONSTANTS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.text(max_size=6))
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="*?`\0"), min_size=1, max_size=6)
ROWS = st.dictionaries(NAMES, st.frozensets(CONSTANTS, min_size=1, max_size=3), max_size=2)
POINTS = st.one_of(
    st.builds(Point, NAMES),
    st.builds(Point, NAMES, NAMES, st.none() | NAMES, ROWS),
)


def stored(granted: PointGrant) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(
        json.dumps(policy_of(granted, number=7, service="lake", catalog="lake"))
    )
    return made


@settings(max_examples=examples(200), deadline=None)
@given(POINTS)
def test_a_point_is_read_as_it_was_stored(point: Point) -> None:
    granted = PointGrant(point, ("ann",), ("staff",), ("office",))
    assert points_of([stored(granted)]) == [granted]
    assert points_of([stored(granted)], catalog="lake") == [granted]
    assert points_of([stored(granted)], catalog="other") == []


def rows(text: str) -> list[dict[str, Any]]:
    return [{"type": "_expression", "values": [f'ROWS("{text}")']}]


ROW = Point("db", "t", "name", {"id": frozenset({1, 2})})


def test_the_engine_decides_by_stored_points_and_never_takes_rows_for_all_rows() -> None:
    column = stored(PointGrant(Point("db", "t", "id"), ("ann",)))
    database = stored(PointGrant(Point("open"), ("ann",)))
    limited = stored(PointGrant(ROW, ("ann",)))
    found = engine(column, database, limited)
    assert allowed(found, "lake.db.t.id")
    assert allowed(found, "lake.open.any.column")
    assert not allowed(found, "lake.db.t.name"), "the rows are a limit, not access to all rows"
    assert not answer(found, "lake.db.t.pay").allowed


def test_stored_points_cover_what_a_query_needs() -> None:
    grants = [each.point for each in points_of([stored(PointGrant(ROW, ("ann",)))])]
    needed = Point("db", "t", "name", {"id": frozenset({2, 3})})
    lacking = missing(needed, grants)
    assert lacking is not None
    assert lacking.text() == "column name of db.t where id = 3"


def test_who_has_a_point() -> None:
    granted = PointGrant(ROW, ("ann",), ("staff",), ("office",))
    assert granted.is_of("ann")
    assert granted.is_of("bob", groups=["staff"])
    assert granted.is_of("bob", roles=["office"])
    assert not granted.is_of("bob", ["others"], ["guests"])
    assert PointGrant(ROW, groups=("public",)).is_of("eve")


def test_only_policies_on_access_are_points() -> None:
    plain = allow("lake.db.t.id", users=["ann"])
    assert points_of([plain, mask("lake.db.t.id", "MASK_NULL", users=["ann"])]) == [
        PointGrant(Point("db", "t", "id"), ("ann",))
    ]
    assert points_of([{**plain, "isEnabled": False}]) == []
    assert points_of([allow("lake.db.t.id", "insert", users=["ann"])]) == []


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (deny("lake.db.t.id", users=["ann"]), "denies or has exceptions"),
        (allow("lake.db.t*.id", users=["ann"]), "wildcards or exclusions in level table"),
        (allow("lake.*.t.id", users=["ann"]), "wildcards or exclusions in level database"),
        (allow("lake.db.t.id", users=["ann"], conditions=[{"type": "ip"}]), "a condition that is not ROWS"),
        (
            allow("lake.db.t.id", users=["ann"], conditions=rows("pay > 4711")),
            "rows that are no constants",
        ),
        (
            allow("lake.db.t.id", users=["ann"], conditions=rows("pay = 47.11")),
            "other constants than",
        ),
    ],
)
def test_policies_that_are_no_points_are_refused(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message) as found:
        points_of([policy])
    assert "47" not in str(found.value).replace(f"policy {policy['id']}", "")


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (Point("db", "t*"), "has a wildcard"),
        (Point("db", "t", None, {"a": frozenset({None})}), "null is none"),
    ],
)
def test_points_that_no_policy_says_are_refused(point: Point, message: str) -> None:
    with pytest.raises(InputError, match=message):
        stored(PointGrant(point, ("ann",)))
    with pytest.raises(InputError, match="needs a user"):
        PointGrant(point)
