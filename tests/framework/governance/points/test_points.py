"""Permission points: the one rule of covering, unions of grants, and what a request says."""

from __future__ import annotations

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import InputError
from lockgate.framework.governance.points.cover import covers, missing
from lockgate.framework.governance.points.point import Point

DATABASE, TABLE = Point("db"), Point("db", "t")
ROW = Point("db", "t", rows={"id": frozenset({1})})
COLUMN = Point("db", "t", "name")
COLUMN_ROW = Point("db", "t", "name", {"id": frozenset({1})})


@pytest.mark.parametrize(
    ("grant", "covered"),
    [
        (DATABASE, {"DATABASE", "TABLE", "ROW", "COLUMN", "COLUMN_ROW"}),
        (TABLE, {"TABLE", "ROW", "COLUMN", "COLUMN_ROW"}),
        (ROW, {"ROW", "COLUMN_ROW"}),
        (COLUMN, {"COLUMN", "COLUMN_ROW"}),
        (COLUMN_ROW, {"COLUMN_ROW"}),
    ],
)
def test_grains_are_inherited(grant: Point, covered: set[str]) -> None:
    points = {
        "DATABASE": DATABASE,
        "TABLE": TABLE,
        "ROW": ROW,
        "COLUMN": COLUMN,
        "COLUMN_ROW": COLUMN_ROW,
    }
    assert {name for name, point in points.items() if covers(grant, point)} == covered
    assert not any(covers(grant, point) for point in (Point("other"), Point("db2", "t", "name")))


def ids(*values: int, column: str | None = "name", **more: frozenset[object]) -> Point:
    return Point("db", "t", column, {"id": frozenset(values), **more})  # type: ignore[dict-item]  # sets of numbers and of texts


def test_several_grants_cover_together() -> None:
    assert missing(ids(1, 2), [ids(1), ids(2)]) is None
    assert missing(ids(1, 2, 3), [ids(1), ids(3, column=None)]) == ids(2)
    assert missing(COLUMN, [ids(1), ids(2)]) == COLUMN, "constants never add up to all rows"


def test_limits_of_different_columns_are_independent() -> None:
    point = ids(1, 2, day=frozenset({"mon", "tue"}))
    grants = [ids(1), Point("db", "t", "name", {"day": frozenset({"mon"})})]
    assert missing(point, grants) == ids(2, day=frozenset({"tue"}))
    assert missing(ids(1), [Point("db", "t", "name", {"day": frozenset({"mon"})})]) == ids(1)


def test_too_many_cells_are_refused() -> None:
    point = Point("db", "t", None, {name: frozenset(range(50)) for name in "abc"})
    grant = Point("db", "t", None, {"a": frozenset({1})})
    with pytest.raises(InputError, match="125000"):
        missing(point, [grant])
    assert missing(point, [TABLE]) is None


def test_points_are_said_in_the_words_of_a_request() -> None:
    assert ids(2, 3).text() == "column name of db.t where id in (2, 3)"
    assert Point("db", "t", None, {"who": frozenset({"o'neil"})}).text() == "table db.t where who = 'o''neil'"
    assert DATABASE.text() == "database db"
    assert "eve" not in f"{Point('db', 't', None, {'who': frozenset({'eve'})})!r}"
    assert str(ids(2, 3)) == "column name of db.t where id is one of 2"


@pytest.mark.parametrize(
    "said", [{"column": "c"}, {"rows": {"a": {1}}}, {"table": "t", "rows": {"a": frozenset()}}]
)
def test_points_that_mean_nothing_are_refused(said: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Point("db", **said)  # type: ignore[arg-type]  # wrong on purpose


LIMITS = st.dictionaries(
    st.sampled_from("ab"), st.frozensets(st.integers(0, 3), min_size=1, max_size=4), max_size=2
)
POINTS = st.builds(Point, st.just("db"), st.just("t"), st.sampled_from([None, "c", "d"]), LIMITS)


@settings(max_examples=examples(200), deadline=None)
@given(POINTS, st.lists(POINTS, max_size=4))
def test_what_is_missing_is_what_rows_say(point: Point, grants: list[Point]) -> None:
    """Each combination of constants of a point is a row; 9 stands for any other constant."""
    domain = {name: point.rows.get(name, frozenset(range(4)) | {9}) for name in "ab"}
    rows = [{"a": one, "b": other} for one in domain["a"] for other in domain["b"]]
    about = [each for each in grants if each.column in (None, point.column)]

    def covered(row: dict[str, object]) -> bool:
        return any(all(row[name] in values for name, values in each.rows.items()) for each in about)

    found = missing(point, grants)
    if found is None:
        assert all(covered(row) for row in rows)
    else:
        assert covers(point, found)
        lacking = [row for row in rows if not covered(row)]
        # A limit on a column of which the point says nothing never adds up to all of its values.
        assert lacking or set().union(*(set(each.rows) for each in about)) - set(point.rows)
        assert all(row[name] in values for row in lacking for name, values in found.rows.items())
