"""Predicates to and from the connector's JSON.

A node is `{"op": name, "args": [...]}`; an argument is a node, `{"col": path}` or `{"value": ..., "type":
...}`. Operators have the names of Spark's V2 predicates, types the names of Spark's `StructType.json`.
Decimals and strings are JSON strings, binary is base64, dates are days and timestamps microseconds since
1970-01-01. NaN and the infinities are the strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from lockgate.errors import UnsupportedTypeError
from lockgate.pushdown.description import describe, describe_field, describe_literal
from lockgate.pushdown.predicates import (
    PATTERNS,
    AlwaysFalse,
    AlwaysTrue,
    And,
    Comparison,
    FieldPath,
    Not,
    Op,
    Or,
    Predicate,
    PredicateVisitor,
)
from lockgate.pushdown.value_order import Family, family_of

_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_TEXT = re.compile(r"(?:var)?char\(\d+\)|string(?: collate UTF8_BINARY)?")
_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_NAMES = {kind: name for name, kind in _ARROW_TYPES.items()}
_MIRRORED = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}
_SYMMETRIC = frozenset({Op.EQ, Op.NE, Op.EQ_NULL_SAFE})
# Spark pushes no patterns down, and its regular expressions have another syntax.
_OPS = {op.value: op for op in Op if op not in PATTERNS}
_PATTERN_OPS = {op.value: op for op in PATTERNS}
_SPECIAL = frozenset({"NaN", "Infinity", "-Infinity"})
# Spark writes the literals TRUE and FALSE as predicates wherever they stand.
_BOOLEANS: dict[str, Mapping[str, Any]] = {
    "ALWAYS_TRUE": {"value": True, "type": "boolean"},
    "ALWAYS_FALSE": {"value": False, "type": "boolean"},
}


_CONVERSION_ERRORS = (ArithmeticError, ValueError, TypeError, pa.ArrowException)


class _UnsupportedError(Exception):
    """Raised inside this module for a part that cannot be a predicate."""


def from_json(node: object) -> Predicate | None:
    """Parse a predicate; None if it has an unsupported part, such as a cast, a function or a type."""
    try:
        return _node(node)
    except (_UnsupportedError, UnsupportedTypeError):
        return None


def pattern_from_json(node: Mapping[str, Any]) -> Comparison | None:
    """Parse a column's comparison with a pattern in Spark's syntax; None if it is anything else.

    Use it only for `required_literals`: Python would evaluate its regular expression by another syntax.
    """
    op, arguments = _PATTERN_OPS.get(str(node.get("op"))), node.get("args") or []
    if op is None or len(arguments) != 2:
        return None
    try:
        comparison = Comparison(op, _path(arguments[0]), (_literal(arguments[1]),))
    except _UnsupportedError:
        return None
    return comparison if pa.types.is_string(comparison.literals[0].type) else None


def reason_unsupported(node: object) -> str | None:
    """Return the reason why `from_json` returns None, None if it returns a predicate."""
    try:
        _node(node)
    except (_UnsupportedError, UnsupportedTypeError) as error:
        return str(error)
    return None


def describe_json(node: object) -> str:
    """Return a node as SQL-like text, even one that `from_json` does not support.

    >>> describe_json({"op": "UPPER", "args": [{"col": ["a"]}]})
    'UPPER(a)'
    """
    supported = from_json(node)
    if supported is not None:
        return describe(supported)
    if not isinstance(node, Mapping):
        return "?"
    if "col" in node:
        return describe_field(tuple(map(str, node["col"])))
    if "value" in node:
        return _describe_value(node)
    return str(node["text"]) if node.get("text") else _describe_operator(node)


def _describe_value(node: Mapping[str, Any]) -> str:
    try:
        return describe_literal(_literal(node))
    except _UnsupportedError:
        return "NULL" if node["value"] is None else str(node["value"])


def _describe_operator(node: Mapping[str, Any]) -> str:
    op, parts = str(node.get("op", "?")), [describe_json(item) for item in node.get("args") or ()]
    if op == "CAST" and len(parts) == 1:
        return f"CAST({parts[0]} AS {str(node.get('type', '?')).upper()})"
    if op in ("IS_NULL", "IS_NOT_NULL") and len(parts) == 1:
        return f"{parts[0]} {op.replace('_', ' ')}"
    if op in ("AND", "OR"):
        return "(" + f" {op} ".join(parts) + ")"
    if len(parts) == 2 and not op[0].isalpha():
        return f"{parts[0]} {op} {parts[1]}"
    return f"{op}({', '.join(parts)})"


def to_json(predicate: Predicate) -> dict[str, Any]:
    """Return a predicate as JSON; raises UnsupportedTypeError for literals of types that Spark lacks."""
    return _ToJson().visit(predicate)


def _node(node: object) -> Predicate:
    if not (isinstance(node, Mapping) and isinstance(node.get("op"), str)):
        raise _UnsupportedError("not an operator")
    op, arguments = node["op"], node.get("args") or []
    match op, arguments:
        case "AND", [_, *_]:
            return And(tuple(_node(item) for item in arguments))
        case "OR", [_, *_]:
            return Or(tuple(_node(item) for item in arguments))
        case "NOT", [child]:
            return Not(_node(child))
        case "ALWAYS_TRUE", []:
            return AlwaysTrue()
        case "ALWAYS_FALSE", []:
            return AlwaysFalse()
    if op not in _OPS:
        what = node.get("text") or op
        raise _UnsupportedError(f"{what} is not a comparison that can be pushed down")
    return _comparison(_OPS[op], arguments)


def _comparison(op: Op, arguments: Sequence[object]) -> Predicate:
    arguments = [_BOOLEANS.get(_constant(argument), argument) for argument in arguments]
    if len(arguments) == 2 and _is_literal(arguments[0]) and (op in _MIRRORED or op in _SYMMETRIC):
        op, arguments = _MIRRORED.get(op, op), arguments[::-1]
    if not arguments:
        raise _UnsupportedError(f"{op.value} without arguments")
    field, *rest = arguments
    literal_count = 0 if op in (Op.IS_NULL, Op.IS_NOT_NULL) else 1
    if op is not Op.IN and len(rest) != literal_count:
        raise _UnsupportedError(f"{op.value} with {len(arguments)} arguments")
    return Comparison(op, _path(field), _literals(rest))


def _constant(argument: object) -> str:
    return str(argument.get("op", "")) if isinstance(argument, Mapping) else ""


def _is_literal(argument: object) -> bool:
    return isinstance(argument, Mapping) and "value" in argument


def _path(argument: object) -> FieldPath:
    if not (isinstance(argument, Mapping) and isinstance(argument.get("col"), list) and argument["col"]):
        raise _UnsupportedError("compares an expression, not a column")
    return tuple(str(name) for name in argument["col"])


def _literals(arguments: Sequence[object]) -> tuple[pa.Scalar, ...]:
    """Parse literals; all literals of a long list have one type, so Arrow converts them in one call."""
    names = {str(item.get("type")) if isinstance(item, Mapping) else None for item in arguments}
    if len(arguments) > 1 and len(names) == 1:
        try:
            convert = _converter(kind := _type(names.pop()))
            values = [item["value"] for item in arguments]  # type: ignore[index]  # all have a type
            return tuple(pa.array([None if value is None else convert(value) for value in values], kind))
        except (*_CONVERSION_ERRORS, _UnsupportedError, KeyError):
            pass  # converting one by one finds the wrong one for the error
    return tuple(_literal(item) for item in arguments)


def _literal(argument: object) -> pa.Scalar:
    if not isinstance(argument, Mapping) or "value" not in argument:
        raise _UnsupportedError("compares with an expression, not a literal")
    kind = _type(argument.get("type"))
    value = argument["value"]
    try:
        return pa.scalar(None if value is None else _converter(kind)(value), kind)
    except _CONVERSION_ERRORS as error:
        raise _UnsupportedError(f"{value!r} is not a {argument.get('type')}") from error


def _type(name: object) -> pa.DataType:
    if isinstance(name, str):
        if name in _ARROW_TYPES:
            return _ARROW_TYPES[name]
        if _TEXT.fullmatch(name):
            return pa.string()
        if match := _DECIMAL.fullmatch(name):
            return pa.decimal128(int(match[1]), int(match[2]))
    raise _UnsupportedError(f"literals of type {name} are not supported")


def _converter(data_type: pa.DataType) -> Callable[[Any], object]:
    """Return a strict converter of JSON values: Arrow would cut 0.5 to 0 and accept "1.5" as a number."""
    if pa.types.is_floating(data_type):
        return lambda value: _number(value, data_type)
    if pa.types.is_decimal(data_type):
        return lambda value: Decimal(_checked_type(str, value))
    if pa.types.is_binary(data_type):
        return lambda value: base64.b64decode(_checked_type(str, value), validate=True)
    if pa.types.is_string(data_type):
        return partial(_checked_type, str)
    return partial(_checked_type, bool if pa.types.is_boolean(data_type) else int)


def _checked_type(expected: type, value: Any) -> Any:
    if type(value) is not expected:  # type(), because a bool is an int
        raise TypeError(f"a {type(value).__name__}, not a {expected.__name__}")
    return value


def _number(value: Any, data_type: pa.DataType) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return float(value)
    if type(value) not in (int, float):
        raise TypeError(f"a {type(value).__name__}, not a number")
    if not math.isfinite(pa.scalar(float(value), data_type).as_py()):
        raise OverflowError("the number is too large")
    return float(value)


class _ToJson(PredicateVisitor[dict[str, Any]]):
    def comparison(self, node: Comparison) -> dict[str, Any]:
        if node.op in PATTERNS:
            raise UnsupportedTypeError(f"{node.op.value} has no form in Spark")
        return {
            "op": node.op.value,
            "args": [{"col": list(node.field)}, *(literal_to_json(item) for item in node.literals)],
        }

    def conjunction(self, children: list[dict[str, Any]]) -> dict[str, Any]:
        return {"op": "AND", "args": children} if children else self.constant(True)

    def disjunction(self, children: list[dict[str, Any]]) -> dict[str, Any]:
        return {"op": "OR", "args": children} if children else self.constant(False)

    def negation(self, child: dict[str, Any]) -> dict[str, Any]:
        return {"op": "NOT", "args": [child]}

    def constant(self, value: bool) -> dict[str, Any]:
        return {"op": "ALWAYS_TRUE" if value else "ALWAYS_FALSE", "args": []}


def literal_to_json(scalar: pa.Scalar) -> dict[str, Any]:
    """Return a literal as `{"value": ..., "type": Spark type name}`."""
    kind, family = scalar.type, family_of(scalar.type)
    name = _spark_name(kind, family)
    if not scalar.is_valid:
        return {"value": None, "type": name}
    if family in (Family.TIMESTAMP, Family.INSTANT):
        if kind.unit != "us":  # the cast raises an error if it would lose nanoseconds
            try:
                scalar = scalar.cast(pa.timestamp("us", kind.tz))
            except pa.ArrowInvalid as error:
                raise UnsupportedTypeError(
                    f"{describe_literal(scalar)} is finer than Spark's microseconds"
                ) from error
        return {"value": scalar.value, "type": name}
    if family is Family.DATE:
        return {"value": scalar.cast(pa.date32()).value, "type": name}
    value = scalar.as_py()
    if family is Family.BINARY:
        value = base64.b64encode(value).decode()
    elif isinstance(value, Decimal):
        value = format(value, "f")
    elif pa.types.is_floating(kind) and not math.isfinite(value):
        value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return {"value": value, "type": name}


def _spark_name(data_type: pa.DataType, family: Family | None) -> str:
    if data_type in _NAMES:
        return _NAMES[data_type]
    if (
        pa.types.is_decimal(data_type)
        and data_type.precision <= 38
        and 0 <= data_type.scale <= data_type.precision
    ):
        return f"decimal({data_type.precision},{data_type.scale})"
    match family:
        case Family.STRING:
            return "string"
        case Family.BINARY:
            return "binary"
        case Family.TIMESTAMP:
            return "timestamp_ntz"
        case Family.INSTANT:
            return "timestamp"
        case Family.DATE:
            return "date"
    raise UnsupportedTypeError(f"Spark has no literals of type {data_type}")
