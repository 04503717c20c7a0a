"""Functions, variables, views and parameters of a session that have names of a row filter or a mask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from governed_world import World
from pyspark.errors import AnalysisException
from ranger_world import allow, mask, row_filter
from spark_version import SPARK

if TYPE_CHECKING:
    from lockgate import Lake

OPEN = ["ann", "cal"]  # who is in department x


@pytest.fixture(scope="module")
def chosen(lake: Lake) -> Iterator[str]:
    """A table that the subquery of a row filter reads."""
    lake.sql("CREATE TABLE spark_catalog.default.chosen USING parquet AS SELECT 'x' AS dept")
    yield "spark_catalog.default.chosen"
    lake.sql("DROP TABLE spark_catalog.default.chosen")


def filtered(world: World, people: str, text: str, value: str = "name") -> str:
    world.put(
        allow(f"{people}.*", users=["ann"]),
        mask(f"{people}.name", "CUSTOM", value=value, users=["ann"]),
        row_filter(people, text, users=["ann"]),
    )
    return f"SELECT name FROM {people}"


def names(world: World, query: str) -> list[str]:
    return [row[0] for row in world.sql(query)]


def test_a_temporary_function_takes_no_name_of_a_policy(world: World, people: str) -> None:
    query = filtered(world, people, "upper(dept) = 'X'", "concat(lower(name), '')")
    tried = [
        "CREATE TEMPORARY FUNCTION upper AS 'org.apache.hadoop.hive.ql.udf.UDFPI'",
        "CREATE OR REPLACE TEMPORARY FUNCTION upper(t STRING) RETURNS STRING RETURN 'X'",
        "CREATE FUNCTION spark_catalog.default.upper(t STRING) RETURNS STRING RETURN 'X'",
    ]
    for statement in tried:
        with pytest.raises(Exception, match=r"denied|ALREADY_EXISTS|FORBIDDEN|may not"):
            world.sql(statement)
        assert names(world, query) == OPEN
    world.session("ann").udf.register("upper", lambda text: "X")
    try:
        assert names(world, query) == OPEN
    finally:
        world.session("ann")._jsparkSession.sessionState().catalog().dropTempFunction("upper", True)


def test_a_variable_takes_no_name_of_a_policy(world: World, people: str) -> None:
    query = filtered(world, people, "dept = 'x'")
    for statement in ("DECLARE OR REPLACE VARIABLE dept STRING DEFAULT 'x'", "SET VAR dept = 'x'"):
        world.sql(statement)
        assert names(world, query) == OPEN
    world.sql("DROP TEMPORARY VARIABLE dept")
    world.sql("DROP TEMPORARY VARIABLE IF EXISTS dept")
    # A filter of a column that is not there shows nothing, whatever variables there are.
    query = filtered(world, people, "region = 'x'")
    world.sql("DECLARE OR REPLACE VARIABLE region STRING DEFAULT 'x'")
    for text in (
        query,
        f"BEGIN DECLARE region STRING DEFAULT 'x'; {query}; END",
        f"BEGIN DECLARE region STRING DEFAULT 'x'; SELECT (SELECT max(id) FROM {people}); END",
    ):
        with pytest.raises(AnalysisException, match="does not suit the columns"):
            world.sql(text)
    query = filtered(world, people, "id IN (SELECT 1 FROM range(1) WHERE region = 'x')")
    with pytest.raises(AnalysisException, match="does not suit the columns"):
        world.sql(f"BEGIN DECLARE region STRING DEFAULT 'x'; {query}; END")
    world.sql("DROP TEMPORARY VARIABLE region")


def test_parameters_of_a_query_are_none_of_a_policy(world: World, people: str) -> None:
    query = filtered(world, people, "dept = :dept")
    with pytest.raises(AnalysisException, match="row filter or a mask"):
        world.session("ann").sql(f"{query} WHERE id < :dept", args={"dept": 5}).collect()
    query = filtered(world, people, "dept = ':dept' OR dept = 'x'")
    assert names(world, query) == OPEN
    rows = world.session("ann").sql(f"{query} WHERE name <> :dept", args={"dept": "y"}).collect()
    assert sorted(row[0] for row in rows) == OPEN


def test_views_and_schemas_of_a_session_take_no_name_of_a_policy(
    chosen: str, world: World, people: str
) -> None:
    query = filtered(world, people, "dept IN (SELECT dept FROM chosen)")
    assert names(world, query) == OPEN
    world.sql("CREATE OR REPLACE TEMPORARY VIEW chosen AS SELECT 'y' AS dept")
    assert names(world, query) == OPEN
    assert world.sql("SELECT dept FROM chosen") == [("y",)]
    world.sql("DROP VIEW chosen")
    world.sql("USE lake")
    assert names(world, query) == OPEN
    world.sql("USE spark_catalog.default")
    assert names(world, f"WITH chosen AS (SELECT 'y' AS dept) {query}") == OPEN
    assert names(world, f"BEGIN USE lake; {query}; END") == OPEN
    world.sql("USE spark_catalog.default")


@pytest.mark.skipif(SPARK < (4, 2), reason="SET PATH is of Spark 4.2")
def test_the_path_of_a_session_is_not_of_a_policy(chosen: str, world: World, people: str) -> None:
    query = filtered(world, people, "dept IN (SELECT dept FROM chosen) AND upper(dept) = 'X'")
    session = world.session("ann")
    session.conf.set("spark.sql.path.enabled", "true")
    try:
        world.sql("SET PATH = system.session, lake.db, system.builtin")
        assert names(world, query) == OPEN
    finally:
        session.conf.unset("spark.sql.path.enabled")


def test_a_collation_of_a_users_object_is_not_of_a_policy(world: World, people: str) -> None:
    query = filtered(world, people, "dept = 'X' OR name = 'CAL'")
    for text in (
        query,
        f"SELECT name COLLATE UTF8_LCASE FROM ({query})",
        f"SELECT a.name FROM ({query}) a WHERE a.name = 'ANN' COLLATE UTF8_LCASE",
    ):
        assert world.sql(text) == []
    world.sql(f"CREATE TEMPORARY VIEW lcase DEFAULT COLLATION UTF8_LCASE AS {query}")
    assert world.sql("SELECT * FROM lcase") == []
    world.sql("DROP VIEW lcase")
