"""Data types and fields of tables, as in Paimon's schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import UnsupportedTypeError

MAX_LENGTH = 2**31 - 1


class Kind(StrEnum):
    """The kind of a data type; parameters such as precision are fields of `DataType`."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    ARRAY = "ARRAY"
    MAP = "MAP"
    ROW = "ROW"
    OPAQUE = "OPAQUE"


NESTED_KINDS = frozenset({Kind.ARRAY, Kind.MAP, Kind.ROW})
STRING_KINDS = frozenset({Kind.CHAR, Kind.VARCHAR})
BINARY_KINDS = frozenset({Kind.BINARY, Kind.VARBINARY})
INTEGER_KINDS = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT})
FLOAT_KINDS = frozenset({Kind.FLOAT, Kind.DOUBLE})
TIMESTAMP_KINDS = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ})


@dataclass(frozen=True, slots=True)
class DataField:
    """A named column or a member of a ROW; schema evolution identifies it by `id`."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    # In the form of schema files, or SQL before the table is created: see `store.defaults`.
    default: str | None = None


@dataclass(frozen=True, slots=True)
class DataType:
    """A type with its nullability and parameters; create it by the functions below or by `parse_type`.

    CHAR, VARCHAR, BINARY and VARBINARY have a `length` (STRING is VARCHAR and BYTES is VARBINARY of
    `MAX_LENGTH`); DECIMAL, TIME, TIMESTAMP and TIMESTAMP_LTZ have a `precision`, DECIMAL also a `scale`.
    ARRAY has an `element`, MAP a `key` and a `value`, ROW has `fields`. An unknown type is OPAQUE: `unparsed`
    is its JSON without nullability, and its values are neither read nor written.
    """

    kind: Kind
    nullable: bool = True
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    element: DataType | None = None
    key: DataType | None = None
    value: DataType | None = None
    fields: tuple[DataField, ...] = ()
    unparsed: str | None = None

    @property
    def is_opaque(self) -> bool:
        """Return whether the type is unknown to this version."""
        return self.kind is Kind.OPAQUE

    @property
    def holds_opaque(self) -> bool:
        """Return whether the type or a nested type is OPAQUE."""
        nested_types = (self.element, self.key, self.value, *(field.type for field in self.fields))
        return self.is_opaque or any(
            nested_type is not None and nested_type.holds_opaque for nested_type in nested_types
        )

    @property
    def is_nested(self) -> bool:
        """Return whether values are arrays, maps, multisets or rows."""
        return self.kind in NESTED_KINDS

    @property
    def is_string(self) -> bool:
        """Return whether values are texts."""
        return self.kind in STRING_KINDS

    @property
    def is_binary(self) -> bool:
        """Return whether values are bytes."""
        return self.kind in BINARY_KINDS

    @property
    def is_integer(self) -> bool:
        """Return whether values are integers."""
        return self.kind in INTEGER_KINDS

    @property
    def is_timestamp(self) -> bool:
        """Return whether values are timestamps, with or without time zone."""
        return self.kind in TIMESTAMP_KINDS

    def with_nullable(self, nullable: bool) -> DataType:
        """Return this type with another nullability."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    @property
    def bare_name(self) -> str:
        """The type in SQL without nullability, such as `DECIMAL(5, 2)` or `ARRAY<INT NOT NULL>`."""
        return _to_sql(self)

    def __str__(self) -> str:
        return self.bare_name if self.nullable else f"{self.bare_name} NOT NULL"

    # ARRAY and MAP always have these; for other kinds the fields are None.
    def element_type(self) -> DataType:
        """Return the element type of an ARRAY."""
        return _present(self, self.element, "element")

    def key_type(self) -> DataType:
        """Return the key type of a MAP."""
        return _present(self, self.key, "key")

    def value_type(self) -> DataType:
        """Return the value type of a MAP."""
        return _present(self, self.value, "value")


def _present(owner: DataType, part: DataType | None, name: str) -> DataType:
    if part is None:
        raise UnsupportedTypeError(f"{owner.kind} has no {name} type")
    return part


def _to_sql(data_type: DataType) -> str:
    kind = data_type.kind
    if kind is Kind.VARCHAR and data_type.length == MAX_LENGTH:
        return "STRING"
    if kind is Kind.VARBINARY and data_type.length == MAX_LENGTH:
        return "BYTES"
    if kind in STRING_KINDS or kind in BINARY_KINDS:
        return f"{kind}({data_type.length})"
    if kind is Kind.DECIMAL:
        return f"DECIMAL({data_type.precision}, {data_type.scale})"
    if kind is Kind.TIMESTAMP_LTZ:
        return f"TIMESTAMP({data_type.precision}) WITH LOCAL TIME ZONE"
    if kind in (Kind.TIME, Kind.TIMESTAMP):
        return f"{kind}({data_type.precision})"
    if kind is Kind.ARRAY:
        return f"ARRAY<{data_type.element}>"
    if kind is Kind.MAP:
        return f"MAP<{data_type.key}, {data_type.value}>"
    if kind is Kind.ROW:
        return f"ROW<{', '.join(f'{field.name} {field.type}' for field in data_type.fields)}>"
    if kind is Kind.OPAQUE:
        return _json_to_text(json.loads(data_type.unparsed or '""'))
    return str(kind)


def _json_to_text(content: Any) -> str:
    """Return the JSON of any type as text, such as `MULTISET<INT>` or `VECTOR<FLOAT, 3>`."""
    if not isinstance(content, Mapping):
        return str(content)
    root, *nullability = str(content.get("type")).split(" ")
    parts = [
        _json_to_text(content[name]) for name in ("element", "key", "value", "length") if name in content
    ]
    members = content.get("fields")
    for field in members if isinstance(members, list) else []:
        parts.append(f"{field.get('name')} {_json_to_text(field.get('type'))}")
    text = f"{root}<{', '.join(parts)}>" if parts else root
    return " ".join([text, *nullability])


# --- constructors --------------------------------------------------------------------------------

BOOLEAN = DataType(Kind.BOOLEAN)
TINYINT = DataType(Kind.TINYINT)
SMALLINT = DataType(Kind.SMALLINT)
INT = DataType(Kind.INT)
BIGINT = DataType(Kind.BIGINT)
FLOAT = DataType(Kind.FLOAT)
DOUBLE = DataType(Kind.DOUBLE)
STRING = DataType(Kind.VARCHAR, length=MAX_LENGTH)
BYTES = DataType(Kind.VARBINARY, length=MAX_LENGTH)
DATE = DataType(Kind.DATE)

_MAX_LENGTHS = {Kind.CHAR: 255, Kind.VARCHAR: MAX_LENGTH, Kind.BINARY: MAX_LENGTH, Kind.VARBINARY: MAX_LENGTH}


@checked_arguments
def sized(kind: Kind, length: int) -> DataType:
    """Return CHAR, VARCHAR, BINARY or VARBINARY of a length; UnsupportedTypeError if it is out of range."""
    _check_range(kind, "length", length, 1, _MAX_LENGTHS[kind])
    return DataType(kind, length=length)


@checked_arguments
def decimal(precision: int, scale: int = 0) -> DataType:
    """Return DECIMAL(precision, scale); UnsupportedTypeError unless 0 <= scale <= precision <= 38."""
    _check_range(Kind.DECIMAL, "precision", precision, 1, 38)
    _check_range(Kind.DECIMAL, "scale", scale, 0, precision)
    return DataType(Kind.DECIMAL, precision=precision, scale=scale)


@checked_arguments
def time(precision: int = 0) -> DataType:
    """Return TIME(precision), a time of day without time zone."""
    _check_range(Kind.TIME, "precision", precision, 0, 9)
    return DataType(Kind.TIME, precision=precision)


@checked_arguments
def timestamp(precision: int = 6) -> DataType:
    """Return TIMESTAMP(precision), a timestamp without time zone (Spark's TIMESTAMP_NTZ)."""
    _check_range(Kind.TIMESTAMP, "precision", precision, 0, 9)
    return DataType(Kind.TIMESTAMP, precision=precision)


@checked_arguments
def timestamp_ltz(precision: int = 6) -> DataType:
    """Return TIMESTAMP(precision) WITH LOCAL TIME ZONE, an instant (Spark's TIMESTAMP)."""
    _check_range(Kind.TIMESTAMP_LTZ, "precision", precision, 0, 9)
    return DataType(Kind.TIMESTAMP_LTZ, precision=precision)


@checked_arguments
def array(element: DataType) -> DataType:
    """Return ARRAY<element>."""
    return DataType(Kind.ARRAY, element=element)


@checked_arguments
def map_of(key: DataType, value: DataType) -> DataType:
    """Return MAP<key, value>."""
    return DataType(Kind.MAP, key=key, value=value)


@checked_arguments
def row(fields: tuple[DataField, ...]) -> DataType:
    """Return ROW<fields>."""
    return DataType(Kind.ROW, fields=fields)


def _check_range(kind: Kind, what: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int) or not low <= value <= high:
        raise UnsupportedTypeError(f"the {what} of {kind} must be between {low} and {high}, not {value!r}")
