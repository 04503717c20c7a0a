"""Rows that delete a key, and what they hold.

Paimon's writers put the whole row that is deleted into a deletion, and its compactions stop at one that has a
null in a NOT NULL column. A deletion holds the values of the row where they are known: DELETE by a condition
has read the row. A deletion by key alone has a zero or empty value in NOT NULL columns, which nobody reads: a
deletion is never a row of the table. Source: Paimon's `MergeTreeWriter`, and `NullableSerializer` of its
files.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError
from lockgate.framework.store.rows.row_conversion import writes_value
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import MAX_LENGTH, DataType, Kind

if TYPE_CHECKING:
    pass


_NEUTRAL: dict[Kind, Any] = {
    Kind.BOOLEAN: False,
    **dict.fromkeys((Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT), 0),
    **dict.fromkeys((Kind.FLOAT, Kind.DOUBLE), 0.0),
    Kind.DECIMAL: Decimal(0),
    Kind.VARCHAR: "",
    Kind.VARBINARY: b"",
    Kind.DATE: dt.date(1970, 1, 1),
    Kind.TIME: dt.time(0),
    Kind.TIMESTAMP: dt.datetime(1970, 1, 1),
    Kind.TIMESTAMP_LTZ: dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    Kind.ARRAY: [],
    Kind.MAP: [],
}


def neutral_value(data_type: DataType) -> Any:
    """Return the value of a type that stands for none where a null may not: zero or empty."""
    if data_type.kind is Kind.ROW:
        return {
            field.name: None if field.type.nullable else neutral_value(field.type)
            for field in data_type.fields
        }
    length = data_type.length or 1
    if data_type.kind in (Kind.CHAR, Kind.BINARY):
        fill = " " if data_type.kind is Kind.CHAR else b"\0"
        return fill * (length if length < MAX_LENGTH else 1)
    return _NEUTRAL[data_type.kind]


def fill_deletions(schema: TableSchema, rows: pa.Table, kinds: pa.Array | None) -> pa.Table:
    """Put neutral values in place of the nulls that rows which delete have in NOT NULL columns.

    Raises InputError for a null in a column of `sequence.field`, which says how new a deletion is.
    """
    if kinds is None or not rows.num_rows:
        return rows
    for index, field in enumerate(schema.fields):
        column = rows[field.name]
        if field.type.nullable or not column.null_count:
            continue
        if field.name in schema.sequence_fields:
            raise InputError(
                f"column {field.name!r} of 'sequence.field' is NOT NULL, but a row that deletes has a null "
                "there: give it the value of the row that it deletes, or a later one"
            )
        missing = pc.and_(column.is_null(), pc.invert(writes_value(kinds)))
        neutral = pa.scalar(neutral_value(field.type), column.type)
        # By their places, since `if_else` does not know all nested types.
        both = pa.concat_arrays([*column.chunks, pa.array([neutral.as_py()], column.type)])
        places = np.where(missing.to_numpy(), len(column), np.arange(len(column)))
        rows = rows.set_column(index, rows.schema.field(field.name), both.take(pa.array(places)))
    return rows
