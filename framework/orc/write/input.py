"""Conversion of callers' rows to the types of Arrow's ORC writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework.orc.encryption.decrypted_columns import ENCRYPTED
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
    """Return the storage schema for rows of `schema`: times as integers, all fields nullable, field ids as
    metadata.

    Raises `UnsupportedTypeError` for a type that ORC lacks, and `InputError` for a column that was read as a
    mask.
    """
    fields = [_storage_field(field.name, field) for field in schema]
    if len({field.name for field in fields}) != len(fields):
        raise InputError(f"two columns have the same name: {', '.join(schema.names)}")
    stored = pa.schema(fields)
    return with_field_ids(stored, field_ids) if field_ids else stored


def conform(table: pa.Table, row_schema: pa.Schema, stored: pa.Schema) -> pa.Table:
    """Return `table`, which must have the columns of `schema`, in the storage schema `stored`.

    Raises InputError for other columns, and for values that these types cannot represent exactly.
    """
    if table.schema.names != row_schema.names:
        raise InputError(f"the rows have columns {table.schema.names}, not {row_schema.names}")
    columns: list[pa.ChunkedArray] = []
    for target, field, column in zip(row_schema, stored, table.columns, strict=True):
        columns.append(column if column.type == field.type else _stored(target, field, column))
    if holds_text_kinds(stored):
        columns = [_fitted(*each) for each in zip(ColumnTree(stored).top, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=stored)


def _stored(target: pa.Field, field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values to store; InputError if a value would change."""
    type_ = _storage_type(field.name, target.type, keeps_times=True)
    if not _is_stored_as(column.type, type_, field.name):
        converted = convert_losslessly(column, from_arrow(type_), field.name)
        try:
            column = converted.cast(type_)
        except pa.ArrowInvalid:  # its message has a value, which must not be shown
            raise InputError(
                f"column {field.name!r} is {column.type} in the rows and is stored as {type_}: not all of "
                "its values fit; convert its values first"
            ) from None
    return column.cast(field.type)


def _is_stored_as(type_: pa.DataType, storage_type: pa.DataType, name: str) -> bool:
    try:
        return bool(_storage_type(name, type_, keeps_times=True) == storage_type)
    except UnsupportedTypeError:
        return False


def _storage_field(
    name: str, field: pa.Field, *, nullable: bool = True, keeps_times: bool = False
) -> pa.Field:
    """Return the storage field of a field; `name` is that of the top-level column."""
    metadata = field.metadata or {}
    if MASKED in metadata:
        raise InputError(
            f"column {name!r} holds masks, not values, because it was read without its key; "
            f"read it with the key, or drop the field's metadata {MASKED.decode()!r} to store the masks"
        )
    kept_metadata = {
        key: value
        for key, value in metadata.items()
        if key != ENCRYPTED and key.decode("utf-8", "replace") not in ENCRYPTION_ATTRIBUTES
    }
    type_ = _storage_type(name, field.type, keeps_times=keeps_times)
    stored = pa.field(field.name, type_, nullable, kept_metadata or None)
    text_kind(stored)
    return stored


def _storage_type(name: str, type_: pa.DataType, *, keeps_times: bool = False) -> pa.DataType:
    """Return the storage type of a type; with `keeps_times`, times keep their type."""
    field_of = partial(_storage_field, name, keeps_times=keeps_times)
    if pa.types.is_time32(type_):
        return type_ if keeps_times else pa.int32()
    if any(test(type_) for test in _WRITABLE):
        return type_
    if pa.types.is_dictionary(type_):
        return _storage_type(name, type_.value_type, keeps_times=keeps_times)
    if pa.types.is_struct(type_):
        return pa.struct([field_of(field) for field in type_])
    if pa.types.is_map(type_):
        # Arrow does not support null keys.
        key = field_of(type_.key_field, nullable=False)
        return pa.map_(key, field_of(type_.item_field))
    if pa.types.is_list(type_):
        return pa.list_(field_of(type_.value_field))
    if pa.types.is_large_list(type_):
        return pa.large_list(field_of(type_.value_field))
    raise UnsupportedTypeError(f"column {name!r} has type {type_}, which ORC does not support; cast it first")


def _fitted(column: OrcColumn, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a CHAR or VARCHAR column in stored form; inside nested columns, only check its length."""
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
    """Return the values at a path inside a nested array, only those of its own rows."""
    for name in path:
        if pa.types.is_struct(values.type):
            values = values.flatten()[values.type.get_field_index(name)]
        elif pa.types.is_map(values.type):
            first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
            values = values.values.slice(first, last - first).field(0 if name == KEY else 1)
        else:
            values = values.flatten()
    return values
