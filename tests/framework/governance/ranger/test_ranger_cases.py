"""Ranger's own cases against our engine and matchers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import ranger_cases
from ranger_cases import ROOT, asked_of, differences, load
from ranger_random import SHAPES, engine_of, generate
from ranger_referee import answer_of

from lockgate.framework.governance.ranger.conditions.schedule import applies, zone_of
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.engine.search import names_of
from lockgate.framework.governance.ranger.matching.element import Element
from lockgate.framework.governance.ranger.matching.hierarchy import Hierarchies
from lockgate.framework.governance.ranger.matching.resource import Match, PolicyResource
from lockgate.framework.governance.ranger.matching.value_tokens import Names
from lockgate.framework.governance.ranger.policies.definition import PolicyType, ServiceDefinition
from lockgate.framework.governance.ranger.policies.resource_tags import TagMap

FIXTURES = Path(__file__).parents[3] / "fixtures" / "ranger"
# Conditions of these cases ask for the country of an address on the network, which is not looked up.
PLACES = "LOCATION_"
# How Ranger's own runner reads the names of matches.
MATCHES = {
    "selfordescendantmatch": {Match.SELF, Match.SELF_AND_ALL_DESCENDANTS, Match.DESCENDANT},
    "descendantmatch": {Match.DESCENDANT},
    "exactmatch": {Match.SELF, Match.SELF_AND_ALL_DESCENDANTS},
    "selforancestormatch": {Match.SELF, Match.SELF_AND_ALL_DESCENDANTS, Match.ANCESTOR},
    "ancestormatch": {Match.ANCESTOR},
    "anymatch": set(Match) - {Match.NONE},
    "selfandalldescendants": set(Match) - {Match.NONE},
}


def files(pattern: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))


def names(case: object) -> Names:
    context = case.get("evalContext") or {} if isinstance(case, dict) else {}
    tokens = {key: value for key, value in context.items() if key.startswith("token:")}
    return Names({key.removeprefix("token:"): value for key, value in tokens.items()})


def needs_places(engine: Engine, case: ranger_cases.Said) -> bool:
    """Return whether a policy about the resource of a case asks where an address is."""
    asked = engine.prepared(asked_of(case["request"], case))
    likely = engine.policies.index(PolicyType.ACCESS).likely(asked)
    about = [each for each in likely if any(one.match(asked.resource).is_whole for one in each.resources)]
    return any(PLACES in json.dumps(each.document) for each in about)


@pytest.mark.parametrize(
    "name", [*files("policyengine/test_policyengine_*.json"), *files("policyevaluator/test_inline_*.json")]
)
def test_requests_are_decided_as_by_ranger(name: str) -> None:
    wrong = {}
    places = 0
    for number, (engine, case) in enumerate(ranger_cases.cases(load(ROOT / name))):
        found = differences(engine, case)
        if found and needs_places(engine, case):
            places += 1
        elif found:
            wrong[f"{number}: {case.get('name')}"] = found
    assert not wrong
    assert places <= 2


@pytest.mark.parametrize("name", files("resourcematcher/test_resourcematcher_*.json"))
def test_elements_match_as_by_ranger(name: str) -> None:
    wrong = []
    for case in load(ROOT / name)["testCases"]:
        element = Element(case["resourceDef"], case["policyResource"])
        for test in filter(None, case["tests"]):
            if element.matches(test.get("input"), None, names(test)) != bool(test.get("result")):
                wrong.append((case["name"], test["name"]))
    assert not wrong


@pytest.mark.parametrize("name", files("resourcematcher/test_default*.json"))
def test_resources_match_as_by_ranger(name: str) -> None:
    document = load(ROOT / name)
    hierarchies = Hierarchies(document["serviceDef"]["resources"])
    wrong = []
    for case in document["testCases"]:
        resource = PolicyResource(hierarchies, case["policyResources"])
        for test in filter(None, case["tests"]):
            wanted = MATCHES.get((test.get("type") or "").lower())
            if wanted is None:
                continue  # Ranger's runner knows no such type either
            if "policy" in test:
                found = resource.match_policy(test["policy"]["resources"], None, names(test))
            else:
                found = resource.match((test.get("resource") or {}).get("elements") or {}, None, names(test))
            if (found in wanted) != bool(test.get("result")):
                wrong.append((case["name"], test["name"], found))
    assert not wrong


@pytest.mark.parametrize("name", files("policyengine/test_base_plugin_hbase.json"))
def test_a_plugin_decides_as_rangers(name: str) -> None:
    engine = Engine(load(ROOT / "policyengine" / "hbase-test-policies.json"))
    wrong = []
    for case in load(ROOT / name)["tests"]:
        if "result" in case:
            got = engine.evaluate(asked_of(case["request"], case))
            wanted = case["result"].get("isAllowed", False), case["result"].get("policyId", -1)
            if (got.allowed, got.policy) != wanted:
                wrong.append((case["name"], got, wanted))
    assert not wrong


@pytest.mark.parametrize("name", files("contextenricher/test_tagenricher_hive.json"))
def test_tags_are_found_as_by_ranger(name: str) -> None:
    document = load(ROOT / name)
    tags = TagMap(document, ServiceDefinition(document["serviceDef"]))
    for case in document["tests"]:
        asked = asked_of(case, {})
        found = sorted(tag["type"] for tag in tags.of(asked, names_of(asked)))
        assert found == sorted(tag["type"] for tag in case.get("result") or ()), case["name"]


@pytest.mark.parametrize("name", files("policyengine/validityscheduler/*.json"))
def test_schedules_apply_as_in_ranger(name: str) -> None:
    wrong = []
    for case in load(ROOT / name):
        at = ranger_cases.instant(case["accessTime"])
        assert at is not None
        if case["result"].get("isValid"):
            found = any(applies(each, at, zone_of("PST")) for each in case["validitySchedules"])
            if found != case["result"]["isApplicable"]:
                wrong.append(case["name"])
    assert not wrong


@pytest.mark.parametrize("shape", SHAPES)
def test_random_policies_are_decided_as_by_rangers_jar(shape: str) -> None:
    """Answers of the jar to random policies; tests/interop/test_ranger.py has a hundred times as many."""
    kept = json.loads((FIXTURES / "decisions.json").read_text())[shape]
    for seed, answers in kept.items():
        world = generate(int(seed), SHAPES[shape])
        engine = engine_of(world)
        found = [answer_of(engine, request) for request in world["requests"]]
        assert found == answers, f"seed {seed}"
