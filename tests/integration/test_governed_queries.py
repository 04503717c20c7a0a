"""Policies put upon queries of Spark: rows, values and columns that a user does not see."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from governed_world import SEEN, World
from pyspark.errors import AnalysisException

from lockgate.framework.plugins import plugins
from lockgate.framework.spark.bridge import gateway
from lockgate.framework.spark.session.session import dispatcher

if TYPE_CHECKING:
    from pyspark.sql import Row

    from lockgate import Lake

    Named = Callable[[str], str]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id, ssn FROM {t}", SEEN),
        ("SELECT id FROM {t} WHERE ssn = '111-11-1111'", []),
        ("SELECT id FROM {t} WHERE ssn = 'xxx-xx-1111'", [(1,)]),
        ("SELECT name FROM {t} WHERE id = 2", []),
        ("SELECT ssn FROM {t} WHERE id = 1", [("xxx-xx-1111",)]),
        ("SELECT count(*) FROM {t}", [(2,)]),
        ("SELECT count(*) FROM (SELECT * FROM {t})", [(2,)]),
        ("SELECT max(ssn), max(id) FROM {t}", [("xxx-xx-3333", 3)]),
        ("SELECT id FROM {t} ORDER BY id DESC LIMIT 1", [(3,)]),
        ("SELECT id FROM range(5) r WHERE EXISTS (SELECT 1 FROM {t} p WHERE p.id = r.id)", [(1,), (3,)]),
        ("SELECT 1 WHERE '111-11-1111' IN (SELECT ssn FROM {t})", []),
        ("SELECT (SELECT max(ssn) FROM {t})", [("xxx-xx-3333",)]),
        ("WITH c AS (SELECT * FROM {t}) SELECT a.id, b.ssn FROM c a JOIN c b ON a.id = b.id", SEEN),
        ("SELECT a.id, b.ssn FROM {t} a JOIN {t} b ON a.ssn = b.ssn", SEEN),
        ("SELECT r.id, l.ssn FROM range(5) r, LATERAL (SELECT ssn FROM {t} p WHERE p.id = r.id) l", SEEN),
        ("SELECT ssn FROM {t} UNION SELECT ssn FROM {t}", [(ssn,) for _, ssn in SEEN]),
        ("SELECT id FROM {t} WHERE 1 / (id - 2) > -9", [(1,), (3,)]),
        ("SELECT id FROM {t} WHERE IF(name = 'bob', raise_error('seen'), true)", [(1,), (3,)]),
        ("SELECT id, ssn FROM {t} VERSION AS OF 1", SEEN),
        ("SELECT id, lag(ssn) OVER (ORDER BY id) FROM {t}", [(1, None), (3, "xxx-xx-1111")]),
    ],
)
def test_a_query_sees_permitted_rows_and_masked_values(
    limited: World, people: str, query: str, expected: list[Any]
) -> None:
    assert limited.sql(query.format(t=people)) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {t}",
        "SELECT id FROM {t} WHERE salary > 90000",
        "SELECT id FROM {t} WHERE 1 / (salary - 5) > 0",
        "SELECT id FROM {t} ORDER BY salary",
        "SELECT count(*) FROM {t} GROUP BY salary",
        "SELECT max(salary) FROM {t}",
        "SELECT (SELECT max(salary) FROM {t})",
        "SELECT id FROM {t} WHERE id IN (SELECT id FROM {t} WHERE salary = 5)",
        "SELECT _FILE_PATH FROM {t}",
    ],
)
def test_a_denied_column_may_not_be_used(limited: World, people: str, query: str) -> None:
    with pytest.raises(AnalysisException, match=r"SELECT on table .*denied to user 'ann'; apply for: .*"):
        limited.sql(query.format(t=people))


def test_one_message_names_everything(limited: World, people: str) -> None:
    other = people.replace("people", "other")
    limited.session("root").sql(f"CREATE TABLE IF NOT EXISTS {other} (id BIGINT, v STRING)")
    with pytest.raises(AnalysisException) as refused:
        limited.sql(f"SELECT p.salary, o.v FROM {people} p JOIN {other} o ON o.id = p.id")
    database = people.split(".")[1]
    for text in (f"column {database}.people.salary", f"table {database}.other", "ask at the data office"):
        assert text in str(refused.value)


def test_rows_are_governed_in_threads_without_a_session(limited: World, people: str, tmp_path: Path) -> None:
    """As those of a program that hands a frame to a pool."""
    seen = limited.session("ann").table(people).select("id", "ssn")
    folder = tmp_path / "rows"
    folder.mkdir()

    def note(rows: Iterable[Row]) -> None:
        with open(f"{folder}/{uuid.uuid4()}", "w") as out:
            out.writelines(f"{row.id} {row.ssn}\n" for row in rows)

    with ThreadPoolExecutor(1) as threads:
        assert sorted(map(tuple, threads.submit(lambda: seen.rdd.collect()).result())) == SEEN
        for run in (lambda: seen.foreachPartition(note), lambda: seen.foreach(lambda row: note([row]))):
            threads.submit(run).result()
            lines = [line for each in folder.iterdir() for line in each.read_text().splitlines()]
            assert sorted(lines) == [f"{number} {ssn}" for number, ssn in SEEN]
            for each in folder.iterdir():
                each.unlink()


def test_functions_of_a_session_mean_nothing_in_policies(limited: World, people: str) -> None:
    session = limited.session("ann")
    for name in ("left", "mask", "concat", "right"):
        session.udf.register(name, lambda *values: str(values))
    assert limited.sql(f"SELECT id, ssn FROM {people}") == SEEN


def test_a_scan_that_was_planned_without_rights_is_refused(limited: World, people: str) -> None:
    plugins().unregister("governance-of-a-test")
    try:
        limited.session("ann").sql("SHOW TABLES IN lake.sys").collect()
        early = limited.session("ann").table(people).select("id", "ssn")
    finally:
        plugins().register(limited.authorizer, "governance-of-a-test")
    with pytest.raises(AnalysisException, match="planned under policies that have changed"):
        early.collect()


def test_the_first_query_after_python_came_is_decided(
    lake: Lake, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A query on files asks Lockgate nothing else, so that nothing has told the JVM of policies before."""
    path = str(tmp_path / "plain")
    lake.spark.range(3).write.parquet(path)  # whose answers say that nobody decides
    world: World = request.getfixturevalue("world")
    session, usual = world.session("ann"), gateway._server
    gateway._server = None
    try:
        gateway.register(lake.spark, dispatcher())
        with pytest.raises(AnalysisException, match="user 'ann'"):
            session.sql(f"SELECT * FROM parquet.`{path}`").collect()
    finally:
        assert gateway._server is not None
        gateway._server.close()
        gateway._server = usual
        gateway.register(lake.spark, dispatcher())


def test_the_first_query_after_a_plugin_came_is_decided(
    lake: Lake, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = str(tmp_path / "plain")
    lake.spark.range(3).write.parquet(path)
    world: World = request.getfixturevalue("world")
    with pytest.raises(AnalysisException, match="user 'ann'"):
        world.session("ann").sql(f"SELECT * FROM parquet.`{path}`").collect()


def test_records_of_refused_statements_have_their_text(limited: World, people: str) -> None:
    """For those who write them: an audit log masks the literals."""
    query = f"SELECT id FROM {people} WHERE salary > 90000"
    other = f"SELECT id FROM {people} WHERE salary > 1 OR name = '{'x' * 20_000}'"
    limited.records.clear()
    for text in (query, other):
        with pytest.raises(AnalysisException):
            limited.sql(text)
    texts = [each.statement for each in limited.records if not each.allowed]
    assert texts[0] == query
    assert texts[-1] == other[:8_000]
    limited.records.clear()
    with pytest.raises(AnalysisException):
        limited.session("ann").table(people).where("salary > 90000").count()
    assert {each.statement for each in limited.records} == {None}


def test_what_is_named_takes_a_right_though_nothing_is_read(limited: World, people: str) -> None:
    """Analysis would tell its columns. Naming a denied column is no use of it."""
    unused = ("WITH c AS (SELECT {} FROM {}) SELECT 1", "SELECT 1 FROM (SELECT {} FROM {}) WHERE false")
    for text in unused:
        limited.sql(text.format("salary", people))
        for column in ("salary", "no_such_column"):
            with pytest.raises(AnalysisException, match="is denied to user 'bob'") as found:
                limited.sql(text.format(column, people), "bob")
            assert "dept" not in str(found.value)


def test_records_of_permitted_queries_have_their_text_and_columns(limited: World, people: str) -> None:
    """Of users from whom something is hidden and of others, of scans and of what metadata answers."""
    path = people.replace(".", "/")

    def recorded(text: str, user: str = "ann") -> set[tuple[str, str | None, bool]]:
        limited.records.clear()
        limited.sql(text, user)
        return {(each.resource, each.statement, each.allowed) for each in limited.records}

    query = f"SELECT id, ssn FROM {people} WHERE name = 'ann'"
    # The row filter reads the department.
    read = {f"{path}/{column}" for column in ("id", "ssn", "name", "dept")}
    assert recorded(query) == {(each, query, True) for each in read}
    assert recorded(query, "root") == {(each, query, True) for each in read - {f"{path}/dept"}}
    for user in ("ann", "root"):
        count = f"SELECT count(*) FROM {people} -- by {user}"
        assert {each[1:] for each in recorded(count, user)} == {(count, True)}, user
        # A scalar subquery is optimized, and its scan planned, before the rest of the statement.
        within = f"SELECT id FROM range(5) WHERE id = (SELECT max(id) FROM {people} WHERE name > 'a')"
        assert {each[1:] for each in recorded(within, user)} == {(within, True)}, user
        limited.records.clear()
        limited.session(user).table(people).select("id").collect()
        assert {each.statement for each in limited.records} == {None}, "not that of a statement before"
    view = f"CREATE OR REPLACE TEMPORARY VIEW of_people AS SELECT id FROM {people} WHERE name <> 'zz'"
    limited.session("ann").sql(view)
    assert {each[1] for each in recorded("SELECT * FROM of_people")} == {"SELECT * FROM of_people"}
