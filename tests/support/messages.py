"""Messages of the bridge for tests, which say only what their subject is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockgate.framework.spark.bridge.dispatcher import declared_operations
from lockgate.framework.spark.bridge.shapes import Shape, messages_of

_EMPTY = {"text": "", "number": 0, "boolean": False, "any": None}


def request(operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question with all that its operation declares: what is not given is null or empty."""
    return completed(_messages(operation).request, given)


def answer(operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with all that its operation declares."""
    return completed(_messages(operation).answer, given)


def _messages(operation: str) -> Any:
    return messages_of(declared_operations()[operation])


def completed(shape: Shape, given: Any) -> Any:
    """Return a value of a shape, with empty ones for the keys that it lacks."""
    if isinstance(shape, str):
        return given
    ((rule, inside),) = shape.items()
    if rule == "null or":
        return None if given is None else completed(inside, given)
    if rule == "list":
        return [completed(inside, each) for each in given]
    if rule == "map":
        return {name: completed(inside, each) for name, each in given.items()}
    if rule == "keys":
        missing = {name: empty(each) for name, each in inside.items() if name not in given}
        present = {name: completed(each, given[name]) for name, each in inside.items() if name in given}
        return {**given, **present, **missing}
    if rule == "either":
        return next(completed(each, given) for each in inside if given.keys() & each["keys"].keys())
    return given


def empty(shape: Shape) -> Any:
    """Return the empty value of a shape."""
    if isinstance(shape, str):
        return _EMPTY[shape]
    ((rule, inside),) = shape.items()
    if rule == "keys":
        return {name: empty(each) for name, each in inside.items()}
    return {"null or": None, "list": [], "map": {}}[rule]
