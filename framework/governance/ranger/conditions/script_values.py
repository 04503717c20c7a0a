"""Values of scripts by the rules of ECMAScript 5, as Ranger runs them: truth, texts, numbers, members.

Texts also have methods of Java's String, because Ranger runs its engine in Nashorn's way. What JavaScript has
and this part of it does not raises ScriptError; what JavaScript refuses, too, raises ScriptFailedError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from lockgate.framework.governance.ranger.conditions.script_tokens import ScriptError

# What JavaScript strips and reads as blank.
_BLANKS = (
    " \t\n\r\v\f\u00a0\ufeff\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_LARGEST, _SMALLEST = 1e21, 1e-6
# Letters and elements of one value, those inside of it included, and how deep lists lie in lists.
_MAX_SIZE, _MAX_NESTING = 1 << 19, 16


class ScriptFailedError(Exception):
    """A script that fails in Ranger, too: its condition holds what it had set until then."""


class Undefined:
    """JavaScript's `undefined`, which is not `null`."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


class JavaObject:
    """An object of Ranger's own classes, such as `ctx`: what it has not is undefined."""

    def member(self, name: str) -> object:
        """Return a member; raises ScriptError for one that only Ranger's has."""
        raise ScriptError(f"there is no {name!r}")


class JavaList(JavaObject):
    """A Java list, or a set, which has no indexes."""

    def __init__(self, values: list[Any], *, has_indexes: bool = False) -> None:
        self.values, self._has_indexes = values, has_indexes

    def member(self, name: str) -> object:
        """Return a method; of a list also an element, or how many there are."""
        if self._has_indexes and name == "length":
            return float(len(self.values))
        if self._has_indexes and name.isdecimal():
            return _item(self.values, float(name))
        methods: Mapping[str, Callable[..., object]] = {
            "contains": lambda value: any(strictly_equal(each, value) for each in self.values),
            "size": lambda: float(len(self.values)),
            "isEmpty": lambda: not self.values,
        }
        if name in methods:
            return methods[name]
        raise ScriptError(f"a collection has no {name!r} that Lockgate knows")


class JavaMap(JavaObject):
    """A Java map, whose values are read by `get` or as members."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def member(self, name: str) -> object:
        """Return a value, or a method."""
        methods: Mapping[str, Callable[..., object]] = {
            "get": lambda key: self._values.get(text_of(key)),
            "containsKey": lambda key: text_of(key) in self._values,
            "size": lambda: float(len(self._values)),
            "isEmpty": lambda: not self._values,
        }
        if name in methods:
            return methods[name]
        if name in self._values:
            return self._values[name]
        raise ScriptError(f"a map has no {name!r} that Lockgate knows")


def size_of(value: object, depth: int = 0) -> int:
    """Return how many letters and elements a value has; raises ScriptError for more than one may have."""
    size = 1
    if isinstance(value, str):
        size += len(value)
    elif isinstance(value, list | tuple | Mapping):
        if depth > _MAX_NESTING:
            raise ScriptError(f"a script nests lists deeper than {_MAX_NESTING} levels")
        for each in value.values() if isinstance(value, Mapping) else value:
            size += size_of(each, depth + 1)
            if size > _MAX_SIZE:
                break
    return checked_size(size)


def checked_size(size: int) -> int:
    """Return the size of a value; raises ScriptError for more than one may have."""
    if size > _MAX_SIZE:
        raise ScriptError(f"a script makes a value of more than {_MAX_SIZE:,} characters and elements")
    return size


def joined(texts: Iterable[str], between: str) -> str:
    """Return texts as one; raises ScriptError, before it is made, for more than a value may have."""
    parts, size = list[str](), 0
    for text in texts:
        size = checked_size(size + len(text) + (len(between) if parts else 0))
        parts.append(text)
    return between.join(parts)


def is_nothing(value: object) -> bool:
    """Return whether a value is null or undefined."""
    return value is None or value is UNDEFINED


def is_true(value: object) -> bool:
    """Return the truth of a value: lists and objects are true even when they are empty."""
    if is_nothing(value):
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value != 0 and not math.isnan(value)
    return value != "" if isinstance(value, str) else True


def text_of(value: object) -> str:
    """Return a value as text; raises ScriptError for what Java would write in a way of its own."""
    if is_nothing(value):
        return "null" if value is None else "undefined"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return _digits(float(value))
    if isinstance(value, list | tuple):
        return joined(("" if is_nothing(each) else text_of(each) for each in value), ",")
    if isinstance(value, Mapping):
        return "[object Object]"
    raise ScriptError("a script writes an object of Java as text")


def _digits(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value.is_integer() and abs(value) < _LARGEST:
        return str(int(value))
    if abs(value) < _SMALLEST or abs(value) >= _LARGEST:
        raise ScriptError("a script writes a very large or small number as text")
    return repr(value)


def number_of(value: object) -> float:
    """Return a value as number, NaN where it is none."""
    if value is UNDEFINED:
        return math.nan
    if value is None:
        return 0.0
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, datetime):
        return value.timestamp() * 1000
    text = text_of(value).strip(_BLANKS)
    if not text:
        return 0.0
    if not text.isascii() or "_" in text:
        return math.nan
    if text.lower().lstrip("+-").startswith(("inf", "nan")):
        return {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}.get(text, math.nan)
    try:
        return float(int(text, 16)) if text[:2] in ("0x", "0X") else float(text)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _primitive(value: object) -> object:
    """Return what a value is to operators: objects are their texts."""
    return text_of(value) if isinstance(value, list | tuple | Mapping | JavaObject) else value


def added(one: object, other: object) -> object:
    """Return `one + other`: texts one after the other if one is a text, else a sum."""
    one, other = _primitive(one), _primitive(other)
    if isinstance(one, str) or isinstance(other, str):
        return text_of(one) + text_of(other)
    return number_of(one) + number_of(other)


def divided(one: object, other: object) -> float:
    """Return `one / other`, which never fails."""
    dividend, divisor = number_of(one), number_of(other)
    if divisor != 0 or math.isnan(divisor):
        return dividend / divisor
    if dividend == 0 or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def remainder(one: object, other: object) -> float:
    """Return `one % other`, with the sign of the first."""
    dividend, divisor = number_of(one), number_of(other)
    if divisor == 0 or math.isinf(dividend):
        return math.nan
    return math.fmod(dividend, divisor)


def loosely_equal(one: object, other: object) -> bool:
    """Return `one == other`: what is of two kinds is compared as numbers, or as texts."""
    if is_nothing(one) or is_nothing(other):
        return is_nothing(one) and is_nothing(other)
    objects = [isinstance(each, list | tuple | Mapping | JavaObject) for each in (one, other)]
    if all(objects):
        return one is other
    one, other = _primitive(one), _primitive(other)
    if isinstance(one, str) and isinstance(other, str):
        return one == other
    return number_of(one) == number_of(other)


def strictly_equal(one: object, other: object) -> bool:
    """Return `one === other`."""
    if is_nothing(one) or is_nothing(other) or isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return (isinstance(one, str) and isinstance(other, str) and one == other) or one is other


def compared(one: object, other: object, holds: Callable[[Any, Any], bool]) -> bool:
    """Return whether a comparison of order holds: of two texts by their letters, else of numbers."""
    one, other = _primitive(one), _primitive(other)
    if isinstance(one, str) and isinstance(other, str):
        # JavaScript's letters are those of UTF-16.
        return holds(*(each.encode("utf-16-be", "surrogatepass") for each in (one, other)))
    return holds(number_of(one), number_of(other))


def member(value: object, name: object) -> object:
    """Return a member of a value by its name or index; undefined where there is none."""
    if is_nothing(value):
        raise ScriptFailedError
    key = text_of(name)
    if isinstance(value, JavaObject):
        return value.member(key)
    if isinstance(value, Mapping):
        return value[key] if key in value else _method(value, key, _OBJECTS, _OBJECTS_IN_FULL)
    if isinstance(value, str | list | tuple):
        if key == "length":
            # Texts have the method of Java, too, which is called the same.
            return Length(len(value)) if isinstance(value, str) else float(len(value))
        if key.isdecimal():
            return _item(value, float(key))
        return _method(value, key, *(_STRINGS if isinstance(value, str) else _ARRAYS))
    return _method(value, key, {"toString": text_of}, _NUMBERS_IN_FULL)


class Length(float):
    """The length of a text, which may be called."""

    def __call__(self) -> float:
        """Return it."""
        return float(self)


def _method(
    value: object, name: str, methods: Mapping[str, Callable[..., object]], in_full: frozenset[str]
) -> object:
    method = methods.get(name)
    if method is not None:
        return lambda *given: method(value, *given)
    if name in in_full:
        raise ScriptError(f"the method {name!r} is not known")
    return UNDEFINED


def is_member(name: object, value: object) -> bool:
    """Return `name in value`."""
    key = text_of(name)
    if isinstance(value, list | tuple):
        return key == "length" or (key.isdecimal() and float(key) < len(value)) or key in _ARRAYS[1]
    if isinstance(value, Mapping):
        return key in value or key in _OBJECTS_IN_FULL
    if isinstance(value, JavaObject):
        raise ScriptError("a script looks for a member of an object of Java")
    raise ScriptFailedError


def _item(value: str | list[Any] | tuple[Any, ...], index: float) -> object:
    return value[int(index)] if 0 <= index < len(value) else UNDEFINED


def _at(value: Any, index: object, default: float) -> int:
    """Return an index into a text or list: a number between its ends."""
    number = default if index is UNDEFINED else number_of(index)
    if math.isnan(number):
        return 0
    return int(min(max(number, 0.0), float(len(value))))


def _index_of(value: str, wanted: object, start: object = UNDEFINED) -> float:
    return float(value.find(text_of(wanted), _at(value, start, 0)))


def _index_in(value: list[Any], wanted: object, start: object = UNDEFINED) -> float:
    if start is not UNDEFINED:
        raise ScriptError("indexOf of a list from a place is not known")
    return float(next((place for place, each in enumerate(value) if strictly_equal(each, wanted)), -1))


def _substring(value: str, start: object = UNDEFINED, end: object = UNDEFINED) -> str:
    ends = sorted((_at(value, start, 0), _at(value, end, len(value))))
    return value[slice(*ends)]


def _split(value: str, mark: object = UNDEFINED, *more: object) -> list[str]:
    if more:
        raise ScriptError("split with a limit is not known")
    if mark is UNDEFINED:
        return [value]
    return list(value) if text_of(mark) == "" else value.split(text_of(mark))


def _join(value: list[Any], mark: object = UNDEFINED) -> str:
    between = "," if mark is UNDEFINED else text_of(mark)
    return joined(("" if is_nothing(each) else text_of(each) for each in value), between)


def _includes(value: list[Any], wanted: object) -> bool:
    return any(strictly_equal(each, wanted) for each in value)


def _intersects(value: list[Any], other: object) -> bool:
    """Ranger adds this one itself."""
    if is_nothing(other):
        return False
    if not isinstance(other, list | tuple):
        raise ScriptError("intersects with what is no list is not known")
    kinds = [{_identity(each) for each in values} for values in (value, other)]
    return not kinds[0].isdisjoint(kinds[1])


def _identity(value: object) -> tuple[object, ...]:
    """Return what two values have in common where they are strictly equal."""
    if isinstance(value, str):
        return ("text", value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ("number", object() if math.isnan(value) else value)
    return ("object", id(value))


def _string_argument(value: object) -> str:
    """Return what a method of Java's String takes: a text, or what Graal refuses to turn into one."""
    if not isinstance(value, str):
        raise ScriptError("a method of a text has an argument that is no text")
    return value


def _names(text: str) -> Iterator[str]:
    return iter(text.split())


_STRINGS: tuple[Mapping[str, Callable[..., object]], frozenset[str]] = (
    {
        "indexOf": _index_of,
        "substring": _substring,
        "split": _split,
        "toLowerCase": str.lower,
        "toUpperCase": str.upper,
        "trim": lambda value: value.strip(_BLANKS),
        "charAt": lambda value, index=0.0: value[_at(value, index, 0) : _at(value, index, 0) + 1],
        "toString": lambda value: value,
        # Java's
        "equals": lambda value, other=UNDEFINED: isinstance(other, str) and value == other,
        "equalsIgnoreCase": lambda value, other: value.lower() == _string_argument(other).lower(),
        "contains": lambda value, other: _string_argument(other) in value,
        "startsWith": lambda value, other: value.startswith(_string_argument(other)),
        "endsWith": lambda value, other: value.endswith(_string_argument(other)),
        "isEmpty": lambda value: not value,
    },
    frozenset(
        _names(
            "charCodeAt concat lastIndexOf localeCompare match replace search slice substr "
            "toLocaleLowerCase toLocaleUpperCase valueOf constructor hasOwnProperty "
            "isPrototypeOf propertyIsEnumerable anchor big blink bold fixed fontcolor fontsize "
            "italics link small strike sub sup trimLeft trimRight normalize chars codePointAt "
            "codePointBefore codePointCount codePoints compareTo compareToIgnoreCase "
            "contentEquals getBytes getChars getClass hashCode indent intern isBlank lines "
            "matches notify offsetByCodePoints regionMatches repeat replaceAll replaceFirst "
            "strip stripIndent stripLeading stripTrailing subSequence toCharArray transform "
            "translateEscapes wait describeConstable formatted"
        )
    ),
)
_ARRAYS: tuple[Mapping[str, Callable[..., object]], frozenset[str]] = (
    {
        "indexOf": _index_in,
        "includes": _includes,
        "intersects": _intersects,
        "join": _join,
        "toString": text_of,
    },
    frozenset(
        _names(
            "concat every filter forEach lastIndexOf map pop push reduce reduceRight reverse "
            "shift slice some sort splice unshift toLocaleString valueOf constructor "
            "hasOwnProperty isPrototypeOf propertyIsEnumerable"
        )
    ),
)
_OBJECTS: Mapping[str, Callable[..., object]] = {
    "hasOwnProperty": lambda value, name: text_of(name) in value,
    "toString": text_of,
}
_OBJECTS_IN_FULL = frozenset(
    _names(
        "constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString "
        "valueOf __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__"
    )
)
_NUMBERS_IN_FULL = _OBJECTS_IN_FULL | frozenset(_names("toExponential toFixed toPrecision"))
