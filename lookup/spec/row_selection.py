"""Selection of the rows that a cache holds: by a condition, by partitions, by a group of buckets."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lockgate.errors import KeyMissingError
from lockgate.framework.access import ALLOWED
from lockgate.framework.orc import MASKED
from lockgate.framework.store import assign_buckets, require_unrestricted
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.pushdown import (
    AlwaysFalse,
    AlwaysTrue,
    Predicate,
    all_of,
    describe,
    filter_table,
)

if TYPE_CHECKING:
    from lockgate.framework.store import ScanPlan, Snapshot, Table
    from lockgate.lookup.codec.byte_rows import Bools
    from lockgate.lookup.spec.lookup_spec import LookupSpec

# A decoded stripe takes 100 MB and more. Several threads encode the rows, which takes longer than reading.
_DECODING_THREADS = 1


@dataclass(frozen=True)
class RowSelection:
    """The rows that a cache holds at one snapshot.

    `where` is what they meet, and `mark` names the chosen partitions: a cache whose mark changes holds other
    rows, which no change of the table tells.
    """

    where: Predicate | None
    mark: str = ""


class RowSelector:
    """Selects the rows of one cache."""

    def __init__(self, table: Table, spec: LookupSpec) -> None:
        self._table = table
        self._spec = spec
        options = lookup_options(table.options, spec.options)
        self._partitions = options.scan_partitions
        self._interval = options.partition_interval
        self._decision = ALLOWED if spec.rights is None else spec.rights.decision
        self._masks = table.masks_of(self._decision)
        self._last: RowSelection | None = None
        self._selected_at = 0.0

    def at(self, snapshot: Snapshot) -> RowSelection:
        """Return the selection at a snapshot; within the interval of `max_pt()`, the last one."""
        if not self._partitions:
            return RowSelection(self._spec.where)
        young = time.monotonic() - self._selected_at < self._interval
        if self._last is None or not (young or self._partitions.fixed):
            self._last = selection_at(self._table, self._spec, snapshot)
            self._selected_at = time.monotonic()
        return self._last

    def plan(self, selection: RowSelection, columns: list[str], snapshot_id: int) -> ScanPlan:
        """Plan to read at least the selected rows of a snapshot, by the newest schema of the table."""
        where = self._decision.on_stored(AlwaysTrue() if selection.where is None else selection.where)
        plan = self._table.scan(where, columns=columns, snapshot_id=snapshot_id, own_schema=False)
        # This leaves out the rows and values that the rights of the cache hide.
        require_unrestricted(self._table, plan.decision, "a lookup cache")
        return plan

    def read(self, selection: RowSelection, columns: list[str], snapshot_id: int) -> Iterator[pa.RecordBatch]:
        """Read at least the selected rows of a snapshot, as `plan` does."""
        plan = self.plan(selection, columns, snapshot_id)
        if self._spec.group is None:
            return self._table.read_batches(plan, threads=_DECODING_THREADS)
        number, count = self._spec.group
        if has_one_bucket_count(self._table, snapshot_id):
            mine = tuple(split for split in plan.splits if split.bucket % count == number)
            plan = replace(plan, splits=mine)
        return self._table.read_batches(plan, threads=_DECODING_THREADS)

    def shown(self, rows: pa.Table) -> pa.Table:
        """Return `rows` with the masks of the cache's rights in place of values."""
        return self._masks.put_on(rows)

    def matching(self, rows: pa.Table, selection: RowSelection) -> pa.Array | None:
        """Return which of `rows`, as they are stored, the cache holds, one boolean each; None: all."""
        parts = []
        if self._decision.row_filter != AlwaysTrue():
            parts.append(_meeting(rows, self._decision.row_filter))
        if selection.where is not None:
            parts.append(_meeting(self.shown(rows), selection.where))
        if self._spec.group is not None:
            parts.append(self._in_group(rows))
        return pa.array(np.logical_and.reduce(parts)) if parts else None

    def _in_group(self, rows: pa.Table) -> Bools:
        assert self._spec.group is not None
        number, count = self._spec.group
        schema = self._table.schema
        keys = schema.bucket_keys
        buckets = assign_buckets(rows, keys, schema.types_of(keys), int(schema.options["bucket"]))
        mine: Bools = buckets % count == number
        return mine


def has_one_bucket_count(table: Table, snapshot_id: int) -> bool:
    """Say whether all files of a snapshot have the table's number of buckets.

    After a change of the number, files of a partition may still have the old one.
    """
    buckets = int(table.schema.options["bucket"])
    entries = table.manifests.live_files(table.snapshot(snapshot_id))
    return {entry.total_buckets for entry in entries} <= {buckets}


def check_masks(schema: pa.Schema, masked: Collection[str], identifier: str) -> None:
    """Raise KeyMissingError for a column that is read as its mask though it is not among the `masked` ones.

    The cache's name covers the masked columns. Later jobs would take any other mask for a value.
    """
    for member in schema:
        if MASKED in (member.metadata or {}) and member.name not in masked:
            raise KeyMissingError(
                f"column {member.name!r} of {identifier} can only be read as its mask: the "
                "version of its key that the files were written with is not held, or denied"
            )


def _meeting(rows: pa.Table, condition: Predicate) -> Bools:
    numbered = rows.append_column("_row", pa.array(np.arange(rows.num_rows)))
    kept: Bools = np.zeros(rows.num_rows, bool)
    kept[np.asarray(filter_table(numbered, condition).column("_row"))] = True
    return kept


def selection_at(table: Table, spec: LookupSpec, snapshot: Snapshot | None) -> RowSelection:
    """Return the selection of a lookup at a snapshot; None is the state before the first."""
    options = lookup_options(table.options, spec.options)
    partitions = options.scan_partitions
    if not partitions:
        return RowSelection(spec.where)
    there = set()
    if snapshot is not None and not partitions.fixed:
        there = {entry.partition for entry in table.manifests.live_files(snapshot)}
    predicate = partitions.predicate(table.schema, there)
    if isinstance(predicate, AlwaysFalse):
        return RowSelection(predicate, "none")
    where = all_of(AlwaysTrue() if spec.where is None else spec.where, predicate)
    return RowSelection(where, describe(predicate))
