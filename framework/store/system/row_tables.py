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

from lockgate.errors import CorruptFileError, UnsupportedError
from lockgate.framework.store.deletion_vectors.snapshot_vectors import read_vector
from lockgate.framework.store.history.state_difference import difference_request, read_difference
from lockgate.framework.store.merge.merge import SEQUENCE_NUMBER
from lockgate.framework.store.scan.read import ROW_ID, FileReader, SplitReader, read_batches
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.framework.store.system.columns import ROW_KIND
from lockgate.framework.store.system.row_kind_tables import (
    KindReader,
    changed_rows,
    check_view,
    planned_rows,
)
from lockgate.framework.types import BIGINT, DataField
from lockgate.pushdown import AlwaysTrue, columns_of, to_arrow_expression

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.manifests.manifest import DataFileMeta, VectorLocation

_TRACKING = "row-tracking.enabled"

# The ids that Paimon gives them, the largest there are.
ROW_TRACKING_COLUMNS = (
    DataField(2**31 - 6, ROW_ID, BIGINT.with_nullable(False)),
    DataField(2**31 - 2, SEQUENCE_NUMBER, BIGINT.with_nullable(False)),
)


def read_optimized(table: TableHandle, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `t$ro`: those of files that need no merge, so without the newest ones."""
    wanted = replace(request, read_optimized=True)
    difference = difference_request(table, wanted)
    if difference is not None:
        return iter(read_difference(table, difference).to_batches())
    return read_batches(table, plan_scan(table, wanted))


def audit_log(table: TableHandle, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `t$audit_log`: each key's newest row with its kind, deletions too."""
    for part in _with_kinds(table, request):
        yield from part.to_batches()


def binlog(table: TableHandle, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `t$binlog`: those of the audit log, each column in an array of one value.

    Raises UnsupportedError for the difference of two states.
    """
    difference = difference_request(table, request)
    check_view(table, "binlog", None if difference is None else difference.between)
    for part in _with_kinds(table, request):
        columns = [part[ROW_KIND], *(_wrapped(part[name]) for name in part.column_names[1:])]
        yield from pa.table(dict(zip(part.column_names, columns, strict=True))).to_batches()


def _wrapped(column: pa.ChunkedArray) -> pa.Array:
    values = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), values)


def _with_kinds(table: TableHandle, request: ReadRequest) -> Iterator[pa.Table]:
    """Yield rows with their kind in front; predicate and limit of the request hold for the rows shown."""
    difference = difference_request(table, request)
    if difference is not None:
        yield changed_rows(table, difference)
        return
    reader = KindReader(table, planned_rows(table, request))
    left = request.limit
    for part in reader.parts():
        found = part if left is None else part.slice(0, left)
        left = None if left is None else left - found.num_rows
        if found.num_rows:
            yield found
        if left == 0:
            return


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
    plan = planned_rows(table, request)
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
