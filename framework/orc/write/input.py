"""Conversion of callers' rows to what Arrow's ORC writer takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework.orc.encryption.plaintext_marks import ENCRYPTED
from lockgate.framework.orc.format.column_paths import KEY, ColumnTree, OrcColumn
from lockgate.framework.orc.format.field_ids import with_field_ids
from lockgate.framework.orc.format.text_kinds import check_text, holds_text_kinds, text_kind
from lockgate.framework.orc.read.image import ENCRYPTION_ATTRIBUTES
from lockgate.framework.orc.read.reader import MASKED
from lockgate.framework.types import convert_losslessly, from_arrow

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
    """Return the schema that is stored for rows of `schema`: times as integers, everything nullable, field
    ids as metadata.

    Raises `UnsupportedTypeError` for a type that ORC cannot hold, and `InputError` for a column that was
    read as a mask.
    """
    fields = [_storage_field(field.name, field) for field in schema]
    if len({field.name for field in fields}) != len(fields):
        raise InputError(f"two columns have the same name: {', '.join(schema.names)}")
    stored = pa.schema(fields)
    return with_field_ids(stored, field_ids) if field_ids else stored


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return `table` in its storage schema; `InputError` if it has other columns."""
    if table.schema.names != schema.names:
        raise InputError(f"the rows have columns {table.schema.names}, not {schema.names}")
    columns: list[pa.ChunkedArray] = []
    for field, column in zip(schema, table.columns, strict=True):
        columns.append(column if column.type == field.type else _stored(field, column))
    if holds_text_kinds(schema):
        columns = [_fitted(*each) for each in zip(ColumnTree(schema).top, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _stored(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as they are stored; InputError if a value would change."""
    if _storage_type(field.name, column.type) != field.type:
        column = convert_losslessly(column, from_arrow(field.type), field.name)
    return column.cast(field.type)


def _storage_field(name: str, field: pa.Field, *, nullable: bool = True) -> pa.Field:
    """Return a field as it is stored; `name` is the top-level column's."""
    metadata = field.metadata or {}
    if MASKED in metadata:
        raise InputError(
            f"column {name!r} holds masks, not values, because it was read without its key; "
            f"read it with the key, or drop the field's metadata {MASKED.decode()!r} to store the masks"
        )
    kept = {
        key: value
        for key, value in metadata.items()
        if key != ENCRYPTED and key.decode("utf-8", "replace") not in ENCRYPTION_ATTRIBUTES
    }
    stored = pa.field(field.name, _storage_type(name, field.type), nullable, kept or None)
    text_kind(stored)
    return stored


def _storage_type(name: str, type_: pa.DataType) -> pa.DataType:
    if pa.types.is_time32(type_):
        return pa.int32()
    if any(test(type_) for test in _WRITABLE):
        return type_
    if pa.types.is_dictionary(type_):
        return _storage_type(name, type_.value_type)
    if pa.types.is_struct(type_):
        return pa.struct([_storage_field(name, field) for field in type_])
    if pa.types.is_map(type_):
        # Arrow knows no map with null keys.
        key = _storage_field(name, type_.key_field, nullable=False)
        return pa.map_(key, _storage_field(name, type_.item_field))
    if pa.types.is_list(type_):
        return pa.list_(_storage_field(name, type_.value_field))
    if pa.types.is_large_list(type_):
        return pa.large_list(_storage_field(name, type_.value_field))
    raise UnsupportedTypeError(f"column {name!r} has type {type_}, which ORC cannot hold; cast it first")


def _fitted(column: OrcColumn, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of CHAR or VARCHAR as it is stored; inside nested columns it is checked only."""
    kind = text_kind(column.field)
    if kind is not None:
        return check_text(column.name, values, kind)
    for part in column.walk():
        kind = text_kind(part.field)
        if kind is not None:
            for chunk in values.chunks:
                check_text(part.name, _inner(chunk, part.path[len(column.path) :]), kind)
    return values


def _inner(values: pa.Array, path: Sequence[str]) -> pa.Array:
    """Return the values at a path within a nested array, without those of other rows."""
    for name in path:
        if pa.types.is_struct(values.type):
            values = values.flatten()[values.type.get_field_index(name)]
        elif pa.types.is_map(values.type):
            first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
            values = values.values.slice(first, last - first).field(0 if name == KEY else 1)
        else:
            values = values.flatten()
    return values
