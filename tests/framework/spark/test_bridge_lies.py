"""Questions that are not as declared: of each operation, and around all of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from messages import Lie, lies, question, sample

from lockgate.framework.spark.bridge import dispatcher as dispatcher_module
from lockgate.framework.spark.bridge.dispatcher import Dispatcher, declared_operations
from lockgate.framework.spark.bridge.protocol import encode_answer, encode_error
from lockgate.framework.spark.messages.message_envelope import QuestionJson, ReplyJson
from lockgate.framework.spark.messages.shapes import fault_in, messages_of, shape_of
from lockgate.lookup.join.pin_table import SPEC_OPTION, _written
from lockgate.lookup.spec.lookup_spec import SpecJson

OPERATIONS = sorted(declared_operations())


def error_of(message: bytes) -> tuple[str, str]:
    """Ask, and return the kind and the message of the error."""
    reply = json.loads(Dispatcher().reply(message))
    assert fault_in(shape_of(ReplyJson), reply) is None
    return reply["error"]["type"], reply["error"]["message"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_request_that_is_not_as_declared_is_refused_by_what_is_wrong(operation: str) -> None:
    declared = messages_of(declared_operations()[operation])
    assert declared is not None
    assert fault_in(declared.request, json.loads(json.dumps(sample(declared.request)))) is None
    told = list(lies(declared.request))
    assert {"it is not an object", "moreover is not declared"} <= {lie.fault for lie in told}
    for lie in told:
        asked = json.dumps(question(operation, lie.value)).encode()
        kind, message = error_of(asked)
        about = f"request {operation!r}" if isinstance(lie.value, dict) else "question"
        fault = lie.fault if isinstance(lie.value, dict) else "request is not an object"
        assert (kind, message) == ("BridgeError", f"the connector's {about} is not as declared: {fault}")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_connector_would_find_what_is_wrong_with_an_answer(operation: str) -> None:
    """The same faults in Java: `tests/integration/test_bridge_messages.py`."""
    declared = messages_of(declared_operations()[operation])
    assert declared is not None
    assert fault_in(declared.answer, json.loads(json.dumps(sample(declared.answer)))) is None
    assert [fault_in(declared.answer, lie.value) for lie in lies(declared.answer)] == [
        lie.fault for lie in lies(declared.answer)
    ]


def outer_lies() -> list[Lie]:
    return [*lies(shape_of(QuestionJson)), Lie({**question("bridge.hello", {}), "user": ""}, "user is empty")]


@pytest.mark.parametrize("lie", outer_lies(), ids=lambda lie: str(lie.fault))
def test_a_question_that_is_not_as_declared_is_refused(lie: Lie) -> None:
    expected = f"the connector's question is not as declared: {lie.fault}"
    assert error_of(json.dumps(lie.value).encode()) == ("BridgeError", expected)


def test_answers_and_errors_are_as_declared() -> None:
    reply = shape_of(ReplyJson)
    for written in (encode_answer({"a": 1}), encode_answer(None, governed=True), encode_error("E", "m")):
        assert fault_in(reply, json.loads(written)) is None
    for lie in ({}, {"ok": 1}, {"error": "plain"}, {"error": {"type": "E"}}, {"ok": 1, "governed": None}, []):
        assert fault_in(reply, lie) == "it has none of its forms"


@pytest.mark.parametrize("inside", ["[", '{"a":'])
def test_a_message_without_end_of_levels_is_refused(inside: str) -> None:
    deep = json.dumps(question("scan.filters", "?")).replace('"?"', inside * 200_000)
    assert error_of(deep.encode()) == (
        "BridgeError",
        "the connector's question is nested too deeply to be read",
    )


def test_what_python_cannot_descend_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    def descend(context: Any, request: Any) -> object:
        return descend(context, request)

    monkeypatch.setitem(dispatcher_module._OWN, "test.deep", descend)
    kind, message = error_of(json.dumps(question("test.deep", {})).encode())
    assert kind == "BridgeError"
    assert "'test.deep' is nested too deeply for Python: write the statement with fewer levels" in message


def test_a_huge_list_is_read_to_its_end() -> None:
    asked = {**sample(messages_of(declared_operations()["delete.where"]).request)}  # type: ignore[union-attr]  # it is declared
    asked["privileges"] = ["select"] * 1_000_000 + [7]
    kind, message = error_of(json.dumps(question("delete.where", asked)).encode())
    assert (kind, message.partition(": ")[2]) == ("BridgeError", "privileges[] is not a text")


@pytest.mark.parametrize("lie", list(lies(shape_of(SpecJson))), ids=lambda lie: str(lie.fault))
def test_a_read_option_that_no_join_wrote_is_refused(lie: Lie) -> None:
    from lockgate.errors import InputError

    with pytest.raises(InputError) as found:
        _written(json.dumps(lie.value))
    assert str(found.value) == f"the read option {SPEC_OPTION} is not what a lookup join writes: {lie.fault}"
    with pytest.raises(InputError, match="it is not JSON"):
        _written("[" * 100_000)
