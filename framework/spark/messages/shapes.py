"""Shapes of messages: the typed dictionaries of operations as JSON, by which both sides check messages.

A shape is `"text"`, `"number"`, `"whole"` (a whole number of 64 bits), `"boolean"` or `"any"`, or an object
with one entry: `null or`, `list` and `map` (of any names) hold the shape of what is inside, `keys` the shape
by name, `tuple` the shape by position, `is` the one text, `either` several shapes.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, Union

Shape: TypeAlias = "str | dict[str, Any]"

_LEAVES: dict[Any, str] = {
    str: "text",
    int: "whole",
    float: "number",
    bool: "boolean",
    Any: "any",
}
_WHOLE = range(-(1 << 63), 1 << 63)


class Messages(NamedTuple):
    """The shapes of what an operation is asked, and of what it answers."""

    request: Shape
    answer: Shape


@cache
def messages_of(operation: Callable[..., object]) -> Messages | None:
    """Return the shapes that the signature of an operation declares; None if it takes any dictionary."""
    signature = signature_of(operation)
    if signature is None:
        return None
    return Messages(shape_of(signature["request"]), shape_of(signature["return"]))


def signature_of(operation: Callable[..., object]) -> dict[str, Any] | None:
    """Return the types of an operation's `request` and `return`; None if it takes any dictionary."""
    function = inspect.unwrap(operation)
    written = getattr(function, "__annotations__", {})
    # Its other annotations may name types that only type checkers import.
    wanted = types.SimpleNamespace(
        __annotations__={name: written[name] for name in ("request", "return") if name in written}
    )
    hints = typing.get_type_hints(wanted, globalns=getattr(function, "__globals__", {}))
    return hints if typing.is_typeddict(hints.get("request")) else None


def shape_of(annotation: Any) -> Shape:
    """Return the shape of a type; TypeError for one that no message holds."""
    if annotation in _LEAVES:
        return _LEAVES[annotation]
    if typing.is_typeddict(annotation):
        return {"keys": {name: shape_of(each) for name, each in typing.get_type_hints(annotation).items()}}
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list:
        return {"list": shape_of(inside[0])}
    if origin in (dict, Mapping):
        return {"map": shape_of(inside[1])}
    if origin is tuple:
        return {"tuple": [shape_of(each) for each in inside]}
    if origin is Literal and all(isinstance(each, str) for each in inside):
        texts: list[Shape] = [{"is": each} for each in inside]
        return texts[0] if len(texts) == 1 else {"either": texts}
    if origin in (Union, types.UnionType):
        return _union([each for each in inside if each is not type(None)], len(inside))
    raise TypeError(f"a message cannot hold {annotation}")


def _union(kinds: list[Any], count: int) -> Shape:
    shapes = [shape_of(each) for each in kinds]
    shape = shapes[0] if len(shapes) == 1 else {"either": shapes}
    return shape if len(kinds) == count else {"null or": shape}


def fault_in(shape: Shape, value: object, path: str = "") -> str | None:
    """Return what is wrong with a message, None if it has its shape.

    It names keys, never values. A key that the shape does not have is a fault too: both sides are of one
    version.
    """
    if isinstance(shape, str):
        return None if _is_leaf(shape, value) else f"{path or 'it'} is not a {_LEAF_NAMES.get(shape, shape)}"
    ((rule, inside),) = shape.items()
    return _RULES[rule](inside, value, path)


_LEAF_NAMES = {"whole": "whole number of 64 bits"}


def _is_leaf(shape: str, value: object) -> bool:
    if shape == "any":
        return True
    if shape == "boolean":
        return isinstance(value, bool)
    if shape == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if shape == "whole":
        return isinstance(value, int) and not isinstance(value, bool) and value in _WHOLE
    return isinstance(value, str)


def _null_or(inside: Shape, value: object, path: str) -> str | None:
    return None if value is None else fault_in(inside, value, path)


def _list(inside: Shape, value: object, path: str) -> str | None:
    if not isinstance(value, list | tuple):
        return f"{path or 'it'} is not a list"
    return _first(fault_in(inside, each, f"{path}[]") for each in value)


def _map(inside: Shape, value: object, path: str) -> str | None:
    if not isinstance(value, Mapping):
        return f"{path or 'it'} is not an object"
    return _first(fault_in(inside, each, f"{path}.*" if path else "*") for each in value.values())


def _keys(inside: Mapping[str, Shape], value: object, path: str) -> str | None:
    if not isinstance(value, Mapping):
        return f"{path or 'it'} is not an object"
    for name, shape in inside.items():
        below = f"{path}.{name}" if path else name
        if name not in value:
            return f"{below} is missing"
        fault = fault_in(shape, value[name], below)
        if fault is not None:
            return fault
    if len(value) == len(inside):
        return None
    extra = next(name for name in value if name not in inside)
    return f"{path}.{extra} is not declared" if path else f"{extra} is not declared"


def _tuple(inside: list[Shape], value: object, path: str) -> str | None:
    if not isinstance(value, list | tuple) or len(value) != len(inside):
        return f"{path or 'it'} is not a list of {len(inside)}"
    pairs = zip(inside, value, strict=True)
    return _first(fault_in(shape, each, f"{path}[{index}]") for index, (shape, each) in enumerate(pairs))


def _either(inside: list[Shape], value: object, path: str) -> str | None:
    faults = [fault_in(shape, value, path) for shape in inside]
    if None in faults:
        return None
    meant = [fault for shape, fault in zip(inside, faults, strict=True) if _is_meant(shape, value)]
    return meant[0] if len(meant) == 1 else f"{path or 'it'} has none of its forms"


def _is_meant(shape: Shape, value: object) -> bool:
    """Say whether a message names this form of several by its fixed texts."""
    if isinstance(shape, str) or "keys" not in shape or not isinstance(value, Mapping):
        return False
    fixed = {name: each for name, each in shape["keys"].items() if isinstance(each, dict) and "is" in each}
    return bool(fixed) and all(value.get(name) == each["is"] for name, each in fixed.items())


def _is(inside: str, value: object, path: str) -> str | None:
    return None if value == inside else f"{path or 'it'} is not {inside!r}"


def _first(faults: typing.Iterator[str | None]) -> str | None:
    return next((fault for fault in faults if fault is not None), None)


_RULES: dict[str, Callable[[Any, object, str], str | None]] = {
    "null or": _null_or,
    "list": _list,
    "map": _map,
    "keys": _keys,
    "tuple": _tuple,
    "either": _either,
    "is": _is,
}
