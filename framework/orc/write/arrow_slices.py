"""Slices of structs made whole, because Arrow's ORC writer (up to 26 at least) writes other rows for them.

A struct with nulls that starts behind the beginning of its buffers, as every slice does, is written with the
values of other rows, without an error.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.ipc


def unsliced(table: pa.Table) -> pa.Table:
    """Return the same rows, with structs that start where their buffers do."""
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if _holds_struct(field.type) and any(_is_sliced(chunk) for chunk in column.chunks):
            table = table.set_column(index, field, _copied(column))
    return table


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
        # Its entries are a struct without nulls, which is harmless itself.
        return _is_sliced(values.keys) or _is_sliced(values.items)
    return _is_sliced(values.values)


def _copied(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a copy as a message between processes has it: nothing before the first row, at any depth."""
    table = pa.table([column], names=["column"])
    sink = pa.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pyarrow.ipc.open_stream(sink.getvalue()).read_all().column(0)
