"""System tables that show the rows of a table: as it was compacted last, with their kinds, or their ids.

Rows are read lazily, split by split. Source: Paimon's `ReadOptimizedTable`, `AuditLogTable`, `BinlogTable`
and `RowTrackingTable`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import CorruptFileError, InputError, UnsupportedError
from lockgate.framework.store.merge.merge import SEQUENCE_NUMBER, VALUE_KIND, merge_tables
from lockgate.framework.store.merge.merge_plan import RowKind
from lockgate.framework.store.pruning.split import Split
from lockgate.framework.store.scan.read import ROW_ID, FileReader, SplitReader, read_batches
from lockgate.framework.store.scan.request import ReadRequest, require_unrestricted
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.framework.store.system.columns import ROW_KIND
from lockgate.framework.store.vectors.snapshot_vectors import read_vector
from lockgate.framework.types import BIGINT, DataField
from lockgate.pushdown import AlwaysTrue, columns_of, to_arrow_expression

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.manifests.manifest import DataFileMeta, VectorLocation

_TRACKING = "row-tracking.enabled"
_KINDS = {RowKind.INSERT: "+I", RowKind.UPDATE_BEFORE: "-U", RowKind.UPDATE_AFTER: "+U", RowKind.DELETE: "-D"}
_TEXTS = pa.array([_KINDS[RowKind(number)] for number in range(4)])

# The ids that Paimon gives them, the largest there are.
ROW_TRACKING_COLUMNS = (
    DataField(2**31 - 6, ROW_ID, BIGINT.with_nullable(False)),
    DataField(2**31 - 2, SEQUENCE_NUMBER, BIGINT.with_nullable(False)),
)


def read_optimized(table: TableHandle, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `t$ro`: those of files that need no merge, so without the newest ones."""
    return read_batches(table, plan_scan(table, replace(request, read_optimized=True)))


def audit_log(table: TableHandle, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `t$audit_log`: each key's newest row with its kind, deletions too."""
    for part in _with_kinds(table, request):
        yield from part.to_batches()


def binlog(table: TableHandle, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `t$binlog`: those of the audit log, each column in an array of one value."""
    for part in _with_kinds(table, request):
        columns = [part[ROW_KIND], *(_wrapped(part[name]) for name in part.column_names[1:])]
        yield from pa.table(dict(zip(part.column_names, columns, strict=True))).to_batches()


def _wrapped(column: pa.ChunkedArray) -> pa.Array:
    values = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), values)


def _with_kinds(table: TableHandle, request: ReadRequest) -> Iterator[pa.Table]:
    """Yield rows with their kind in front; predicate and limit of the request hold for the rows shown."""
    plan = _planned(table, request)
    reader = _KindReader(table, plan)
    left = request.limit
    for part in reader.parts():
        found = part if left is None else part.slice(0, left)
        left = None if left is None else left - found.num_rows
        if found.num_rows:
            yield found
        if left == 0:
            return


def _planned(table: TableHandle, request: ReadRequest) -> ScanPlan:
    """Return a plan of all rows: which are shown is known only once they are read."""
    if request.order:
        raise InputError("rows with their kinds have no order: read them, then sort them")
    plan = plan_scan(table, replace(request, limit=None))
    require_unrestricted(table, plan.decision, "rows with their kinds or ids")
    return plan


class _KindReader:
    """Reads the rows of a plan with their kinds."""

    def __init__(self, table: TableHandle, plan: ScanPlan) -> None:
        self._table, self._plan = table, plan
        self._declared = SplitReader(table, plan)
        self._files = FileReader(table, plan.schema)
        self._columns = self._declared.columns
        asked = {path[0] for path in columns_of(plan.predicate)}
        self._needed = (*self._columns, *sorted(asked.difference(self._columns)))

    def parts(self) -> Iterator[pa.Table]:
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
        schema = [field.with_nullable(True) for field in self._declared.schema]
        shown = part.select(list(self._columns)).cast(pa.schema(schema)) if schema else part.select([])
        return shown.add_column(0, ROW_KIND, _kind_texts(kinds, part.num_rows))


def _kind_texts(kinds: pa.ChunkedArray | None, rows: int) -> pa.Array:
    if kinds is None:
        return pa.repeat(pa.scalar(_KINDS[RowKind.INSERT]), rows)
    numbers = kinds.combine_chunks()
    # A null, or another number, is that of no kind.
    if pc.any(pc.or_kleene(pc.less(numbers, 0), pc.greater(numbers, 3))).as_py() or numbers.null_count:
        raise CorruptFileError("a data file has a row of an unknown kind")
    return _TEXTS.take(numbers)


# --- row tracking --------------------------------------------------------------------------------


def check_row_tracking(table: TableHandle) -> None:
    """Raise UnsupportedError unless rows of the table have ids."""
    if table.schema.options.get(_TRACKING, "").strip().lower() != "true":
        raise UnsupportedError(
            f"rows of table {table.identifier} have no ids: $row_tracking needs option {_TRACKING!r} = 'true'"
        )


def row_tracking(table: TableHandle, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `t$row_tracking`: each with its id, and the snapshot that wrote it last.

    Both are the file's, unless the file says them itself of a row that was moved or changed.
    """
    check_row_tracking(table)
    plan = _planned(table, request)
    left = request.limit
    for part in _tracked(table, plan):
        found = part if left is None else part.slice(0, left)
        left = None if left is None else left - found.num_rows
        yield from found.to_batches()
        if left == 0:
            return


def _tracked(table: TableHandle, plan: ScanPlan) -> Iterator[pa.Table]:
    declared, files = SplitReader(table, plan), FileReader(table, plan.schema)
    asked = sorted({path[0] for path in columns_of(plan.predicate)}.difference(declared.columns))
    names = (*declared.columns, *asked, ROW_ID, SEQUENCE_NUMBER)
    for split in plan.splits:
        for path, file, vector in zip(split.paths, split.files, split.vectors, strict=True):
            first = 0
            for part in files.parts(path, file, names, split.partition):
                rows = part.num_rows
                numbered = _numbered(part, path, file, first)
                found = _living(numbered, table, file, vector, first)
                if not isinstance(plan.predicate, AlwaysTrue):
                    found = found.filter(to_arrow_expression(plan.predicate, found.schema))
                yield found.select([*declared.columns, ROW_ID, SEQUENCE_NUMBER])
                first += rows


def _numbered(part: pa.Table, path: str, file: DataFileMeta, first: int) -> pa.Table:
    """Give rows without an id or a number of their own those of their file."""
    if file.first_row_id is None and part[ROW_ID].null_count:
        raise CorruptFileError(f"{path} has rows without an id, and its manifest says none")
    start = (file.first_row_id or 0) + first
    ids = pa.array(np.arange(start, start + part.num_rows, dtype=np.int64))
    written = pa.scalar(file.max_sequence_number, pa.int64())
    columns = {
        ROW_ID: pc.coalesce(part[ROW_ID], ids),
        SEQUENCE_NUMBER: pc.coalesce(part[SEQUENCE_NUMBER], written),
    }
    for name, column in columns.items():
        part = part.set_column(part.column_names.index(name), pa.field(name, pa.int64(), False), column)
    return part


def _living(
    part: pa.Table, table: TableHandle, file: DataFileMeta, vector: VectorLocation | None, first: int
) -> pa.Table:
    if vector is None:
        return part
    kept = read_vector(table, vector, file.row_count).kept(first, part.num_rows)
    return part if kept is None else part.filter(pa.array(kept))
