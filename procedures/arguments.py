"""Arguments of several procedures: `key=value` options and partitions, in Paimon's syntax."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, OptionError, UnsupportedTypeError, nearest
from lockgate.framework.options import PARTITION_DEFAULT_NAME, TableOptions
from lockgate.framework.store import Table, TableSchema
from lockgate.framework.types import (
    DataType,
    Kind,
    has_partition_values,
    parse_iso_date,
    to_arrow,
    value_from_json,
)
from lockgate.pushdown import (
    And,
    Comparison,
    FieldPath,
    Not,
    Or,
    Predicate,
    columns_of,
    evaluate,
    parse_condition,
)

Partitions = Annotated[str | None, "only these: `day=2026-01-01,hour=1;day=2026-01-02` (default: all)"]
Where = Annotated[
    str | None,
    "only partitions of which this condition is true: `day >= '2026-01-01' AND hour IN (1, 2)` "
    "(default: all)",
]


def parse_options(text: str | None, more: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return the options in `k=v,k=v`, where what has no `=` belongs to the value before it, and in a map.

    >>> parse_options("bucket=4, orc.encrypt=pii:ssn,email;other:x")
    {'bucket': '4', 'orc.encrypt': 'pii:ssn,email;other:x'}

    Raises `InputError` for a text that starts without a key or names one twice, and `OptionError` for an
    option that is unknown or has an invalid value.
    """
    options = parse_pairs(text, more)
    TableOptions(options)
    return options


def parse_pairs(text: str | None, more: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return what `parse_options` does, of any names; `InputError` for one without a value or given twice."""
    options: dict[str, str] = {}
    key = ""
    for piece in (text or "").split(","):
        name, equals, value = piece.partition("=")
        if equals and name.strip():
            key = name.strip()
            if key in options:
                raise InputError(f"option {key!r} is given twice")
            options[key] = value.strip()
        elif key:
            options[key] += f",{piece.strip()}"
        elif piece.strip():
            # Not quoted: there may be a secret among them.
            raise InputError("options are written 'key=value,key=value': the first has no key")
    for name, given in (more or {}).items():
        if name in options:
            raise InputError(f"option {name!r} is given twice")
        if given is None:
            raise InputError(f"option {name!r} has no value")
        options[name] = given
    return options


def with_options(table: Table, options: Mapping[str, str], allowed: Collection[str]) -> Table:
    """Return the table with other options for one call; OptionError for one that is not in `allowed`."""
    for key in options:
        if key not in allowed:
            raise OptionError(f"option {key!r} cannot be set for one call{nearest(key, allowed)}")
    schema = replace(table.schema, options={**table.schema.options, **options})
    return table.sibling(table.identifier, schema)


def parse_pattern(argument: str, text: str | None, default: str) -> re.Pattern[str]:
    """Return the regular expression of an argument; InputError, naming the argument, if it is none."""
    try:
        return re.compile(default if text is None else text)
    except re.error as error:
        raise InputError(f"{argument} {text!r} is not a pattern: {error}") from None


def parse_selection(
    partitions: str | None, where: str | None, schema: TableSchema
) -> Callable[[Sequence[Any]], bool]:
    """Return a predicate on partition values: whether both arguments select them; raises as these do."""
    named, holds = parse_partitions(partitions, schema), parse_where(where, schema)
    return lambda values: named(values) and holds(values)


def parse_partitions(text: str | None, schema: TableSchema) -> Callable[[Sequence[Any]], bool]:
    """Return a predicate on partition values: whether the argument names them.

    A specification that omits columns means all partitions that agree in the others. Raises
    `InputError` for a column that is not a partition column or a value that is not of its type.
    """
    if not text:
        return lambda values: True
    wanted = [
        has_partition_values(schema.partition_keys, _one_partition(part, schema))
        for part in text.split(";")
        if part.strip()
    ]
    return lambda values: any(test(values) for test in wanted)


@checked_arguments
def parse_where(text: str | None, schema: TableSchema) -> Callable[[Sequence[Any]], bool]:
    """Return a predicate on partition values: whether a condition in SQL is true of them.

    A text that a column of another type is compared with is a value of that type. Raises InputError for a
    condition that is not understood or reads other columns.
    """
    if not text:
        return lambda values: True
    try:
        condition = parse_condition(text)
    except InputError as error:
        raise InputError(f"where: {error}") from None
    for name, *inner in columns_of(condition):
        if inner or name not in schema.partition_keys:
            hint = nearest(name, schema.partition_keys) if schema.partition_keys else "; the table has none"
            raise InputError(f"where: {'.'.join((name, *inner))!r} is not a partition column{hint}")
    typed = _typed(condition, schema)
    kinds = [to_arrow(schema.field(name).type) for name in schema.partition_keys]
    paths: list[FieldPath] = [(name,) for name in schema.partition_keys]

    def test(values: Sequence[Any]) -> bool:
        row = {path: pa.scalar(*each) for path, *each in zip(paths, values, kinds, strict=True)}
        try:
            return evaluate(typed, row) is True
        except UnsupportedTypeError as error:
            raise InputError(f"where: {error}") from None

    return test


def _typed(condition: Predicate, schema: TableSchema) -> Predicate:
    match condition:
        case And(children):
            return And(tuple(_typed(child, schema) for child in children))
        case Or(children):
            return Or(tuple(_typed(child, schema) for child in children))
        case Not(child):
            return Not(_typed(child, schema))
        case Comparison(op=op, field=path, literals=literals):
            data_type = schema.field(path[0]).type
            return Comparison(op, path, tuple(_typed_literal(data_type, item) for item in literals))
    return condition


def _typed_literal(data_type: DataType, item: pa.Scalar) -> pa.Scalar:
    if data_type.is_string or not pa.types.is_string(item.type):
        return item
    return pa.scalar(partition_value(data_type, item.as_py()), to_arrow(data_type))


def _one_partition(text: str, schema: TableSchema) -> Mapping[str, Any]:
    values = {}
    for piece in text.split(","):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals:
            raise InputError(f"a partition is written 'column=value,column=value', not {text!r}")
        if name not in schema.partition_keys:
            hint = nearest(name, schema.partition_keys) if schema.partition_keys else "; the table has none"
            raise InputError(f"{name!r} is not a partition column{hint}")
        default = schema.table_options.get_option(PARTITION_DEFAULT_NAME)
        values[name] = None if value == default else partition_value(schema.field(name).type, value)
    return values


def partition_value(data_type: DataType, text: str) -> Any:
    """Return the value of a partition column that `text` writes; InputError if it is not of the type."""
    try:
        if data_type.kind is Kind.DATE:
            return parse_iso_date(text)
        if data_type.kind is Kind.BOOLEAN:
            return {"true": True, "false": False}[text.lower()]
        if data_type.is_string:
            return text
        return value_from_json(data_type, _json_of(data_type, text))
    except (KeyError, ValueError):
        raise InputError(f"{text!r} is not a value of type {data_type}") from None


def _json_of(data_type: DataType, text: str) -> int | float | str:
    if data_type.is_integer or data_type.is_timestamp or data_type.kind is Kind.TIME:
        return int(text)
    is_number = data_type.kind in (Kind.FLOAT, Kind.DOUBLE) and math.isfinite(float(text))
    return float(text) if is_number else text
