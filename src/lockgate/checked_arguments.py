"""Arguments of public doors, checked against their annotations at the call.

An argument of another type would fail somewhere inside, by an error of Python that names no argument, or be
taken for something else, such as True for 1. Messages name types, never values: these may be secrets.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import functools
import inspect
import numbers
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar, cast

from lockgate.errors import InputError

T = TypeVar("T", bound=Callable[..., Any])
# None: every value fits.
Check = Callable[[object], bool] | None

_UNIONS = (typing.Union, types.UnionType)
_ITERABLES = (collections.abc.Iterable, collections.abc.Collection, collections.abc.Sequence)
_CONTAINERS = (list, tuple, set, frozenset)
# What may be read before the function reads it.
_READ = (*_CONTAINERS, str, bytes, Mapping)
_MOST_SHOWN = 1000
_FOR_TYPES = "\nif TYPE_CHECKING:\n"


def checked_arguments(door: T) -> T:
    """Let a function, or each public method of a class, raise InputError for arguments of other types.

    What annotations mean is found out at the first call, so that importing costs nothing. A call that does
    not fit the signature is Python's TypeError, as for any function.
    """
    if not inspect.isclass(door):
        return cast("T", _checked(door, door.__name__))
    for name, member in list(vars(door).items()):
        if name.startswith("_") and name != "__init__":
            continue
        shown = door.__name__ if name == "__init__" else f"{door.__name__}.{name}"
        if inspect.isfunction(member):
            setattr(door, name, _checked(member, shown))
        elif isinstance(member, classmethod | staticmethod):
            setattr(door, name, type(member)(_checked(member.__func__, shown)))
    return door


def _checked(function: Callable[..., Any], shown: str) -> Any:
    plain = cast("types.FunctionType", inspect.unwrap(function))
    code = plain.__code__
    positional = code.co_varnames[: code.co_argcount]
    checks: dict[str, Callable[[object], bool]] | None = None

    @functools.wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        nonlocal checks
        if checks is None:
            checks = _checks(plain)
        for name, value in zip(positional, arguments, strict=False):
            if name in checks and not checks[name](value):
                raise _misfit(plain, shown, name, value)
        for name, value in named.items():
            if name in checks and not checks[name](value):
                raise _misfit(plain, shown, name, value)
        return function(*arguments, **named)

    return checked


def _checks(function: types.FunctionType) -> dict[str, Callable[[object], bool]]:
    """Return the checks of parameters, by name; those that take anything have none."""
    found = {}
    for name, annotation in function.__annotations__.items():
        check = None if name == "return" else _check_of(_meaning(annotation, function))
        if check is not None:
            found[name] = check
    return found


def _misfit(function: types.FunctionType, shown: str, name: str, value: object) -> InputError:
    annotation: object = function.__annotations__[name]
    # An alias may be a text, which says more than its name.
    meant = _meaning(annotation, function, follow=False)
    wanted = meant if isinstance(meant, str) else annotation
    return InputError(f"{shown}: {name} takes {wanted}, not {_kind_of(value)}")


def _kind_of(value: object) -> str:
    """Name the type of a value and those of its items."""
    kind = type(value).__name__
    items: list[object] = []
    if isinstance(value, _CONTAINERS):
        items = list(value)[:_MOST_SHOWN]
    elif isinstance(value, Mapping):
        items = [part for pair in list(value.items())[:_MOST_SHOWN] for part in pair]
    inside = sorted({type(item).__name__ for item in items})
    return f"{kind} of {', '.join(inside)}" if inside else kind


# --- checks ---------------------------------------------------------------------------------------


def _check_of(hint: Any) -> Check:
    """Return the check of a type; None for those that any value may be of, as far as can be told."""
    simple = _SIMPLE.get(hint) if isinstance(hint, collections.abc.Hashable) else None
    if simple is not None:
        return simple
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return _any_of([_check_of(each) for each in inside])
    if origin is typing.Annotated:
        return _check_of(inside[0])
    if origin is typing.Literal:
        # A name that is not one of them is refused where the names are known, with the nearest one.
        kinds = {type(each) for each in inside}
        return lambda value: type(value) in kinds
    kind = origin or hint
    if kind is collections.abc.Callable:
        return callable
    if kind in (Any, object) or not isinstance(kind, type):
        return None
    if kind in _ITERABLES or kind in _CONTAINERS:
        return _items_check(kind, [_check_of(each) for each in inside if each is not ...])
    if issubclass(kind, Mapping):
        # Options are texts, and often given as the numbers and truths that these spell.
        of_options = inside == (str, str)
        return _mapping_check(
            [_SIMPLE[str], _is_plain] if of_options else [_check_of(each) for each in inside]
        )
    if getattr(kind, "_is_protocol", False):
        return _protocol_check(kind)
    return lambda value: isinstance(value, kind)


def _any_of(checks: Sequence[Check]) -> Check:
    given = [check for check in checks if check is not None]
    if len(given) < len(checks):
        return None
    return lambda value: any(check(value) for check in given)


def _items_check(kind: type, checks: Sequence[Check]) -> Check:
    """Check a collection and its items; an iterator, where one will do, is read once, so not here.

    A set may stand for a sequence. A text is one of texts: where a list of names is due, it is refused there.
    """
    taken = kind if kind is collections.abc.Iterable else collections.abc.Collection
    of_items = checks[0] if len(checks) == 1 else None

    def check(value: object) -> bool:
        if not isinstance(value, taken) or (kind in _CONTAINERS and isinstance(value, str | bytes)):
            return False
        return of_items is None or not isinstance(value, _READ) or all(map(of_items, value))

    return check


def _mapping_check(checks: Sequence[Check]) -> Check:
    of_keys, of_values = checks if len(checks) == 2 else (None, None)

    def check(value: object) -> bool:
        return (
            isinstance(value, Mapping)
            and (of_keys is None or all(map(of_keys, value)))
            and (of_values is None or all(map(of_values, value.values())))
        )

    return check


def _protocol_check(kind: type) -> Check:
    members = [name for each in kind.__mro__ for name in vars(each) if not name.startswith("_")]
    return lambda value: all(hasattr(value, name) for name in members)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | numbers.Real)


def _is_truth(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # numpy's, too


def _is_integer(value: object) -> bool:
    return hasattr(type(value), "__index__") and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


_SIMPLE: Mapping[object, Callable[[object], bool]] = {
    None: lambda value: value is None,
    types.NoneType: lambda value: value is None,
    str: lambda value: isinstance(value, str),
    bool: _is_truth,
    int: _is_integer,
    float: _is_number,
}


# --- what an annotation means ---------------------------------------------------------------------


def _meaning(annotation: object, function: types.FunctionType, *, follow: bool = True) -> object:
    """Return what an annotation means where a function was defined; Any if that cannot be told."""
    names = _Names(function.__globals__)
    while isinstance(annotation, str):
        try:
            annotation = eval(annotation, {"__builtins__": {}}, names)  # noqa: S307 - of our own sources
        except (LookupError, NameError, AttributeError, ImportError, TypeError):
            return Any
        if not follow:
            break
    return annotation


class _Names(dict[str, object]):
    """The names of a module, and those that it imports for type checkers alone."""

    def __missing__(self, name: str) -> object:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        module, attribute = _imported_for_types(str(self["__name__"]))[name]
        loaded = import_module(module)
        return loaded if attribute is None else getattr(loaded, attribute)


@functools.cache
def _imported_for_types(module: str) -> Mapping[str, tuple[str, str | None]]:
    """Return what a module imports for type checkers alone, by name: module and attribute."""
    lines = inspect.getsource(sys.modules[module]).partition(_FOR_TYPES)[2].splitlines()
    end = next((at for at, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.parse(textwrap.dedent("\n".join(lines[:end]))).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {each.asname or each.name: (node.module, each.name) for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.asname or each.name: (each.name, None) for each in node.names}
    return found
