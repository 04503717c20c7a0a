"""The service definition for Ranger's admin: all that a smaller one has, and more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ranger_world import allow, allowed

from lockgate.cli.main import main
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.sql_masks import sql_of
from lockgate.governance import service_definition

# The definition that plugins for Paimon have in common: what policies of theirs may name.
LEVELS = {
    "catalog": (10, ""),
    "database": (20, "catalog"),
    "table": (30, "database"),
    "column": (40, "table"),
}
ACCESSES = ("show", "insert", "alter", "create", "drop", "select", "all")
MASKS = (
    "MASK",
    "MASK_SHOW_LAST_4",
    "MASK_SHOW_FIRST_4",
    "MASK_HASH",
    "MASK_NULL",
    "MASK_NONE",
    "MASK_DATE_SHOW_YEAR",
    "CUSTOM",
)


def smaller() -> dict[str, Any]:
    """The common definition, as Hive's functions phrase its masks."""
    matcher = "org.apache.ranger.plugin.resourcematcher.RangerDefaultResourceMatcher"
    levels = [
        {"itemId": number, "name": name, "type": "string", "level": level, "parent": parent,
         "mandatory": True, "matcher": matcher, "matcherOptions": {"wildCard": True, "ignoreCase": True}}
        for number, (name, (level, parent)) in enumerate(LEVELS.items(), 1)
    ]  # fmt: skip
    accesses: list[dict[str, Any]] = [
        {"itemId": place, "name": each} for place, each in enumerate(ACCESSES, 1)
    ]
    accesses[-1]["impliedGrants"] = list(ACCESSES[:-1])
    masks = [
        {"itemId": n, "name": name, "transformer": "mask_hash({col})"} for n, name in enumerate(MASKS, 1)
    ]
    named = [{"name": name} for name in LEVELS]
    return {
        "name": "paimon",
        "implClass": "org.example.RangerServicePaimon",
        "resources": levels,
        "accessTypes": accesses,
        "dataMaskDef": {"maskTypes": masks, "accessTypes": [{"name": "select"}], "resources": named},
        "rowFilterDef": {"accessTypes": [{"name": "select"}], "resources": named[:3]},
    }


def by_name(each: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in each}


def test_ours_has_all_that_the_smaller_has() -> None:
    ours, theirs = service_definition(), smaller()
    assert ours["name"] == theirs["name"]
    for level in theirs["resources"]:
        mine = by_name(ours["resources"])[level["name"]]
        assert {key: mine[key] for key in ("itemId", "level", "parent", "matcher")} == {
            key: level[key] for key in ("itemId", "level", "parent", "matcher")
        }
    for access in theirs["accessTypes"]:
        mine = by_name(ours["accessTypes"])[access["name"]]
        assert mine["itemId"] == access["itemId"]
        assert set(access.get("impliedGrants", ())) <= set(mine["impliedGrants"])
    assert set(MASKS) <= set(by_name(ours["dataMaskDef"]["maskTypes"]))
    for section in ("dataMaskDef", "rowFilterDef"):
        assert set(by_name(theirs[section]["resources"])) <= set(by_name(ours[section]["resources"]))
    more = set(by_name(ours["accessTypes"])) - set(ACCESSES)
    assert more == {"update", "delete", "call", "read", "write"}


@pytest.mark.parametrize("definition", [smaller(), service_definition()])
def test_policies_of_either_decide_alike(definition: dict[str, Any]) -> None:
    policies = [allow("lake.db.t.*", "select", users=["ann"]), allow("lake.db.u.*", "all", users=["ann"])]
    engine = Engine({"serviceDef": definition, "policies": policies, "policyVersion": 1})
    assert allowed(engine, "lake.db.t.c", user="ann")
    assert allowed(engine, "lake.db.u.c", "alter", user="ann")
    assert not allowed(engine, "lake.db.t.c", "alter", user="ann")
    assert not allowed(engine, "lake.db.t.c", user="bob")


@pytest.mark.parametrize("name", MASKS[:5])
def test_masks_go_by_name_whatever_functions_a_definition_names(name: str) -> None:
    texts = {
        sql_of(Engine({"serviceDef": each, "policies": []}).service, {"maskType": name}, "c", "STRING")
        for each in (smaller(), service_definition())
    }
    assert len(texts) == 1
    assert "mask_hash" not in texts.pop()


def test_reading_and_writing_paths() -> None:
    document = {
        "policyType": 0,
        "id": 1,
        "name": "p",
        "resources": {"path": {"values": ["/data/in"], "isRecursive": True}},
        "policyItems": [{"accesses": [{"type": "read"}], "users": ["ann"]}],
    }
    engine = Engine({"serviceDef": service_definition(), "policies": [document]})
    for path, access, wanted in (
        ("/data/in/x", "select", True),
        ("/data/in", "insert", False),
        ("/data", "select", False),
    ):
        request = {"resource": {"path": path}, "access": access, "user": "ann"}
        assert engine.evaluate(asked(request)).allowed is wanted


def asked(request: dict[str, Any]) -> Any:
    from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest

    return RangerRequest(**request)


def test_the_command_prints_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "definition"]) == 0
    assert json.loads(capsys.readouterr().out) == service_definition()
