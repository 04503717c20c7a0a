"""Conversion of callers' rows to what Arrow's ORC writer takes."""

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


def conform(table: pa.Table, given: pa.Schema, stored: pa.Schema) -> pa.Table:
    """Return `table`, whose columns are to be of the schema `given`, in its storage schema.

    Raises InputError if it has other columns, or values that are not equal ones of these types.
    """
    if table.schema.names != given.names:
        raise InputError(f"the rows have columns {table.schema.names}, not {given.names}")
    columns: list[pa.ChunkedArray] = []
    for to, field, column in zip(given, stored, table.columns, strict=True):
        columns.append(column if column.type == field.type else _stored(to, field, column))
    if holds_text_kinds(stored):
        columns = [_fitted(*each) for each in zip(ColumnTree(stored).top, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=stored)


def _stored(given: pa.Field, field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as they are stored; InputError if a value would change."""
    wanted = _storage_type(field.name, given.type, keeps_times=True)
    if not _is_stored_as(column.type, wanted, field.name):
        converted = convert_losslessly(column, from_arrow(wanted), field.name)
        try:
            column = converted.cast(wanted)
        except pa.ArrowInvalid:  # whose message has a value
            raise InputError(
                f"column {field.name!r} is {column.type} in the rows and is stored as {wanted}: not all of "
                "its values fit; convert its values first"
            ) from None
    return column.cast(field.type)


def _is_stored_as(type_: pa.DataType, wanted: pa.DataType, name: str) -> bool:
    try:
        return bool(_storage_type(name, type_, keeps_times=True) == wanted)
    except UnsupportedTypeError:
        return False


def _storage_field(
    name: str, field: pa.Field, *, nullable: bool = True, keeps_times: bool = False
) -> pa.Field:
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
    type_ = _storage_type(name, field.type, keeps_times=keeps_times)
    stored = pa.field(field.name, type_, nullable, kept or None)
    text_kind(stored)
    return stored


def _storage_type(name: str, type_: pa.DataType, *, keeps_times: bool = False) -> pa.DataType:
    """Return the type that values of a type are stored as; `keeps_times`: with the units of times."""
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
        # Arrow knows no map with null keys.
        key = field_of(type_.key_field, nullable=False)
        return pa.map_(key, field_of(type_.item_field))
    if pa.types.is_list(type_):
        return pa.list_(field_of(type_.value_field))
    if pa.types.is_large_list(type_):
        return pa.large_list(field_of(type_.value_field))
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
