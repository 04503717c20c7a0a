"""Checks: the points of a statement and what lacks, found without running it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from governed_world import World, limit
from pyspark.errors import AnalysisException
from ranger_world import item, policy

from lockgate.errors import InputError
from lockgate.framework.governance import RequestFolder

if TYPE_CHECKING:
    from lockgate import Lake

    Named = Callable[[str], str]


@pytest.fixture
def world(world: World, people: str) -> World:
    return limit(world, people)


def jobs(lake: Lake) -> int:
    return len(lake.spark.sparkContext.statusTracker().getJobIdsForGroup(None))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT name FROM {t} WHERE id = 3", ["column name of {n} where id = 3"]),
        ("SELECT id FROM {t} WHERE id IN (1, 3)", ["column id of {n} where id in (1, 3)"]),
        ("SELECT count(*) FROM {t} WHERE dept = 'x'", ["table {n} where dept = 'x'"]),
        ("SELECT count(*) FROM {t}", ["table {n}"]),
        ("SELECT name FROM {t} WHERE id = 3 OR name = 'x'", ["column id of {n}", "column name of {n}"]),
        ("SELECT name FROM {t} WHERE id = 1 OR id = 3", ["column name of {n} where id in (1, 3)"]),
        ("SELECT id FROM (SELECT * FROM {t})", ["column id of {n}"]),
        ("SELECT id FROM {t} WHERE salary > 9", ["column id of {n}", "column salary of {n}"]),
        ("SELECT id FROM {t} ORDER BY salary", ["column id of {n}", "column salary of {n}"]),
        ("SELECT (SELECT max(ssn) FROM {t})", ["column ssn of {n}"]),
        (
            "WITH u AS (SELECT id, name FROM {t} UNION ALL SELECT id, dept FROM {t}) "
            "SELECT id FROM u WHERE name = 'x'",
            ["column id of {n} where name = 'x'", "column id of {n} where dept = 'x'"],
        ),
        (
            "SELECT a.name FROM {t} a LEFT JOIN {t} b ON a.id = b.id AND b.dept = 'x'",
            ["column id of {n}", "column name of {n}", "column id of {n} where dept = 'x'"],
        ),
    ],
)
def test_points_of_queries(world: World, lake: Lake, people: str, query: str, expected: list[str]) -> None:
    before = jobs(lake)
    found = lake.check(query.format(t=people), user="root")
    named = people.removeprefix("lake.")
    assert [point.text() for point in found.points] == [each.format(n=named) for each in expected]
    assert found.allowed
    assert jobs(lake) == before


def test_what_lacks_and_what_is_hidden(world: World, lake: Lake, people: str) -> None:
    found = lake.check(f"SELECT ssn, salary FROM {people}", user="ann")
    assert not found.allowed
    assert [each for each in found.missing if "salary" in each] == list(found.missing)
    assert found.ask == ("ask at the data office",)
    assert dict(found.hidden) == {f"table {people.removeprefix('lake.')}": ("rows", "values of column ssn")}
    assert "user ann may not run this statement" in str(found)
    assert lake.check(f"SELECT ssn FROM {people}", user="ann").allowed
    assert not lake.check(f"SELECT ssn FROM {people}", user="eve").allowed
    assert not world.records


@pytest.mark.parametrize(
    ("statement", "lacks"),
    [
        ("INSERT INTO {t} SELECT * FROM {t}", ["insert on table", "salary"]),
        ("DELETE FROM {t} WHERE id = 1", ["table {n}"]),
        ("CREATE TABLE {t}2 AS SELECT id FROM {t}", ["create on table {n}2"]),
        ("DROP TABLE {t}", ["drop on table {n}"]),
    ],
)
def test_statements_are_checked(
    world: World, lake: Lake, people: str, statement: str, lacks: list[str]
) -> None:
    found = lake.check(statement.format(t=people), user="ann")
    for each in lacks:
        assert each.format(n=people.removeprefix("lake.")) in str(found.missing)
    assert lake.check(statement.format(t=people), user="root").allowed


def test_a_call_is_not_checked(world: World, lake: Lake) -> None:
    with pytest.raises(InputError, match="a CALL cannot be checked"):
        lake.check("CALL lake.sys.compact(table => 'db.t')")


def test_users_check_and_list_their_own_rights(world: World, people: str) -> None:
    named = people.removeprefix("lake.")
    policy = world.session("ann")
    world.grant_calls("ann")
    row = policy.sql(f"CALL lake.sys.check_access(sql => 'SELECT ssn, salary FROM {people}')").collect()[0]
    assert not row.allowed
    assert row.reads == [f"column salary of {named}", f"column ssn of {named}"]
    assert any("salary" in each for each in row.lacks)
    shown = {
        tuple(each)[1:] for each in policy.sql(f"CALL lake.sys.show_grants(table => '{named}')").collect()
    }
    assert shown == {
        ("id", "shown", "some"),
        ("name", "shown", "some"),
        ("ssn", "masked", "some"),
        ("dept", "shown", "some"),
        ("salary", "denied", "some"),
    }
    tables = {each.table for each in policy.sql("CALL lake.sys.show_grants()").collect()}
    assert tables == {named}


def test_access_is_asked_for_and_granted_in_sql(world: World, people: str, tmp_path: Path) -> None:
    """Those who have no right yet may ask, and those alone grant who are delegated."""
    named = people.removeprefix("lake.")
    world.authorizer.requests = RequestFolder(tmp_path / "requests")
    world.put(policy(f"{people}.*", policyItems=[item("select", users=["bob"], delegateAdmin=True)]))
    ann, bob = world.session("ann"), world.session("bob")
    with pytest.raises(AnalysisException, match=rf"CALL sys\.request_access\(table => '{named}'\)"):
        ann.sql(f"SELECT id FROM {people}").collect()
    asked = ann.sql(f"CALL lake.sys.request_access(table => '{named}', columns => 'id')").collect()
    with pytest.raises(AnalysisException, match="delegateAdmin"):
        ann.sql(f"CALL lake.sys.grant(table => '{named}', columns => 'id', users => 'ann')").collect()
    seen = bob.sql("SELECT id, user, columns, state FROM lake.sys.access_requests").collect()
    assert [tuple(each) for each in seen] == [(asked[0].id, "ann", "id", "open")]
    bob.sql(f"CALL lake.sys.grant(table => '{named}', columns => 'id', users => 'ann')").collect()
    assert len(ann.sql(f"SELECT id FROM {people}").collect()) == 4
    with pytest.raises(AnalysisException, match="salary"):
        ann.sql(f"SELECT salary FROM {people}").collect()


def test_a_page_shows_points_grants_and_what_is_missing(world: World, lake: Lake, people: str) -> None:
    found = lake.check(f"SELECT name, ssn, salary FROM {people} WHERE id = 1", user="ann")
    by_column = {each.point.column: each for each in found.answers}
    first, _, third = world.policies[:3]
    assert by_column["name"].granted_by == (f"policy {first['id']}",)
    assert by_column["name"].hidden == ("rows",)
    assert by_column["ssn"].hidden == ("rows", "values of column ssn")
    assert third["policyType"] == 1
    assert by_column["salary"].granted_by == ()
    assert by_column["salary"].missing == found.missing
    page = found.page()
    assert f"policy {first['id']}" in page
    assert "WHERE id = 1" in page
    root = lake.check(f"SELECT count(*) FROM {people}", user="root").answers
    assert len(root[0].granted_by) == 1
