"""The writes to a cache that follow from the changed rows of one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import is_not

import numpy as np
import pyarrow as pa

from lockgate.lookup.cache.backends import Store
from lockgate.lookup.cache.layers import hashes_of
from lockgate.lookup.codec.byte_rows import Bools, Int64s, Rows
from lockgate.lookup.codec.key_codec import DistinctKeys, KeyCodec, distinct
from lockgate.lookup.codec.lists import pack, unpack
from lockgate.lookup.spec.lookup_spec import CacheLayout, CacheStructure

# Kinds of change, as in the column _VALUE_KIND: +I, -U, +U, -D.
_PRESENT = (0, 2)


@dataclass(frozen=True)
class CacheStep:
    """Keys to write, strictly ascending, with their new values (None: delete), and what rows are gained."""

    keys: list[bytes]
    values: list[bytes | None]
    row_delta: int


def make_step(
    layout: CacheLayout,
    store: Store,
    batch: pa.RecordBatch,
    kinds: pa.ChunkedArray,
    matching: pa.Array | None,
) -> CacheStep:
    """Work out the writes for changed rows, in the order of their changes; `store` has the state before.

    `matching` says the rows that meet the lookup's condition: a row that no longer does leaves the cache.
    Keys whose value stays as it was are not written.
    """
    if batch.num_rows == 0:  # such as when all rows of a snapshot are older than those they would replace
        return CacheStep([], [], 0)
    present = np.isin(np.asarray(kinds), _PRESENT)
    if matching is not None:
        present &= np.asarray(matching)
    if layout.kind is CacheStructure.PRIMARY_KEY:
        return _one_row(layout, store, batch, present)
    if layout.kind is CacheStructure.NO_PRIMARY_KEY:
        return _appended(layout, store, batch.filter(pa.array(present)))
    return _indexed(layout, store, batch, present)


def _columns(batch: pa.RecordBatch, codec: KeyCodec) -> list[pa.Array]:
    return [batch.column(name) for name in codec.schema.names]


def _one_row(layout: CacheLayout, store: Store, batch: pa.RecordBatch, present: Bools) -> CacheStep:
    encoded = layout.key_codec.encode(_columns(batch, layout.key_codec))
    groups = encoded.distinct()
    # Primary keys are not null, so encoded keys and rows of the batch have the same numbers.
    last = groups.last
    keys = encoded.rows.take(groups.first).to_bytes()
    rows = layout.row_codec.encode(batch.select(layout.row_schema.names)).take(last).to_bytes()
    new = _where(present[last], rows)
    old = store.get_many(keys)
    return _changed(keys, old, new, old.count(None) - new.count(None))


def _where(here: Bools, values: Sequence[bytes]) -> list[bytes | None]:
    if here.all():
        return list(values)
    return [value if kept else None for value, kept in zip(values, here.tolist(), strict=True)]


def _changed(
    keys: Sequence[bytes], old: Sequence[bytes | None], new: Sequence[bytes | None], row_delta: int
) -> CacheStep:
    different = [n for n, (before, after) in enumerate(zip(old, new, strict=True)) if before != after]
    if len(different) == len(keys):
        return CacheStep(list(keys), list(new), row_delta)
    return CacheStep([keys[n] for n in different], [new[n] for n in different], row_delta)


def _appended(layout: CacheLayout, store: Store, batch: pa.RecordBatch) -> CacheStep:
    encoded = layout.key_codec.encode(_columns(batch, layout.key_codec))
    groups = encoded.distinct()
    keys = encoded.rows.take(groups.first).to_bytes()
    old = store.get_many(keys)
    valid = batch.filter(pa.array(encoded.valid))
    added = layout.row_codec.encode(valid.select(layout.row_schema.names))
    before, owners = _lists(old)
    new = _regroup(len(keys), before, owners, added, groups.inverse)
    return _changed(keys, old, new, len(added))


def _lists(values: Sequence[bytes | None]) -> tuple[Rows, Int64s]:
    # The rows of packed lists one after another, and for each the number of its list.
    there = np.flatnonzero(np.fromiter(map(is_not, values, repeat(None)), bool, len(values)))
    rows, counts = unpack(Rows.from_values([value for value in values if value is not None]))
    return rows.gather(), np.repeat(there, counts)


def _regroup(
    count: int, before: Rows, owners: Int64s, added: Rows, added_owners: Int64s
) -> list[bytes | None]:
    # New lists: first the rows that each owner had, then its new ones; None for owners without a row.
    rows = Rows.concatenate([before, added])
    group = np.concatenate([owners, added_owners])
    counts = np.bincount(group, minlength=count)
    filled = np.flatnonzero(counts)
    packed = pack(rows.take(np.argsort(group, kind="stable")), counts[filled]).to_bytes()
    values: list[bytes | None] = [None] * count
    for owner, value in zip(filled.tolist(), packed, strict=True):
        values[owner] = value
    return values


def _indexed(layout: CacheLayout, store: Store, batch: pa.RecordBatch, present: Bools) -> CacheStep:
    """Return the writes for rows found by other columns than their primary key.

    The cache remembers the join key of each primary key: a changed row leaves the list it was in, wherever
    its new values put it.
    """
    primary = layout.primary_codec.encode(_columns(batch, layout.primary_codec))
    groups = primary.distinct()
    primary_keys = primary.rows.take(groups.first).to_bytes()
    last = groups.last
    kept: Int64s = last[present[last]]

    remembered = store.get_many(primary_keys)
    old_keys = layout.key_row_codec.decode(Rows.from_values([v for v in remembered if v is not None]))
    left = layout.key_codec.encode(old_keys.columns)
    gained = batch.take(pa.array(kept))
    entered = layout.key_codec.encode(_columns(gained, layout.key_codec))

    touched = Rows.concatenate([left.rows, entered.rows])
    lists = distinct(touched, hashes_of(touched))
    list_keys = touched.take(lists.first).to_bytes()
    old_lists = store.get_many(list_keys)
    before, owners = _without(layout, old_lists, set(primary_keys))
    added = layout.row_codec.encode(gained.filter(pa.array(entered.valid)).select(layout.row_schema.names))
    new_lists = _regroup(len(list_keys), before, owners, added, lists.inverse[len(left.rows) :])
    delta = len(added) - (_count(old_lists) - len(before))
    rows = _changed(list_keys, old_lists, new_lists, delta)
    memory = _changed(primary_keys, remembered, _remember(layout, batch, groups, present), 0)
    # All primary keys sort after all lookup keys: their key space is the top bit.
    return CacheStep(rows.keys + memory.keys, rows.values + memory.values, rows.row_delta)


def _without(layout: CacheLayout, lists: Sequence[bytes | None], gone: set[bytes]) -> tuple[Rows, Int64s]:
    rows, owners = _lists(lists)
    decoded = layout.row_codec.decode(rows)
    keys = layout.primary_codec.encode(_columns(decoded, layout.primary_codec)).rows.to_bytes()
    stay = np.flatnonzero(np.fromiter((key not in gone for key in keys), bool, len(keys)))
    return rows.take(stay), owners[stay]


def _count(lists: Sequence[bytes | None]) -> int:
    return sum(int.from_bytes(value[:8], "little") for value in lists if value is not None)


def _remember(
    layout: CacheLayout, batch: pa.RecordBatch, groups: DistinctKeys, present: Bools
) -> list[bytes | None]:
    last = groups.last
    rows = layout.key_row_codec.encode(batch.select(layout.key_schema.names)).take(last).to_bytes()
    return _where(present[last], rows)
