"""Messages of the bridge: declared once, and checked where they arrive."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from messages import empty, request

from lockgate.errors import BridgeError
from lockgate.framework.plugins import BridgeContext, plugins
from lockgate.framework.spark.bridge import dispatcher as dispatcher_module
from lockgate.framework.spark.bridge.dispatcher import Dispatcher, declared_operations
from lockgate.framework.spark.messages import shapes
from lockgate.framework.spark.messages.message_envelope import QuestionJson, ReplyJson
from lockgate.framework.spark.messages.write_messages import MarkedColumn
from lockgate.lookup.server.server_messages import CacheCommand, Event, KeyReply, OpenCache

ROOT = Path(__file__).resolve().parents[3]
FAULTS = json.loads((ROOT / "tests" / "fixtures" / "bridge_messages" / "faults.json").read_text())["cases"]
CONNECTOR = ROOT / "framework/spark/java"


def test_the_jar_knows_what_operations_declare() -> None:
    """To write the file again: `shapes.DECLARATION.write_text(shapes.declaration(declared_operations()))`."""
    assert shapes.DECLARATION.read_text() == shapes.declaration(declared_operations())


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


def names_in(shape: Any) -> Iterator[str]:
    if isinstance(shape, dict):
        ((rule, inside),) = shape.items()
        if rule == "keys":
            for name, each in inside.items():
                yield name
                yield from names_in(each)
        elif rule in ("either", "tuple"):
            for each in inside:
                yield from names_in(each)
        elif rule != "is":
            yield from names_in(inside)


def test_the_connector_names_each_key_that_is_declared() -> None:
    """What no class sends or reads would be a key that nobody needs, or one that is spelt otherwise."""
    code = "\n".join(path.read_text() for path in CONNECTOR.rglob("*.java"))
    literals = set(re.findall(r'"([a-z_]+)"', code))
    unused = {
        f"{operation}: {name}"
        for operation, handler in declared_operations().items()
        if operation not in ASKED_BY_PYTHON
        for shape in shapes.messages_of(handler) or ()
        for name in names_in(shape)
        if name not in literals | PASSED_ON.get(operation, set())
    }
    assert not unused
    assert {*names_in(shapes.shape_of(QuestionJson)), *names_in(shapes.shape_of(ReplyJson))} <= literals


# Asked of a dispatcher by its own process.
ASKED_BY_PYTHON = {"bridge.hello", "keys.names"}
# What the connector passes on whole: messages of owners and to them, and what metadata of columns say.
PASSED_ON = {
    "lookup.event": {*names_in(shapes.shape_of(Event)), *names_in(shapes.shape_of(KeyReply))} - {"event"},
    "lookup.poll": {*names_in(shapes.shape_of(OpenCache)), *names_in(shapes.shape_of(CacheCommand))}
    - {"name"},
    "write.flow": set(names_in(shapes.shape_of(MarkedColumn))),
    "write.flow_to_files": set(names_in(shapes.shape_of(MarkedColumn))),
}


def test_nothing_in_the_connector_hides_a_missing_key() -> None:
    hiding = re.compile(
        r'(?<!Datasets)\.path\("|\.hasNonNull\(|\.asText\("|\.as(?:Int|Long|Boolean)\([^)]|optBoolean'
    )
    found = {path.name: hiding.findall(path.read_text()) for path in CONNECTOR.rglob("*.java")}
    assert {name: hits for name, hits in found.items() if hits} == {}
