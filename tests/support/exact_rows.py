"""Rows of Arrow tables as plain values that lose nothing: what two engines read can be compared by `==`.

Dates are days, times milliseconds, timestamps nanoseconds since 1970, decimals text, bytes hexadecimal text,
a struct is a list, a map a sorted list of pairs.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa

Rows = list[list[Any]]
NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def exact_rows(table: pa.Table) -> Rows:
    """Return the rows of a table in their order."""
    columns = [_exact(column.combine_chunks(), column.type) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def in_order(rows: Rows) -> Rows:
    """Sort rows whatever their types; maps inside them too."""
    return sorted((_ordered(row) for row in rows), key=json.dumps)


def pairs(*entries: tuple[Any, Any]) -> list[list[Any]]:
    """Return a map as it is among exact rows."""
    return sorted(([key, value] for key, value in entries), key=json.dumps)


def _ordered(value: Any) -> Any:
    # A map cannot be told from an array of arrays of two; sorting both alike is good enough to compare.
    if isinstance(value, list):
        items = [_ordered(item) for item in value]
        if items and all(isinstance(item, list) and len(item) == 2 for item in items):
            return sorted(items, key=json.dumps)
        return items
    return value


def _exact(array: pa.Array, kind: pa.DataType) -> list[Any]:
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], kind)
    if pa.types.is_timestamp(kind):
        step = NANOS[kind.unit]
        return [None if value is None else value * step for value in array.cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in array.to_pylist()]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [None if value is None else value.hex() for value in array.to_pylist()]
    if pa.types.is_floating(kind):
        return [
            value if value is None or math.isfinite(value) else _name(value) for value in array.to_pylist()
        ]
    if pa.types.is_struct(kind):
        children = [_exact(array.field(index), kind.field(index).type) for index in range(kind.num_fields)]
        return [
            [child[row] for child in children] if there else None
            for row, there in enumerate(array.is_valid().to_pylist())
        ]
    if pa.types.is_map(kind):
        return [_pairs(scalar.values, kind) if scalar.is_valid else None for scalar in array]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [None if not scalar.is_valid else _exact(scalar.values, kind.value_type) for scalar in array]
    return list(array.to_pylist())


def _pairs(entries: pa.StructArray, kind: pa.MapType) -> list[list[Any]]:
    keys, items = _exact(entries.field(0), kind.key_type), _exact(entries.field(1), kind.item_type)
    return pairs(*zip(keys, items, strict=True))


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
