"""From what callers have to what Arrow's ORC writer takes."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework.orc.field_ids import with_field_ids
from lockgate.framework.orc.image import ENCRYPTION_ATTRIBUTES
from lockgate.framework.orc.reader import MASKED

_WRITABLE = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_date32,
    pa.types.is_timestamp,
    pa.types.is_decimal128,
)


def storage_schema(schema: pa.Schema, field_ids: Mapping[str, int] | None) -> pa.Schema:
    """The schema that is stored for rows of `schema`: times as integers, everything nullable, field ids as
    metadata.

    Raises `UnsupportedTypeError` for a type that ORC cannot hold, and `InputError` for a column that was
    read as a mask.
    """
    fields: list[pa.Field] = []
    for field in schema:
        metadata = field.metadata or {}
        if MASKED in metadata:
            raise InputError(
                f"column {field.name!r} holds masks, not values, because it was read without its key; "
                f"read it with the key, or drop the field's metadata {MASKED.decode()!r} to store the masks"
            )
        kept = {
            key: value
            for key, value in metadata.items()
            if key.decode("utf-8", "replace") not in ENCRYPTION_ATTRIBUTES
        }
        fields.append(pa.field(field.name, _storage_type(field.name, field.type), True, kept or None))
    if len({field.name for field in fields}) != len(fields):
        raise InputError(f"two columns have the same name: {', '.join(schema.names)}")
    stored = pa.schema(fields)
    return with_field_ids(stored, field_ids) if field_ids else stored


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` in its storage schema; `InputError` if it has other columns."""
    if table.schema.names != schema.names:
        raise InputError(f"the rows have columns {table.schema.names}, not {schema.names}")
    columns: list[pa.ChunkedArray] = []
    for field, column in zip(schema, table.columns, strict=True):
        if column.type != field.type:
            column = column.cast(field.type)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _storage_type(name: str, type_: pa.DataType) -> pa.DataType:
    if pa.types.is_time32(type_):
        return pa.int32()
    if any(test(type_) for test in _WRITABLE):
        return type_
    if pa.types.is_dictionary(type_):
        return _storage_type(name, type_.value_type)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_storage_type(name, field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(
            type_.key_field.with_type(_storage_type(name, type_.key_type)),
            type_.item_field.with_type(_storage_type(name, type_.item_type)),
        )
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_storage_type(name, type_.value_type)))
    if pa.types.is_large_list(type_):
        return pa.large_list(type_.value_field.with_type(_storage_type(name, type_.value_type)))
    raise UnsupportedTypeError(f"column {name!r} has type {type_}, which ORC cannot hold; cast it first")
