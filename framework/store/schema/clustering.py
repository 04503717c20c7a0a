"""Columns by which the rows of an append table are ordered."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import nearest
from lockgate.framework import options as clustering_options
from lockgate.framework.store.confidential.confidential_columns import confidential_in
from lockgate.framework.store.schema.schema import TableSchema


def why_unordered(schema: TableSchema, name: str) -> str | None:
    """Return why rows cannot be ordered by a column; None if they can."""
    if schema.has_primary_key:
        return "rows of a table with a primary key are ordered by the key"
    if name not in schema.field_names:
        return f"there is no column {name!r}{nearest(name, schema.field_names)}"
    if name in confidential_in(schema).top_level(schema):
        return (
            f"{name!r} is encrypted, and the order of rows would show without a key how its values are "
            "ordered: leave it out"
        )
    if schema.field(name).type.is_nested:
        return f"{name!r} is {schema.field(name).type.bare_name}, which has no order"
    return None


def clustering_columns(schema: TableSchema) -> tuple[str, ...]:
    """Return the columns by which writers order new rows; those are left out that cannot be ordered by now.

    Another engine may have given the table the option.
    """
    names = schema.table_options.get_option(clustering_options.CLUSTERING_COLUMNS)
    return tuple(name for name in dict.fromkeys(names) if why_unordered(schema, name) is None)


def in_order(rows: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """Return rows ordered by columns, nulls first, equal ones as they were."""
    if not columns or rows.num_rows < 2:
        return rows
    keys: dict[str, pa.ChunkedArray] = {}
    for number, name in enumerate(columns):
        column = rows[name]
        if column.null_count:
            keys[f"{number} is there"] = pc.is_valid(column).cast(pa.int8())
        keys[str(number)] = column
    order = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    return rows.take(order)
