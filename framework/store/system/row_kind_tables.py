"""Rows with their kinds: those of a plan, and those that differ between two states of a table.

Source: Paimon's `AuditLogTable` and `IncrementalDiffSplitRead`, which of a key in both states shows the later
row with the kind that it was written with. For tables without a primary key it shows all rows of new files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import CorruptFileError, InputError, UnsupportedError
from lockgate.framework.store.history.state_difference import occurrences_beyond, row_codes
from lockgate.framework.store.merge.merge import VALUE_KIND, merge_tables
from lockgate.framework.store.merge.merge_plan import RowKind
from lockgate.framework.store.pruning.split import Split
from lockgate.framework.store.scan.read import FileReader, SplitReader
from lockgate.framework.store.scan.read_request import ReadRequest, require_unrestricted
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.framework.store.system.columns import ROW_KIND
from lockgate.pushdown import AlwaysTrue, columns_of, to_arrow_expression

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.scan.snapshot_selection import Between

_KINDS = {RowKind.INSERT: "+I", RowKind.UPDATE_BEFORE: "-U", RowKind.UPDATE_AFTER: "+U", RowKind.DELETE: "-D"}
_TEXTS = pa.array([_KINDS[RowKind(number)] for number in range(4)])
_DELETED = _KINDS[RowKind.DELETE]


def planned_rows(table: TableHandle, request: ReadRequest) -> ScanPlan:
    """Return a plan of all rows: which are shown is known only once they are read."""
    if request.order:
        raise InputError("rows with their kinds have no order: read them, then sort them")
    plan = plan_scan(table, replace(request, limit=None))
    require_unrestricted(table, plan.decision, "rows with their kinds or ids")
    return plan


class KindReader:
    """Reads the rows of a plan with their kinds."""

    def __init__(self, table: TableHandle, plan: ScanPlan) -> None:
        self._table, self._plan = table, plan
        self._declared = SplitReader(table, plan)
        self._files = FileReader(table, plan.schema)
        self._columns = self._declared.columns
        asked = {path[0] for path in columns_of(plan.predicate)}
        self._needed = (*self._columns, *sorted(asked.difference(self._columns)))

    @property
    def schema(self) -> pa.Schema:
        """The columns of the parts."""
        columns = (field.with_nullable(True) for field in self._declared.schema)
        return pa.schema([pa.field(ROW_KIND, pa.string()), *columns])

    def parts(self) -> Iterator[pa.Table]:
        """Yield the rows, piece by piece."""
        for split in self._plan.splits:
            for part in self._of_split(split):
                yield self._finished(part)

    def _of_split(self, split: Split) -> Iterator[pa.Table]:
        if split.merge:
            yield self._merged(split)
            return
        names = self._needed
        if self._plan.schema.has_primary_key:
            names = (*names, VALUE_KIND)
        for path, file, vector in zip(split.paths, split.files, split.vectors, strict=True):
            yield from self._files.parts(path, file, names, split.partition, vector)

    def _merged(self, split: Split) -> pa.Table:
        plan = self._plan.merge_plan
        assert plan is not None
        wanted = (*plan.system_columns, *plan.companions(self._needed), *self._needed, VALUE_KIND)
        names = tuple(dict.fromkeys(wanted))
        tables = [
            self._files.whole(path, file, names, split.partition, vector)
            for path, file, vector in zip(split.paths, split.files, split.vectors, strict=True)
        ]
        return merge_tables(plan, tables, keep_deletes=True)

    def _finished(self, part: pa.Table) -> pa.Table:
        if not isinstance(self._plan.predicate, AlwaysTrue):
            part = part.filter(to_arrow_expression(self._plan.predicate, part.schema))
        kinds = part[VALUE_KIND] if VALUE_KIND in part.column_names else None
        schema = self.schema.remove(0)
        shown = part.select(list(self._columns)).cast(schema) if len(schema) else part.select([])
        return shown.add_column(0, ROW_KIND, _kind_texts(kinds, part.num_rows))


def _kind_texts(kinds: pa.ChunkedArray | None, rows: int) -> pa.Array:
    if kinds is None:
        return pa.repeat(pa.scalar(_KINDS[RowKind.INSERT]), rows)
    numbers = kinds.combine_chunks()
    # A null, or another number, is that of no kind.
    if pc.any(pc.or_kleene(pc.less(numbers, 0), pc.greater(numbers, 3))).as_py() or numbers.null_count:
        raise CorruptFileError("a data file has a row of an unknown kind")
    return _TEXTS.take(numbers)


# --- two states -------------------------------------------------------------------------------------


def check_view(table: TableHandle, name: str | None, between: Between | None) -> None:
    """Raise UnsupportedError where the binlog is asked for the difference of two states."""
    if name == "binlog" and between is not None and between.states == "diff":
        raise UnsupportedError(
            f"$binlog of table {table.identifier} is not defined between two states, and Paimon fails "
            "there: is an update the new row, or both rows? $audit_log shows the new one"
        )


def changed_rows(table: TableHandle, request: ReadRequest) -> pa.Table:
    """Return the rows that differ between the two states of a request, each with its kind in front.

    These are rows of the later state that the earlier one does not have, deletions too, and as -D the rows
    of the earlier one that are gone. Both states of what differs are in memory. Filters, columns and limit
    hold for the rows that are returned.
    """
    before, after = (_state(table, request, states) for states in ("before", "after"))
    keys = list(dict.fromkeys((*table.schema.partition_keys, *table.schema.primary_keys)))
    if table.schema.has_primary_key:
        new, gone = _by_key(before, after, keys)
    else:
        new = after.filter(occurrences_beyond(after, before))
        gone = before.filter(occurrences_beyond(before, after))
    found = pa.concat_tables([new, gone.set_column(0, ROW_KIND, pa.repeat(_DELETED, gone.num_rows))])
    names = table.schema.field_names if request.columns is None else request.columns
    for name in {*names, *(path[0] for path in columns_of(request.predicate))}:
        table.schema.field(name)
    if request.predicate != AlwaysTrue():
        found = found.filter(to_arrow_expression(request.predicate, found.schema))
    found = found.select([ROW_KIND, *dict.fromkeys(names)])
    return found if request.limit is None else found.slice(0, request.limit)


def _state(table: TableHandle, request: ReadRequest, states: str) -> pa.Table:
    """Return one of the two states, with a kind for each row."""
    assert request.between is not None, "the request is one for a difference"
    if request.order:
        raise InputError("rows with their kinds have no order: read them, then sort them")
    between = replace(request.between, states=states)
    wanted = ReadRequest(between=between, strict=request.strict, principal=request.principal)
    reader = KindReader(table, planned_rows(table, wanted))
    return pa.concat_tables([reader.schema.empty_table(), *reader.parts()])


def _by_key(before: pa.Table, after: pa.Table, keys: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return the rows of a later state that are not alike in the earlier one, and the rows of keys that are
    gone.
    """
    retracts = [pc.starts_with(rows[ROW_KIND], "-").to_numpy() for rows in (after, before)]
    columns = [name for name in after.column_names if name != ROW_KIND]
    codes, others = row_codes(after.select(columns), before.select(columns))
    # The same values as a row and as a deletion are not alike.
    same = np.isin(2 * codes + retracts[0], 2 * others + retracts[1])
    codes, others = row_codes(after.select(keys), before.select(keys))
    gone = ~np.isin(others, codes) & ~retracts[1]
    return after.filter(pa.array(~same)), before.filter(pa.array(gone))
