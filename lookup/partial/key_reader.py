"""Reads the rows of some keys from a snapshot: keys → buckets → files by key range → row groups."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.store import WantedKeys, assign_buckets, visibility
from lockgate.lookup.codec.byte_rows import Bools, Int64s, Rows
from lockgate.lookup.spec.row_selection import RowSelector, check_masks, has_one_bucket_count, selection_at

if TYPE_CHECKING:
    from lockgate.framework.store import ScanPlan, Snapshot, Split, Table
    from lockgate.lookup.spec.lookup_spec import CacheLayout, LookupSpec

# Plans of snapshots that are remembered: those of running batches.
_MOST_PLANS = 4


@dataclass(frozen=True)
class _Planned:
    """The files of one snapshot; `bucketed` says that all are in as many buckets as the table has."""

    plan: ScanPlan
    bucketed: bool


class KeyReader:
    """Reads rows of one lookup by their keys; all methods may be called from any thread."""

    def __init__(self, table: Table, spec: LookupSpec, layout: CacheLayout) -> None:
        self._table = table
        self._spec = spec
        self._layout = layout
        self._selector = RowSelector(table, spec)
        # The partitions of a partial lookup are fixed, so that no snapshot changes what is selected.
        self._selection = selection_at(table, spec, None)
        self._masked = frozenset(visibility(table).missing_keys(layout.read_columns))
        self._plans: OrderedDict[tuple[int, str], _Planned] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, snapshot: Snapshot, keys: Rows) -> dict[bytes, bytes]:
        """Return the encoded rows of encoded keys, by key; a key without a row is not among them.

        Raises KeyMissingError for a column that turns out to be masked.
        """
        batch = self._layout.key_codec.decode(keys)
        planned = self._planned(snapshot)
        asked = set(keys.to_bytes())
        found: dict[bytes, bytes] = {}
        for numbers, splits in self._by_bucket(planned, batch):
            some = batch.take(pa.array(numbers))
            wanted = self._wanted(some)
            parts = (_narrowed(split, wanted) for split in splits if _in_partition(split.partition, some))
            chosen = tuple(part for part in parts if part.files)
            if chosen:
                plan = replace(planned.plan, splits=chosen)
                for rows in self._table.read_batches(plan, threads=1, wanted=wanted):
                    found.update(self._encoded(rows, asked))
        return found

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _planned(self, snapshot: Snapshot) -> _Planned:
        key = snapshot.id, snapshot.delta_manifest_list
        with self._lock:
            if key not in self._plans:
                names = list(self._layout.read_columns)
                plan = self._selector.plan(self._selection, names, snapshot.id)
                bucketed = has_one_bucket_count(self._table, snapshot.id) and not self._hashes_floats()
                self._plans[key] = _Planned(plan, bucketed)
                while len(self._plans) > _MOST_PLANS:
                    self._plans.popitem(last=False)
            self._plans.move_to_end(key)
            return self._plans[key]

    def _hashes_floats(self) -> bool:
        # -0.0 and 0.0 are one key, and lie in two buckets.
        fields = [self._layout.key_schema.field(name) for name in self._table.schema.bucket_keys]
        return any(pa.types.is_floating(field.type) for field in fields)

    def _by_bucket(self, planned: _Planned, batch: pa.RecordBatch) -> Iterator[tuple[Int64s, list[Split]]]:
        splits = planned.plan.splits
        if not planned.bucketed:
            yield np.arange(batch.num_rows), list(splits)
            return
        schema = self._table.schema
        keys = schema.bucket_keys
        buckets = assign_buckets(batch, keys, schema.types_of(keys), int(schema.options["bucket"]))
        by_bucket: dict[int, list[Split]] = {}
        for split in splits:
            by_bucket.setdefault(split.bucket, []).append(split)
        for bucket in np.unique(buckets).tolist():
            if bucket in by_bucket:
                yield np.flatnonzero(buckets == bucket), by_bucket[bucket]

    def _wanted(self, batch: pa.RecordBatch) -> WantedKeys | None:
        name = self._table.schema.trimmed_primary_keys[0]
        column = batch.column(name)
        kind = column.type
        exact = pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_string(kind)
        return WantedKeys(name, pc.unique(column).sort()) if exact else None

    def _encoded(self, batch: pa.RecordBatch, asked: set[bytes]) -> Iterator[tuple[bytes, bytes]]:
        check_masks(batch.schema, self._masked, self._spec.identifier)
        rows = pa.Table.from_batches([batch]).select(list(self._layout.read_columns))
        layout = self._layout
        kept = self._selector.matching(rows, self._selection)
        rows = self._selector.shown(rows if kept is None else rows.filter(kept)).combine_chunks()
        for part in rows.to_batches():
            keys = layout.key_codec.encode([part.column(name) for name in layout.key_schema.names])
            names = keys.rows.to_bytes()
            there: Bools = np.fromiter((name in asked for name in names), bool, len(names))
            at = np.flatnonzero(there)
            if len(at):
                valid = part if keys.valid.all() else part.filter(pa.array(keys.valid))
                chosen = valid.select(layout.row_schema.names).take(pa.array(at))
                yield from zip(
                    [names[i] for i in at], layout.row_codec.encode(chosen).to_bytes(), strict=True
                )


def _narrowed(split: Split, wanted: WantedKeys | None) -> Split:
    """Return the files of a split that may have wanted keys: no version of these is in another."""
    if wanted is None:
        return split
    paths = {path for path, file in zip(split.paths, split.files, strict=True) if wanted.in_file(file)}
    return split.only(paths.__contains__)


def _in_partition(partition: Mapping[str, object], batch: pa.RecordBatch) -> bool:
    return all(
        pc.index(batch.column(name), pa.scalar(value, batch.schema.field(name).type)).as_py() >= 0
        for name, value in partition.items()
        if value is not None
    )
