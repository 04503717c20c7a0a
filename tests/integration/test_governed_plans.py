"""What plans, pages, generated code and failures tell about policies: no condition, and no hidden value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from governed_world import World
from ranger_world import allow, mask, row_filter

if TYPE_CHECKING:
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
