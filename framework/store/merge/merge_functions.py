"""Merge functions: for each its name, the types that it takes, whether it retracts rows, and its state.

Source: Paimon's field aggregators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lockgate.framework.store.merge.merge_numbers import Product, Sum
from lockgate.framework.store.merge.merge_picks import (
    First,
    FirstNonNull,
    Greatest,
    Key,
    Last,
    LastNonNull,
    Least,
    Pick,
    SetInGroup,
)
from lockgate.framework.store.merge.merge_sets import Bitmaps, HllSketches, LongBitmaps, ThetaSketches
from lockgate.framework.store.merge.merge_values import (
    Collect,
    ListAgg,
    MergeMap,
    MergeMapByTime,
    NestedPartialUpdate,
    NestedUpdate,
    Value,
)
from lockgate.framework.types import MAX_LENGTH, DataType, Kind

if TYPE_CHECKING:
    from lockgate.framework.store.merge.merge_plan import ColumnMerge

State: TypeAlias = Pick | Sum | Product | Value


@dataclass(frozen=True)
class TypeSet:
    """The types of columns that a function takes; `name` is for messages."""

    name: str
    contains: Callable[[DataType], bool]


@dataclass(frozen=True)
class MergeFunction:
    """A function that merges the values of a column.

    `retracts`: it can take back a row of kind -D or -U. `state` makes the merged values of a number of keys,
    from the options of the column and the values of all rows.
    """

    name: str
    takes: TypeSet
    retracts: bool
    state: Callable[[ColumnMerge, pa.ChunkedArray, int], State]


_NUMBERS = {Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL}


ANY = TypeSet("all types", lambda each: True)
NUMBERS = TypeSet("numbers", lambda each: each.kind in _NUMBERS)
ORDERED = TypeSet("types that have an order", lambda each: not each.is_nested)
BOOLEAN = TypeSet("BOOLEAN", lambda each: each.kind is Kind.BOOLEAN)
STRING = TypeSet("STRING", lambda each: each.kind is Kind.VARCHAR and (each.length or 0) >= MAX_LENGTH)
BYTES = TypeSet("VARBINARY and BYTES", lambda each: each.kind is Kind.VARBINARY)
ARRAYS = TypeSet("ARRAY", lambda each: each.kind is Kind.ARRAY)
MAPS = TypeSet("MAP", lambda each: each.kind is Kind.MAP)
MAPS_OF_ROWS = TypeSet(
    "MAP of ROW values", lambda each: each.kind is Kind.MAP and each.value_type().kind is Kind.ROW
)
ARRAYS_OF_ROWS = TypeSet(
    "ARRAY<ROW>", lambda each: each.kind is Kind.ARRAY and each.element_type().kind is Kind.ROW
)

FUNCTIONS = {
    function.name: function
    for function in (
        MergeFunction("last_value", ANY, True, Last),
        MergeFunction("last_non_null_value", ANY, True, LastNonNull),
        MergeFunction("first_value", ANY, False, First),
        MergeFunction("first_non_null_value", ANY, False, FirstNonNull),
        MergeFunction("sum", NUMBERS, True, Sum),
        MergeFunction("product", NUMBERS, True, Product),
        MergeFunction("max", ORDERED, False, Greatest),
        MergeFunction("min", ORDERED, False, Least),
        MergeFunction("bool_or", BOOLEAN, False, Greatest),
        MergeFunction("bool_and", BOOLEAN, False, Least),
        MergeFunction("listagg", STRING, False, ListAgg),
        MergeFunction("collect", ARRAYS, True, Collect),
        MergeFunction("merge_map", MAPS, True, MergeMap),
        MergeFunction("merge_map_with_keytime", MAPS_OF_ROWS, False, MergeMapByTime),
        MergeFunction("nested_update", ARRAYS_OF_ROWS, True, NestedUpdate),
        MergeFunction("nested_partial_update", ARRAYS_OF_ROWS, False, NestedPartialUpdate),
        MergeFunction("rbm32", BYTES, False, Bitmaps),
        MergeFunction("rbm64", BYTES, False, LongBitmaps),
        MergeFunction("hll_sketch", BYTES, False, HllSketches),
        MergeFunction("theta_sketch", BYTES, False, ThetaSketches),
    )
}
# Those that plans name and options do not: a key's own columns, columns of a group without a function, and
# the columns that order a group, which have no state of their own.
LAST, SET, SEQUENCE = "last", "set", "sequence"
_OF_PLANS = {
    LAST: MergeFunction(LAST, ANY, True, Key),
    SET: MergeFunction(SET, ANY, True, SetInGroup),
}


def function_of(name: str) -> MergeFunction:
    """Return the function that a plan names for a column with a state."""
    return FUNCTIONS.get(name) or _OF_PLANS[name]
