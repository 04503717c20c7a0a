"""Difference of two states of a table: the rows of the later one that the earlier one does not have.

A row that occurs twice in the later state and once in the earlier one is among them once, as with EXCEPT ALL.
Source: Paimon's `IncrementalDiffStartingScanner`, which for tables without a primary key takes all rows
of new files, also those that a compaction wrote again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lockgate.errors import InputError
from lockgate.framework.store.merge.group_codes import Codes, group_codes
from lockgate.framework.store.merge.merge_values import frozen
from lockgate.framework.store.scan.read import read_table
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import plan_scan
from lockgate.framework.store.scan.table_selection import table_selection
from lockgate.pushdown import AlwaysTrue, columns_of, to_arrow_expression

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def difference_request(table: TableHandle, request: ReadRequest | None) -> ReadRequest | None:
    """Return the request if it, or else an option of the table, asks for a difference; else None."""
    wanted = request or ReadRequest()
    if wanted.between is None and not wanted.names_a_snapshot:
        wanted = replace(wanted, between=table_selection(table).between)
    return wanted if wanted.between is not None and wanted.between.states == "diff" else None


def read_difference(table: TableHandle, request: ReadRequest) -> pa.Table:
    """Return the difference that a request asks for; both states of what differs are in memory.

    Filters, columns and limit hold for the rows of the difference. InputError for an order.
    """
    between = request.between
    assert between is not None, "the request is one for a difference"
    if request.order:
        raise InputError("the difference of two states has no order: read it, then sort it")
    before, after = (
        read_table(
            table,
            plan_scan(
                table,
                ReadRequest(
                    between=replace(between, states=states),
                    strict=request.strict,
                    principal=request.principal,
                    read_optimized=request.read_optimized,
                ),
            ),
        )
        for states in ("before", "after")
    )
    found = after.filter(occurrences_beyond(after, before))
    names = found.schema.names if request.columns is None else request.columns
    for name in {*names, *(path[0] for path in columns_of(request.predicate))}:
        table.schema.field(name)
    if request.predicate != AlwaysTrue():
        found = found.filter(to_arrow_expression(request.predicate, found.schema))
    found = found.select(list(dict.fromkeys(names)))
    return found if request.limit is None else found.slice(0, request.limit)


def occurrences_beyond(rows: pa.Table, others: pa.Table) -> pa.Array:
    """Say which rows others do not have; of equal ones, those by which there are more than there."""
    codes, of_others = row_codes(rows, others)
    there = np.bincount(of_others, minlength=int(codes.max(initial=-1)) + 1)
    return pa.array(_turns(codes) >= there[codes])


def row_codes(rows: pa.Table, others: pa.Table) -> tuple[Codes, Codes]:
    """Return a number for each row of two tables of the same columns; equal rows have the same."""
    columns = [
        _comparable(pa.chunked_array([*rows[name].chunks, *others[name].cast(rows[name].type).chunks]))
        if rows.num_rows + others.num_rows
        else rows[name]
        for name in rows.column_names
    ]
    codes, _ = group_codes(columns, rows.num_rows + others.num_rows)
    return codes[: rows.num_rows], codes[rows.num_rows :]


def _turns(codes: Codes) -> Codes:
    """Return how many equal rows come before each."""
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(codes) else np.zeros(0, np.int64)
    turns = np.empty(len(codes), np.int64)
    turns[order] = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    return turns


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of nested values as numbers, equal for equal values."""
    if not pa.types.is_nested(column.type):
        return column
    seen: dict[object, int] = {}
    numbers = [seen.setdefault(frozen(value), len(seen)) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(numbers, pa.int64())])
