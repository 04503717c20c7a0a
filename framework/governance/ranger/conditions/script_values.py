"""Values of scripts, by JavaScript's rules as far as policies need them: truth, texts, numbers, members."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, SupportsFloat, TypeGuard

from lockgate.framework.governance.ranger.conditions.script_tokens import ScriptError


class Callables:
    """An object of scripts whose members are functions and nothing else, such as `ctx`."""

    def member(self, name: str) -> object:
        """Return a member; raises ScriptError if there is none."""
        raise ScriptError(f"there is no {name!r}")


def is_true(value: object) -> bool:
    """Return the truth of a value: lists and objects are true even when they are empty."""
    if isinstance(value, float) and math.isnan(value):
        return False
    return bool(value) or isinstance(value, list | tuple | Mapping)


def text_of(value: object) -> str:
    """Return a value as text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return ",".join(map(text_of, value))
    return str(value)


def number_of(value: object) -> float:
    """Return a value as number, NaN where it is none."""
    if isinstance(value, datetime):
        return value.timestamp() * 1000
    if not value and not isinstance(value, list | Mapping):
        return 0.0
    if not isinstance(value, str | SupportsFloat):
        return math.nan
    try:
        return float(value)
    except ValueError:
        return math.nan


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def added(one: object, other: object) -> object:
    """Return `one + other`: a sum of numbers, else the texts one after the other."""
    if _is_number(one) and _is_number(other):
        return one + other
    return text_of(one) + text_of(other)


def loosely_equal(one: object, other: object) -> bool:
    """Return `one == other`: a number and a text are compared as numbers."""
    if one is None or other is None:
        return one is other
    if isinstance(one, int | float) != isinstance(other, int | float):
        return number_of(one) == number_of(other)
    return one == other


def strictly_equal(one: object, other: object) -> bool:
    """Return `one === other`."""
    return (
        _is_number(one) == _is_number(other)
        and isinstance(one, bool) == isinstance(other, bool)
        and one == other
    )


def less(one: object, other: object) -> bool:
    """Return `one < other`: texts by their letters, all else as numbers."""
    if isinstance(one, str) and isinstance(other, str):
        return one < other
    return number_of(one) < number_of(other)


def member(value: object, name: object) -> object:
    """Return a member of a value by its name or index; raises ScriptError for one that is not known."""
    if isinstance(value, Callables):
        return value.member(str(name))
    if value is None:
        raise ScriptError(f"{name!r} is asked of nothing")
    if isinstance(value, Mapping) and name in value:
        return value[name]
    if isinstance(name, int | float):
        return _item(value, int(name))
    if name in ("length", "size") and isinstance(value, str | Sequence | Mapping):
        return len(value) if name == "length" else lambda: len(value)
    method = _METHODS.get(str(name))
    if method is not None:
        return lambda *given: method(value, *given)
    if isinstance(value, Mapping):
        return None
    raise ScriptError(f"there is no {name!r}")


def is_member(name: object, value: object) -> bool:
    """Return `name in value`."""
    return isinstance(value, Mapping) and name in value


def _item(value: object, index: int) -> object:
    if not isinstance(value, Sequence) or not 0 <= index < len(value):
        return None
    found: object = value[index]
    return found


def _index_of(value: Any, wanted: object) -> int:
    if isinstance(value, str):
        return value.find(text_of(wanted))
    return list(value).index(wanted) if wanted in value else -1


def _get(value: Any, key: object) -> object:
    return value.get(key) if isinstance(value, Mapping) else _item(value, int(number_of(key)))


def _substring(value: Any, start: Any = 0, end: Any = None) -> str:
    return str(value)[int(start) : None if end is None else int(end)]


_METHODS: dict[str, Callable[..., object]] = {
    "indexOf": _index_of,
    "includes": lambda value, wanted: wanted in value,
    "contains": lambda value, wanted: wanted in value,
    "containsKey": lambda value, wanted: wanted in value,
    "startsWith": lambda value, wanted: value.startswith(wanted),
    "endsWith": lambda value, wanted: value.endswith(wanted),
    "toLowerCase": lambda value: value.lower(),
    "toUpperCase": lambda value: value.upper(),
    "trim": lambda value: value.strip(),
    "split": lambda value, mark: value.split(mark),
    "join": lambda value, mark=",": text_of(mark).join(map(text_of, value)),
    "substring": _substring,
    "get": _get,
    "equals": lambda value, other: value == other,
    "equalsIgnoreCase": lambda value, other: value.lower() == text_of(other).lower(),
    "isEmpty": lambda value: not value,
    "keySet": lambda value: list(value),
    "intersects": lambda value, other: bool(set(value) & set(other)),
    "toString": text_of,
}
