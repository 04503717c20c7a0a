"""Spelling of values in Paimon's system tables.

Partitions as SQL casts them to text, keys and bounds as Java prints its internal values (days for DATE).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lockgate.errors import UnsupportedFormatError
from lockgate.framework.store.metadata.paths import partition_text
from lockgate.framework.types import DataField, DataType, Kind

NULL = "null"


def partition_row(types: Sequence[DataType], values: Sequence[Any]) -> str:
    """Return `{2024-01-01, 3}`."""
    pairs = zip(types, values, strict=True)
    return "{" + ", ".join(NULL if value is None else cast_text(kind, value) for kind, value in pairs) + "}"


def partition_name(fields: Sequence[DataField], values: Sequence[Any], null: str) -> str:
    """Return `day=2024-01-01/hour=3`, empty without partition columns; `null` stands for None."""
    pairs = zip(fields, values, strict=True)
    return "/".join(
        f"{field.name}={null if value is None else cast_text(field.type, value)}" for field, value in pairs
    )


def map_text(values: Mapping[str, str]) -> str:
    """Return `{a=1, b=null}`, sorted by name."""
    return "{" + ", ".join(f"{name}={values[name]}" for name in sorted(values)) + "}"


def internal_text(data_type: DataType, value: Any) -> str:
    """Return what Java prints of a value as Paimon holds it; bytes are in hexadecimal digits."""
    if value is None:
        return NULL
    return value.hex() if data_type.is_binary else partition_text(data_type, value, legacy=True)


def internal_spelling(data_type: DataType) -> Callable[[Any], str]:
    """Return `internal_text` of values of one type."""
    if data_type.is_string or data_type.is_integer:
        return lambda value: NULL if value is None else str(value)
    return partial(internal_text, data_type)


def cast_text(data_type: DataType, value: Any) -> str:
    """Return what CAST(value AS STRING) gives; an instant is in the time zone of this computer."""
    if data_type.is_binary:
        return bytes(value).decode("utf-8", "replace")
    if data_type.kind is Kind.TIMESTAMP_LTZ:
        wall = value.astimezone().replace(tzinfo=None)
        return partition_text(DataType(Kind.TIMESTAMP, precision=data_type.precision), wall, legacy=False)
    try:
        return partition_text(data_type, value, legacy=False)
    except UnsupportedFormatError:
        return str(value)


def sql_type(data_type: DataType) -> str:
    """Return a type as Paimon's `asSQLString` does: as `str`, with names of fields in backticks."""
    if data_type.kind is Kind.ARRAY:
        text = f"ARRAY<{sql_type(data_type.element_type())}>"
    elif data_type.kind is Kind.MAP:
        text = f"MAP<{sql_type(data_type.key_type())}, {sql_type(data_type.value_type())}>"
    elif data_type.kind is Kind.ROW:
        text = f"ROW<{', '.join(f'`{field.name}` {sql_type(field.type)}' for field in data_type.fields)}>"
    else:
        return str(data_type)
    return text if data_type.nullable else f"{text} NOT NULL"
