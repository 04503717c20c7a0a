"""Messages of the bridge for tests, which say only what their subject is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lockgate.framework.spark.bridge.dispatcher import declared_operations
from lockgate.framework.spark.messages.shapes import Shape, fault_in, messages_of

_EMPTY = {"text": "", "number": 0, "whole": 0, "boolean": False, "any": None}


def request(operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question with all that its operation declares: what is not given is null or empty."""
    return completed(_messages(operation).request, given)


def declared(operation: str, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question as `request` does, of values for several operations: those that this one declares."""
    keys = _messages(operation).request["keys"]
    return request(operation, {name: value for name, value in shared.items() if name in keys})


def answer(operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with all that its operation declares."""
    return completed(_messages(operation).answer, given)


def question(operation: str, asked: object) -> dict[str, Any]:
    """Return a question in its envelope, of a user without a session."""
    return {"operation": operation, "request": asked, "user": "ada", "asker": None, "session": None}


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
    if rule == "tuple":
        return [completed(each, value) for each, value in zip(inside, given, strict=True)]
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
    if rule == "tuple":
        return [empty(each) for each in inside]
    if rule == "is":
        return inside
    if rule == "either":
        return empty(inside[0])
    return {"null or": None, "list": [], "map": {}}[rule]


# --- lies ----------------------------------------------------------------------------------------


class Lie(NamedTuple):
    """A message that is not as declared, and where and what the fault is."""

    value: Any
    fault: str


_SAMPLES = {"text": "a", "number": 1.5, "whole": 7, "boolean": True, "any": {"a": [None]}}
# What no shape takes for another kind of it; numbers are no booleans, and texts no numbers.
_OTHERS = {"text": 1, "number": "1", "whole": 1 << 63, "boolean": 0}
HUGE = 500


def sample(shape: Shape) -> Any:
    """Return a value of a shape that has something in each list and map, and no null."""
    if isinstance(shape, str):
        return _SAMPLES[shape]
    ((rule, inside),) = shape.items()
    if rule == "keys":
        return {name: sample(each) for name, each in inside.items()}
    if rule in ("list", "map"):
        return [sample(inside)] if rule == "list" else {"a": sample(inside)}
    if rule == "tuple":
        return [sample(each) for each in inside]
    return inside if rule == "is" else sample(inside[0] if rule == "either" else inside)


def lies(shape: Shape, path: str = "") -> Iterator[Lie]:
    """Return a value for each way in which a part of a message may not be as declared.

    Of several forms it takes those that a fixed text tells apart, or else the first.
    """
    if isinstance(shape, str):
        if shape in _OTHERS:
            kind = "whole number of 64 bits" if shape == "whole" else shape
            yield Lie(_OTHERS[shape], f"{path or 'it'} is not a {kind}")
        return
    ((rule, inside),) = shape.items()
    yield from _LIES[rule](inside, path)


def nulls(shape: Shape, path: str = "") -> Iterator[Lie]:
    """Return null as a value of a shape, unless it may be that."""
    fault = fault_in(shape, None, path)
    if fault is not None:
        yield Lie(None, fault)


def _lies_in_null(inside: Shape, path: str) -> Iterator[Lie]:
    yield from lies(inside, path)


def _lies_in_list(inside: Shape, path: str) -> Iterator[Lie]:
    yield Lie({"0": sample(inside)}, f"{path or 'it'} is not a list")
    for number, each in enumerate([*nulls(inside, f"{path}[]"), *lies(inside, f"{path}[]")]):
        count = HUGE if number == 0 else 1
        yield Lie([sample(inside)] * count + [each.value], each.fault)


def _lies_in_map(inside: Shape, path: str) -> Iterator[Lie]:
    yield Lie([], f"{path or 'it'} is not an object")
    below = f"{path}.*" if path else "*"
    for each in [*nulls(inside, below), *lies(inside, below)]:
        yield Lie({"a": sample(inside), "b": each.value}, each.fault)


def _lies_in_tuple(inside: Sequence[Shape], path: str) -> Iterator[Lie]:
    whole = [sample(each) for each in inside]
    yield Lie(whole[1:], f"{path or 'it'} is not a list of {len(inside)}")
    yield Lie([*whole, None], f"{path or 'it'} is not a list of {len(inside)}")
    for index, shape in enumerate(inside):
        for each in lies(shape, f"{path}[{index}]"):
            yield Lie([*whole[:index], each.value, *whole[index + 1 :]], each.fault)


def _lies_in_keys(inside: Mapping[str, Shape], path: str) -> Iterator[Lie]:
    whole = {name: sample(each) for name, each in inside.items()}
    dot = f"{path}." if path else ""
    yield Lie([whole], f"{path or 'it'} is not an object")
    yield Lie({**whole, "moreover": None}, f"{dot}moreover is not declared")
    for name, shape in inside.items():
        yield Lie({key: whole[key] for key in whole if key != name}, f"{dot}{name} is missing")
        for each in [*nulls(shape, f"{dot}{name}"), *lies(shape, f"{dot}{name}")]:
            yield Lie({**whole, name: each.value}, each.fault)


def _lies_in_either(inside: Sequence[Shape], path: str) -> Iterator[Lie]:
    none = f"{path or 'it'} has none of its forms"
    yield Lie({"nothing": "of this"}, none)
    for form in inside:
        for each in lies(form, path):
            yield Lie(each.value, fault_in({"either": inside}, each.value, path) or none)


def _lies_in_is(inside: str, path: str) -> Iterator[Lie]:
    yield Lie(f"not {inside}", f"{path or 'it'} is not {inside!r}")


_LIES: Mapping[str, Callable[[Any, str], Iterator[Lie]]] = {
    "null or": _lies_in_null,
    "list": _lies_in_list,
    "map": _lies_in_map,
    "tuple": _lies_in_tuple,
    "keys": _lies_in_keys,
    "either": _lies_in_either,
    "is": _lies_in_is,
}
