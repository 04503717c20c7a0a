"""Messages of the bridge: declared once, and checked where they arrive."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from messages import empty, request

from lockgate.errors import BridgeError
from lockgate.framework.plugins import BridgeContext, plugins
from lockgate.framework.spark.bridge import dispatcher as dispatcher_module
from lockgate.framework.spark.bridge.dispatcher import Dispatcher, declared_operations
from lockgate.framework.spark.java import message_records
from lockgate.framework.spark.messages import shapes
from lockgate.framework.spark.messages.declaration import DECLARATION, declaration
from lockgate.framework.spark.messages.message_envelope import QuestionJson

ROOT = Path(__file__).resolve().parents[3]
FAULTS = json.loads((ROOT / "tests" / "fixtures" / "bridge_messages" / "faults.json").read_text())["cases"]
CONNECTOR = ROOT / "framework/spark/java"


def test_the_connector_is_built_of_what_operations_declare() -> None:
    """To write the file again: `DECLARATION.write_text(declaration(declared_operations()))`."""
    assert DECLARATION.read_text() == declaration(declared_operations())


def test_types_keep_their_names_and_what_they_extend() -> None:
    types = json.loads(DECLARATION.read_text())["types"]
    assert types["LoadRequest"]["bases"] == ["TableRequest"]
    assert types["LoadRequest"]["fields"] == {
        "version": {"null or": "text"},
        "timestamp": {"null or": "whole"},
    }
    assert types["DecideRequest"]["fields"]["relations"] == {"list": {"type": "RelationJson"}}
    assert "PathRelation" in types["RelationJson"]["forms"]


class Committed(TypedDict):
    column: str


def other_type(context: BridgeContext, request: Committed) -> bool:
    return True


class Nameless(TypedDict):
    either: Committed | QuestionJson


def nameless(context: BridgeContext, request: Nameless) -> bool:
    return True


@pytest.mark.parametrize(
    ("operation", "fault"),
    [(other_type, "two messages have the name Committed"), (nameless, "a union of messages needs a name in")],
)
def test_messages_that_no_record_can_be_made_of(operation: Any, fault: str) -> None:
    with pytest.raises(TypeError, match=fault):
        declaration({**declared_operations(), "a.b": operation})


def test_every_operation_of_the_connector_declares_its_messages() -> None:
    added = plugins().bridge_operations()
    own = {name for name, operation in added.items() if operation.__module__.startswith("lockgate.")}
    assert {"lineage.record", "lookup.event", "lookup.poll", "procedure.call"} <= own
    assert {*dispatcher_module._OWN, *own} - set(declared_operations()) == set()


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: json.dumps(case["shape"])[:60])
def test_vectors_of_faults_are_found_as_they_say(case: dict[str, Any]) -> None:
    assert shapes.fault_in(case["shape"], case["value"]) == case["fault"]


@pytest.mark.parametrize("operation", sorted(declared_operations()))
def test_a_question_without_one_of_its_keys_is_refused(operation: str) -> None:
    declared = shapes.messages_of(declared_operations()[operation])
    assert declared is not None
    assert isinstance(declared.request, dict)
    whole = empty(declared.request)
    for key in declared.request["keys"]:
        asked = {name: value for name, value in whole.items() if name != key}
        with pytest.raises(
            BridgeError, match=f"'{re.escape(operation)}' is not as declared: {key} is missing"
        ):
            Dispatcher().answer(operation, asked)


def test_a_question_with_a_value_of_another_kind_is_refused() -> None:
    asked = request("namespace.drop", {"namespace": ["db"], "cascade": True})
    with pytest.raises(BridgeError, match=r"'namespace\.drop' is not as declared: cascade is not a boolean"):
        Dispatcher().answer("namespace.drop", {**asked, "cascade": "yes"})
    with pytest.raises(BridgeError, match=r"namespace\[\] is not a text"):
        Dispatcher().answer("namespace.drop", {**asked, "namespace": [1]})


class Named(TypedDict):
    kind: Literal["named"]
    name: str | None


class Asked(TypedDict):
    parts: list[Named | list[int]]
    counts: dict[str, int]
    value: Any


def answer_of_a_plugin(context: BridgeContext, request: Asked) -> bool:
    return True


def any_answer(context: BridgeContext, request: dict[str, Any]) -> object:
    return None


def test_shapes_of_types() -> None:
    named = {"keys": {"kind": {"is": "named"}, "name": {"null or": "text"}}}
    assert shapes.messages_of(answer_of_a_plugin) == (
        {
            "keys": {
                "parts": {"list": {"either": [named, {"list": "whole"}]}},
                "counts": {"map": "whole"},
                "value": "any",
            }
        },
        "boolean",
    )
    assert shapes.messages_of(any_answer) is None
    with pytest.raises(TypeError, match="cannot hold"):
        shapes.shape_of(set[int])


# --- the connector's side ------------------------------------------------------------------------


def test_the_connector_uses_each_key_that_is_declared() -> None:
    """What no class sends or reads would be a key that nobody needs."""
    code = "\n".join(path.read_text() for path in CONNECTOR.rglob("*.java"))
    types = json.loads(DECLARATION.read_text())["types"]
    passed_on = {*PASSED_ON, *types["Event"]["forms"], *types["CacheCommand"]["forms"]}
    names = set(re.findall(r'"([a-z_]+)"', code)) | set(re.findall(r"(?:\.|::)(\w+)\b", code))
    made = set(re.findall(r"\bnew (\w+)\(", code))
    unused = {
        f"{name}.{key}"
        for name, kind in types.items()
        if name not in passed_on | made
        for key, shape in kind.get("fields", {}).items()
        if not (isinstance(shape, dict) and "is" in shape)  # a fixed text, by which a form is told
        if key not in names and message_records._camel(key) not in names
    }
    assert unused == set()


# Of the envelope, asked of a dispatcher by its own process, and passed on whole.
PASSED_ON = {"QuestionJson", "HelloAnswer", "ScopeRequest", "MarkedEntry", "MarkedColumn"}
# What caches and the driver say to each other goes through an executor.
PASSED_ON |= {"OpenCache", "SpecJson", "RightsJson", "CacheVersionJson", "LocalKeyJson"}


def test_nothing_in_the_connector_hides_a_missing_key() -> None:
    hiding = re.compile(
        r'(?<!Datasets)\.path\("|\.hasNonNull\(|\.asText\("|\.as(?:Int|Long|Boolean)\([^)]|optBoolean'
    )
    found = {path.name: hiding.findall(path.read_text()) for path in CONNECTOR.rglob("*.java")}
    assert {name: hits for name, hits in found.items() if hits} == {}
