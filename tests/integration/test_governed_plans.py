"""What plans, pages, generated code and failures tell about policies: no condition, and no hidden value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from governed_world import World
from ranger_world import allow, deny, mask, row_filter
from spark_version import SPARK

from lockgate.framework.spark.context.query_reports import PushDownExplanation, explain_pushdown
from lockgate.framework.spark.session.session import dispatcher

if TYPE_CHECKING:
    from lockgate import Lake

    Named = Callable[[str], str]

SECRETS = ("zebra", "424242", "giraffe")


@pytest.fixture
def world(world: World, people: str) -> World:
    world.put(
        allow(f"{people}.*", users=["ann"]),
        mask(f"{people}.ssn", "CUSTOM", value="concat('giraffe', right({col}, 1))", users=["ann"]),
        row_filter(people, "dept <> 'zebra' AND salary < 424242 AND id IN (1, 3)", users=["ann"]),
    )
    return world


def told(world: World, text: str) -> str:
    """All that Spark prints of a query before and after it ran."""
    session: Any = world.session("ann")
    frame = session.sql(text)
    execution: Any = frame._jdf.queryExecution()
    mode = session._jvm.org.apache.spark.sql.execution.ExplainMode.fromString
    modes = ("simple", "extended", "codegen", "cost", "formatted")
    before = [execution.explainString(mode(each)) for each in modes]
    frame.collect()
    nodes = session._jvm.org.apache.spark.sql.execution.SparkPlanInfo.fromSparkPlan(execution.executedPlan())
    tracked = [execution.toString(), str(execution.optimizedPlan()), nodes.toString()]
    return "\n".join([*before, *tracked])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, ssn FROM {t}",
        "SELECT count(*), max(ssn) FROM {t} GROUP BY dept",
        "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id WHERE b.name LIKE 'a%'",
        "SELECT id FROM range(5) WHERE id IN (SELECT id FROM {t})",
    ],
)
def test_plans_show_no_condition_of_a_policy(world: World, people: str, query: str) -> None:
    text = told(world, query.format(t=people))
    assert "rights of ann" in text
    assert [each for each in SECRETS if each in text] == []


def test_explain_shows_no_condition_of_a_policy(world: World, people: str) -> None:
    for mode in ("", "EXTENDED", "CODEGEN", "COST", "FORMATTED"):
        text = str(world.sql(f"EXPLAIN {mode} SELECT id, ssn FROM {people} WHERE id > 0"))
        assert "rights of ann" in text or "Found 0 WholeStageCodegen" in text
        assert [each for each in SECRETS if each in text] == []


def test_explain_pushdown_shows_no_scan_below_a_policy(world: World, lake: Lake, people: str) -> None:
    """A scan has the conditions of its row filter, and its figures count hidden rows."""

    def explained(query: str, user: str = "ann") -> PushDownExplanation:
        return explain_pushdown(world.session(user), dispatcher().reports, query.format(t=people))

    for query in (
        "SELECT id, ssn FROM {t} WHERE id > 0",
        "SELECT count(*) FROM {t}",
        "SELECT id FROM range(5) WHERE id IN (SELECT id FROM {t})",
    ):
        found = explained(query)
        assert (len(found), found.governed) == (0, 1)
        assert str(found) == "Policies hide rows or values, and so the scans, of 1 relation(s)."
        assert found.to_dict()["governed"] == 1
        assert len(explained(query, "root")) == 1
    world.put(allow(f"{people}.*", users=["ann"]), mask(f"{people}.ssn", "MASK_NULL", users=["ann"]))
    found = explained("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id AND b.ssn IS NULL WHERE a.id > 0")
    assert (len(found), found.governed) == (1, 1)
    assert "ssn" not in str(found)


def test_what_hides_nothing_that_is_used_costs_nothing(world: World, people: str) -> None:
    """A mask or a denial of a column that a query does not use leaves its plan as it is without policies."""

    def nodes(text: str) -> str:
        frame: Any = world.session("ann").sql(text)
        return str(frame._jdf.queryExecution().executedPlan())

    hidden = (
        mask(f"{people}.ssn", "MASK_NULL", users=["ann"]),
        deny(f"{people}.salary", users=["ann"]),
    )
    world.put(allow(f"{people}.*", users=["ann"]), *hidden)
    open_query = f"SELECT dept, count(name) FROM {people} WHERE length(name) = 3 GROUP BY dept ORDER BY dept"
    plan = nodes(open_query)
    assert "rights of ann" not in plan
    assert "BatchScan" in plan
    assert "lockgate.grant" not in plan
    assert world.sql(open_query) == [("x", 2), ("y", 2)]
    assert world.sql(f"SELECT count(*) FROM {people}") == [(4,)]
    for query in (
        f"SELECT id, ssn FROM {people}",
        f"SELECT id FROM {people} WHERE ssn IS NULL",
        f"SELECT max(ssn) FROM {people}",
        # Its scans are planned before the statement is known as a whole.
        f"SELECT id FROM range(5) WHERE id = (SELECT max(id) FROM {people})",
    ):
        assert "rights of ann" in nodes(query), query
    assert world.sql(f"SELECT count(ssn) FROM {people}") == [(0,)]
    for query in (
        f"SELECT input_file_name() FROM {people}",
        f"SELECT (SELECT f FROM (SELECT input_file_name() AS f FROM {people}) LIMIT 1)",
        f"SELECT id, input_file_name() FROM {people} WHERE length(name) = 3",
        f"SELECT salary FROM {people} ORDER BY id",
        f"SELECT id FROM {people} WHERE salary > 5",
    ):
        with pytest.raises(Exception, match="is denied to user 'ann'"):
            world.sql(query)
    world.put(allow(f"{people}.*", users=["ann"]), *hidden, row_filter(people, "id > 0", users=["ann"]))
    assert "rights of ann" in nodes(open_query)


def test_joins_and_aggregates_use_buckets_below_barriers(world: World, lake: Lake, table: Named) -> None:
    one, other = table("bucketed_one"), table("bucketed_other")
    for name, start, buckets in ((one, 0, 4), (other, 20, 2)):
        # What the driver reads has no buckets.
        properties = f"'bucket'='{buckets}', 'bucket-key'='id', 'source.split.driver-max-size'='0'"
        lake.sql(f"CREATE TABLE {name} (id BIGINT, v STRING, dept STRING) TBLPROPERTIES ({properties})")
        lake.sql(
            f"INSERT INTO {name} SELECT id, 'v', IF(id % 2 = 0, 'x', 'y') FROM range({start}, {start} + 40)"
        )
    every = [allow(f"{name}.*", users=["ann"]) for name in (one, other)]
    filters = [row_filter(name, "dept = 'x'", users=["ann"]) for name in (one, other)]
    world.put(*every, *filters, mask(f"{other}.v", "MASK_NULL", users=["ann"]))
    joined = f"SELECT /*+ MERGE(b) */ a.id, b.v FROM {one} a JOIN {{other}} b ON a.id = b.id"
    grouped = f"SELECT id, count(*) FROM {one} GROUP BY id"
    for query, rows in (
        (joined.format(other=one), [(key, "v") for key in range(0, 40, 2)]),
        (joined.format(other=other), [(key, None) for key in range(20, 40, 2)]),
        (grouped, [(key, 1) for key in range(0, 40, 2)]),
    ):
        frame: Any = world.session("ann").sql(query)
        assert sorted(map(tuple, frame.collect())) == rows
        plan = str(frame._jdf.queryExecution().executedPlan())
        assert "rights of ann" in plan
        if SPARK >= (4, 3) and query != joined.format(other=other):
            assert "Exchange" not in plan
    # Equal masks lie in several buckets.
    world.put(*every, *filters, mask(f"{one}.id", "CUSTOM", value="{col} % 3", users=["ann"]))
    assert world.sql(grouped) == [(0, 7), (1, 6), (2, 7)]
    assert len(world.sql(joined.format(other=one))) == 7 * 7 + 6 * 6 + 7 * 7


def test_errors_of_analysis_show_no_condition(world: World, people: str) -> None:
    with pytest.raises(Exception, match="salarie") as failed:
        world.sql(f"SELECT id FROM {people} GROUP BY id HAVING max(salarie) > 1")
    assert [each for each in SECRETS if each in str(failed.value)] == []


def test_a_policy_that_fails_tells_no_value(world: World, people: str) -> None:
    for said in ("CAST(name AS INT) > 0", "IF(dept = 'y', raise_error(ssn), true)", "1 / (id - 2) > -9"):
        world.put(allow(f"{people}.*", users=["ann"]), row_filter(people, said, users=["ann"]))
        for query in ("SELECT id FROM {t}", "SELECT count(*) FROM {t}", "SELECT id FROM {t} WHERE id = 2"):
            # Spark's optimizer computes what a user's own constants make constant.
            words = "A row filter or a mask of a policy fails with|DIVIDE_BY_ZERO"
            with pytest.raises(Exception, match=words) as failed:
                world.sql(query.format(t=people))
            for hidden in ("bob", "222-22", said, "name AS", "raise_error"):
                assert hidden not in str(failed.value)


def test_figures_of_a_plan_tell_nothing_of_hidden_rows(limited: World, people: str) -> None:
    figures = set()
    for condition in ("id = 4", "id = 99", "id < 2", "name LIKE 'd%'", "name LIKE 'e%'"):
        text = str(limited.sql(f"EXPLAIN COST SELECT max(id) FROM {people} WHERE {condition} GROUP BY id"))
        figures.add(str(re.findall(r"Statistics\([^)]*\)", text)))
        assert "rowCount" not in text
    assert len(figures) == 1, figures
    assert "sizeInBytes" in figures.pop()
