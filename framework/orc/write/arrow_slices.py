"""Copies of structs for which Arrow's ORC writer (up to 26 at least) would write values of other rows.

There are two kinds: structs with nulls that are slices, so that they start after the beginning of their
buffers, and structs with nulls inside another struct, for which the writer stores the fields' values at these
nulls.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.ipc


def unsliced(table: pa.Table) -> pa.Table:
    """Return the same rows with structs that start at the beginning of their buffers, and whose fields are
    null where the struct is null.
    """
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if not _holds_struct(field.type):
            continue
        if any(_is_sliced(chunk) for chunk in column.chunks):
            column = _copied(column)
            table = table.set_column(index, field, column)
        if _nests_structs(field.type):
            filled = [_with_nulls_inside(chunk) for chunk in column.chunks]
            table = table.set_column(index, field, pa.chunked_array(filled, field.type))
    return table


def _nests_structs(type_: pa.DataType) -> bool:
    inner = [type_.field(index).type for index in range(type_.num_fields)]
    if pa.types.is_struct(type_) and any(_holds_struct(inner_type) for inner_type in inner):
        return True
    return any(_nests_structs(inner_type) for inner_type in inner)


def _with_nulls_inside(values: pa.Array) -> pa.Array:
    """Return an array, which is no slice, with null fields in null structs."""
    type_ = values.type
    if not _holds_struct(type_):
        return values
    buffers = values.buffers()
    if pa.types.is_struct(type_):
        # flatten() applies the struct's nulls to its fields.
        parts = [_with_nulls_inside(part) for part in values.flatten()]
        return pa.Array.from_buffers(type_, len(values), buffers[:1], values.null_count, children=parts)
    if pa.types.is_map(type_):
        parts = [_with_nulls_inside(values.keys), _with_nulls_inside(values.items)]
        entries = pa.StructArray.from_arrays(parts, fields=[type_.key_field, type_.item_field])
    else:
        entries = _with_nulls_inside(values.values)
    return pa.Array.from_buffers(type_, len(values), buffers[:2], values.null_count, children=[entries])


def _holds_struct(type_: pa.DataType) -> bool:
    return pa.types.is_struct(type_) or any(
        _holds_struct(type_.field(index).type) for index in range(type_.num_fields)
    )


def _is_sliced(values: pa.Array) -> bool:
    type_ = values.type
    if not _holds_struct(type_):
        return False
    if values.offset:
        return True
    if pa.types.is_struct(type_):
        parts = [values.field(index) for index in range(type_.num_fields)]
        return any(part.offset or _is_sliced(part) for part in parts)
    if pa.types.is_map(type_):
        # The entries of a map are a struct without nulls, which the writer handles.
        return _is_sliced(values.keys) or _is_sliced(values.items)
    return _is_sliced(values.values)


def _copied(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a copy by way of Arrow IPC, in which no array is a slice, at any depth."""
    table = pa.table([column], names=["column"])
    sink = pa.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pyarrow.ipc.open_stream(sink.getvalue()).read_all().column(0)
