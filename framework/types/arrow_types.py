"""Conversion of types and fields to and from Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import UnsupportedTypeError
from lockgate.framework.types import datatype as dt
from lockgate.framework.types.datatype import DataField, DataType, Kind

_TO_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.CHAR: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.VARBINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time32("ms"),
    Kind.OPAQUE: pa.null(),
}

_FROM_ARROW = {
    pa.bool_(): dt.BOOLEAN,
    pa.int8(): dt.TINYINT,
    pa.int16(): dt.SMALLINT,
    pa.int32(): dt.INT,
    pa.int64(): dt.BIGINT,
    pa.float32(): dt.FLOAT,
    pa.float64(): dt.DOUBLE,
    pa.string(): dt.STRING,
    pa.large_string(): dt.STRING,
    pa.binary(): dt.BYTES,
    pa.large_binary(): dt.BYTES,
    pa.date32(): dt.DATE,
    pa.time32("s"): dt.time(0),
    pa.time32("ms"): dt.time(3),
}

_PRECISION = {"s": 0, "ms": 3, "us": 6, "ns": 9}


@checked_arguments
def to_arrow(data_type: DataType) -> pa.DataType:
    """Return the Arrow type for values of `data_type`.

    TIMESTAMP is a timestamp without time zone and TIMESTAMP_LTZ one in UTC, with unit ms, us or ns by
    precision. OPAQUE, whose values are not read, is null.
    """
    kind = data_type.kind
    if kind in _TO_ARROW:
        return _TO_ARROW[kind]
    if kind is Kind.DECIMAL:
        return pa.decimal128(data_type.precision, data_type.scale)
    if kind is Kind.ARRAY:
        return pa.list_(_arrow_field("element", data_type.element_type()))
    if kind is Kind.MAP:
        key = pa.field("key", to_arrow(data_type.key_type()), nullable=False)
        return pa.map_(key, _arrow_field("value", data_type.value_type()))
    if kind is Kind.ROW:
        return pa.struct([_arrow_field(field.name, field.type) for field in data_type.fields])
    precision = data_type.precision or 0
    unit = "ms" if precision <= 3 else "us" if precision <= 6 else "ns"
    return pa.timestamp(unit, "UTC" if kind is Kind.TIMESTAMP_LTZ else None)


def _arrow_field(name: str, data_type: DataType) -> pa.Field:
    return pa.field(name, to_arrow(data_type), nullable=data_type.nullable)


@checked_arguments
def from_arrow(
    arrow_type: pa.DataType, *, nullable: bool = True, next_id: list[int] | None = None
) -> DataType:
    """Return the type of an Arrow type; a timestamp with any time zone is an instant.

    `next_id` is a list with the next field id for members of a ROW. Raises UnsupportedTypeError for other
    types, such as unsigned integers, durations and unions.
    """
    counter = [0] if next_id is None else next_id
    return _from_arrow(arrow_type, counter).with_nullable(nullable)


def _from_arrow(arrow_type: pa.DataType, counter: list[int]) -> DataType:
    if arrow_type in _FROM_ARROW:
        return _FROM_ARROW[arrow_type]
    if pa.types.is_dictionary(arrow_type):
        return _from_arrow(arrow_type.value_type, counter)
    if pa.types.is_decimal128(arrow_type) or pa.types.is_decimal256(arrow_type):
        return dt.decimal(arrow_type.precision, arrow_type.scale)
    if pa.types.is_fixed_size_binary(arrow_type):
        return dt.sized(Kind.BINARY, arrow_type.byte_width)
    if pa.types.is_timestamp(arrow_type):
        make = dt.timestamp if arrow_type.tz is None else dt.timestamp_ltz
        return make(_PRECISION[arrow_type.unit])
    if pa.types.is_map(arrow_type):
        key = from_arrow(arrow_type.key_type, nullable=False, next_id=counter)
        item = arrow_type.item_field
        return dt.map_of(key, from_arrow(item.type, nullable=item.nullable, next_id=counter))
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        element = arrow_type.value_field
        return dt.array(from_arrow(element.type, nullable=element.nullable, next_id=counter))
    if pa.types.is_struct(arrow_type):
        return dt.row(_fields(arrow_type, counter))
    raise UnsupportedTypeError(f"the Arrow type {arrow_type} cannot be stored; cast it to a supported one")


def _fields(members: Iterable[pa.Field], counter: list[int]) -> tuple[DataField, ...]:
    fields = []
    for member in members:
        field_id = counter[0]
        counter[0] += 1
        try:
            data_type = from_arrow(member.type, nullable=member.nullable, next_id=counter)
        except UnsupportedTypeError as error:
            raise UnsupportedTypeError(f"column {member.name!r}: {error}") from None
        fields.append(DataField(field_id, member.name, data_type))
    return tuple(fields)


@checked_arguments
def fields_from_arrow(schema: pa.Schema) -> tuple[DataField, ...]:
    """Return the fields of an Arrow schema, with ids from 0, including nested members."""
    return _fields(schema, [0])


@checked_arguments
def arrow_schema(fields: Iterable[DataField]) -> pa.Schema:
    """Return the Arrow schema of `fields`, with nullability."""
    if isinstance(fields, Iterator):
        return arrow_schema(tuple(fields))  # items of a tuple are type-checked
    return pa.schema([_arrow_field(field.name, field.type) for field in fields])
