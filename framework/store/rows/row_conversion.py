"""Rows before they are written: converted to the table's schema, with Paimon's system columns added.

Source: Paimon's `SpecialFields` and `KeyValue.schema`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.orc import MAP_KEY, MASKED
from lockgate.framework.store.merge.merge import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND, RowKind
from lockgate.framework.store.schema.defaults import default_array
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import MAX_LENGTH, DataField, DataType, Kind, convert_losslessly, to_arrow

_KEY_FIELD_ID_START = (2**31 - 1) // 2
_SEQUENCE_NUMBER_ID = 2**31 - 2
_VALUE_KIND_ID = 2**31 - 3


def file_schema(schema: TableSchema) -> pa.Schema:
    """Return the columns of a table's data files; key tables have `_KEY_*`, sequence number and kind in
    front.
    """
    values = [pa.field(field.name, to_arrow(field.type)) for field in schema.fields]
    if not schema.has_primary_key:
        return pa.schema(values)
    keys = [
        pa.field(KEY_PREFIX + name, to_arrow(schema.field(name).type)) for name in schema.trimmed_primary_keys
    ]
    system = [pa.field(SEQUENCE_NUMBER, pa.int64()), pa.field(VALUE_KIND, pa.int8())]
    return pa.schema([*keys, *system, *values])


def file_field_ids(schema: TableSchema) -> dict[str, int]:
    """Return the field ids of a data file's columns; fields inside structs are named by their path."""
    ids = dict(_ids(schema.fields, ""))
    if schema.has_primary_key:
        for name in schema.trimmed_primary_keys:
            ids[KEY_PREFIX + name] = _KEY_FIELD_ID_START + schema.field(name).id
        ids |= {SEQUENCE_NUMBER: _SEQUENCE_NUMBER_ID, VALUE_KIND: _VALUE_KIND_ID}
    return ids


def _ids(fields: Sequence[DataField], prefix: str) -> Iterator[tuple[str, int]]:
    for field in fields:
        path = prefix + field.name
        yield path, field.id
        yield from _inner_ids(field.type, path)


def _inner_ids(data_type: DataType, path: str) -> Iterator[tuple[str, int]]:
    if data_type.kind is Kind.ROW:
        yield from _ids(data_type.fields, f"{path}.")
    elif data_type.kind is Kind.ARRAY:
        yield from _inner_ids(data_type.element_type(), path)
    elif data_type.kind is Kind.MAP:
        yield from _inner_ids(data_type.key_type(), f"{path}.{MAP_KEY}")
        yield from _inner_ids(data_type.value_type(), path)


def refuse_masks(schema: pa.Schema) -> None:
    """Raise InputError if a column holds masks that were read for want of a key, not values."""
    for field in schema:
        if MASKED in (field.metadata or {}):
            raise InputError(
                f"column {field.name!r} holds masks, not values, because it was read without its key; "
                "read it with the key before writing it"
            )


def conform_rows(schema: TableSchema, rows: pa.Table, *, stored: bool = False) -> pa.Table:
    """Bring rows to the table's columns: in its order, of its types, columns left out by their defaults.

    Rows that are `stored` in the table already keep their texts, whatever length another writer gave them.
    Raises ColumnNotFoundError for columns the table does not have, InputError for values that do not fit and
    for masks. Nulls are checked by `check_not_null`.
    """
    refuse_masks(rows.schema)
    if len(set(rows.column_names)) != len(rows.column_names):
        raise InputError(f"two columns have the same name: {', '.join(rows.column_names)}")
    for name in rows.column_names:
        schema.field(name)
    columns = []
    for field in schema.fields:
        if field.name not in rows.column_names:
            columns.append(pa.chunked_array([default_array(field, rows.num_rows)]))
            continue
        column = convert_losslessly(rows[field.name], field.type, field.name)
        columns.append(column if stored else _fitted(column, field))
    fields = [pa.field(field.name, to_arrow(field.type)) for field in schema.fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _fitted(column: pa.ChunkedArray, field: DataField) -> pa.ChunkedArray:
    """Fill CHAR(n) up with blanks, as other writers do; InputError if a text is too long for its column.

    Blanks at the end that are too many are dropped, as SQL does.
    """
    length = field.type.length
    if not field.type.is_string or length is None or length >= MAX_LENGTH or not len(column):
        return column
    sizes = pc.utf8_length(column)
    longest = pc.max(sizes).as_py() or 0
    if longest > length:
        without = pc.max(pc.utf8_length(pc.utf8_rtrim(column, " "))).as_py()
        if without > length:
            raise InputError(f"column {field.name!r} is a {field.type}: a text has {without} characters")
        column = pc.utf8_slice_codeunits(column, 0, length)
    return pc.utf8_rpad(column, length, " ") if field.type.kind is Kind.CHAR else column


def check_not_null(schema: TableSchema, rows: pa.Table, kinds: pa.Array | None) -> None:
    """Raise InputError for a null in a NOT NULL column; rows that delete need only their key."""
    keys = set(schema.primary_keys)
    for field in schema.fields:
        column = rows[field.name]
        if not column.null_count or (field.type.nullable and field.name not in keys):
            continue
        nulls = column.null_count
        if kinds is not None and field.name not in keys:
            nulls = pc.sum(pc.and_(column.is_null(), writes_value(kinds))).as_py() or 0
        if nulls:
            part = "part of the primary key" if field.name in keys else "NOT NULL"
            raise InputError(f"column {field.name!r} is {part}, but {nulls} rows have a null there")


def writes_value(kinds: pa.Array) -> pa.Array:
    """Say for each row whether it sets a value (+I, +U) rather than removing one (-U, -D)."""
    return pc.or_(pc.equal(kinds, int(RowKind.INSERT)), pc.equal(kinds, int(RowKind.UPDATE_AFTER)))


def check_key_types(schema: TableSchema) -> None:
    """Raise UnsupportedError if the primary key cannot be ordered as its files need it."""
    for name in schema.trimmed_primary_keys:
        data_type = schema.field(name).type
        if data_type.is_nested or (data_type.is_timestamp and (data_type.precision or 0) > 6):
            raise UnsupportedError(f"primary key column {name!r} of type {data_type} cannot be written")


def with_system_columns(schema: TableSchema, rows: pa.Table, sequence: pa.Array, kinds: pa.Array) -> pa.Table:
    """Lay out rows as the data files of a key table have them."""
    keys = [rows[name] for name in schema.trimmed_primary_keys]
    return pa.Table.from_arrays([*keys, sequence, kinds, *rows.columns], schema=file_schema(schema))
