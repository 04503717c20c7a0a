"""A table's columns decided together get the answers they get one by one."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from ranger_random import ASKED, Shape, asked_of, engine_of, generate
from ranger_world import allow, asked, deny, engine, mask

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.engine.result import Result
from lockgate.framework.governance.ranger.engine.table_decision import COLUMN, decide_table
from lockgate.framework.governance.ranger.policies.definition import PolicyType

COLUMNS = [*ASKED["column"], "other"]


def facts(result: Result) -> tuple[object, ...]:
    return result.allowed, result.audited, result.policy, result.info


def one_by_one(engine: Engine, asked: RangerRequest, kind: PolicyType) -> dict[str, Result]:
    return {
        column: engine.evaluate(replace(asked, resource={**asked.resource, COLUMN: column}), kind)
        for column in COLUMNS
    }


@pytest.mark.parametrize("seed", range(12))
def test_tables_are_decided_as_their_columns(seed: int) -> None:
    document = generate(seed, Shape(policies=60))
    engine, rnd = engine_of(document), random.Random(seed)
    for request in document["requests"][:60]:
        elements = {level: rnd.choice(ASKED[level]) for level in ("catalog", "database", "table")}
        asked = replace(asked_of(request), resource=elements, access="select", scope="SELF")
        found = decide_table(engine, asked, COLUMNS)
        for kind, answers in ((PolicyType.ACCESS, found.access), (PolicyType.MASK, found.masks)):
            wanted = one_by_one(engine, asked, kind)
            assert {name: facts(each) for name, each in answers.items()} == {
                name: facts(each) for name, each in wanted.items()
            }
        assert facts(found.row_filter) == facts(engine.evaluate(asked, PolicyType.FILTER))


def test_conditions_are_asked_for_each_column() -> None:
    only_id = {"type": "_expression", "values": ["RES.column == 'id'"]}
    found = engine(
        allow("lake.db.t.*", users=["ann"]),
        deny("lake.db.t.*", users=["ann"], conditions=[only_id]),
        mask("lake.db.t.ssn", "MASK_NULL", users=["ann"]),
    )
    answers = decide_table(found, asked("lake.db.t"), COLUMNS)
    assert [name for name, each in answers.access.items() if not each.allowed] == ["id"]
    assert [name for name, each in answers.masks.items() if each.allowed] == ["ssn"]
