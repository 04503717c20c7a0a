"""Rows of the table itself, read strictly in order to be written again: by a predicate, or by their keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.merge.group_codes import group_codes
from lockgate.framework.store.rows.row_conversion import conform_rows
from lockgate.framework.store.scan.read import read_table
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import plan_scan
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.unsupported_features import check_unselected
from lockgate.framework.types import DataType, Kind
from lockgate.pushdown import AlwaysTrue, Comparison, Op, Predicate, all_of

# Longer lists of keys are read by their least and largest.
_MOST_NAMED = 1000
# Types of which equal keys may be written in several ways, or too few to be worth a condition.
_NOT_EXACT = frozenset({Kind.FLOAT, Kind.DOUBLE, Kind.CHAR, Kind.BOOLEAN})


def read_rows(table: TableHandle, predicate: Predicate) -> pa.Table:
    """Return the newest rows that match.

    Raises KeyMissingError for a column whose key is not held, UnsupportedError if options of the table select
    what is read.
    """
    check_unselected(table.schema)
    return read_table(table, plan_scan(table, ReadRequest(predicate=predicate, strict=True)))


def rows_with_keys(table: TableHandle, keys: pa.Table) -> pa.Table:
    """Read strictly the rows of a key table that have one of `keys`, which have the key's columns."""
    schema = table.schema
    primary = list(schema.primary_keys)
    wanted = conform_rows(schema, keys.select(primary)).select(primary)
    found = read_rows(table, _around(schema, wanted))
    both = pa.concat_tables([wanted, found.select(primary).cast(wanted.schema)])
    codes, _ = group_codes([both[name] for name in primary], both.num_rows)
    return found.filter(pa.array(np.isin(codes[wanted.num_rows :], codes[: wanted.num_rows])))


def _around(schema: TableSchema, keys: pa.Table) -> Predicate:
    """Return what rows with one of `keys` meet, as far as columns have an exact order."""
    return all_of(*(_within(name, keys[name], schema.field(name).type) for name in keys.column_names))


def _within(name: str, values: pa.ChunkedArray, data_type: DataType) -> Predicate:
    if data_type.kind in _NOT_EXACT or not len(values) or values.null_count:
        return AlwaysTrue()
    distinct = values.unique()
    if len(distinct) <= _MOST_NAMED:
        return Comparison(Op.IN, (name,), tuple(distinct))
    if pa.types.is_binary(distinct.type) or pa.types.is_large_binary(distinct.type):
        return AlwaysTrue()
    bounds = pc.min_max(distinct)
    return all_of(Comparison(Op.GE, (name,), (bounds["min"],)), Comparison(Op.LE, (name,), (bounds["max"],)))
