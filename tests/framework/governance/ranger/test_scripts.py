"""Scripts of conditions: Ranger's own cases, and what its jar says about others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ranger_random import Shape, asked_of, engine_of, generate

from lockgate.framework.governance.ranger.conditions.environment import KNOWN, Environment
from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.conditions.script import compiled
from lockgate.framework.governance.ranger.conditions.script_tokens import ScriptError

FIXTURES = Path(__file__).parents[3] / "fixtures" / "ranger" / "conditionevaluator"
# The assertions of Ranger's RangerRequestScriptEvaluatorTest.
CASES = json.loads((FIXTURES / "scripts.json").read_text())
# What Ranger's jar answers to other scripts; see tests/interop/test_ranger.py.
ANSWERS = json.loads((FIXTURES / "answers.json").read_text())


def environment(name: str) -> Environment:
    said = CASES["requests"][name]
    tags = said.get("tags", [])
    return Environment(
        RangerRequest(
            resource={"database": "db1", "table": "tbl1", "column": "col1"},
            access="select",
            action="query",
            user=said["user"],
            groups=frozenset(said.get("groups", ())),
            roles=frozenset(said.get("roles", ())),
            owner="testUser",
            tags=tags,
            current_tag=tags[0] if tags else None,
            users=CASES["userAttributes"],
            groups_known=CASES["groupAttributes"],
        )
    )


@pytest.mark.parametrize("name", CASES["requests"])
def test_scripts_give_what_ranger_expects(name: str) -> None:
    cases = [each for each in CASES["cases"] if each["request"] == name]
    found = [(each["script"], compiled(each["script"], KNOWN).value(environment(name))) for each in cases]
    assert cases
    assert found == [(each["script"], each["value"]) for each in cases]


def test_conditions_hold_where_they_hold_in_ranger() -> None:
    """Each script gives what the jar gives, or is refused: one that is refused never opens anything."""
    request = asked_of(ANSWERS["request"])
    asked = engine_of(generate(0, Shape(policies=1))).prepared(request)
    refused = []
    for script, (holds, _value) in ANSWERS["scripts"].items():
        try:
            found = compiled(script.strip(), KNOWN).holds(Environment(asked))
        except ScriptError:
            refused.append(script)
            continue
        assert found == holds, script
    assert sorted(refused) == sorted(ANSWERS["refused"])
