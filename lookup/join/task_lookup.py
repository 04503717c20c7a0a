"""The lookups of a task: the rows of its keys, retries for missed keys, and their counts."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.cache_version import AnswerTooLarge
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.driver.batch_counts import unpack
from lockgate.lookup.join.lookup_worker import AnswerForm, WantedState, answer
from lockgate.lookup.spec.cache_paths import local_path
from lockgate.lookup.spec.lookup_options import Retry

if TYPE_CHECKING:
    from lockgate.lookup.codec.byte_rows import Bools
    from lockgate.lookup.driver.batch_counts import Counter

# The member of the answer's structs that says which snapshot a row is of, where rows may differ in it.
SNAPSHOT_FIELD = pa.field("__lockgate_snapshot", pa.int64())

_MOST_BATCHES = 64
# The most bytes of one answer. More is answered in parts, so that many rows of a key, asked for by many rows
# of the stream, need not be in memory at once.
_MOST_BYTES = 64 << 20
# Rows of the stream that are asked for at once.
MOST_ROWS = 1 << 16
# The time at which a worker first missed a key, by cache and batch.
_first_misses: OrderedDict[tuple[str, int], float] = OrderedDict()


@dataclass(frozen=True)
class TaskLookup:
    """The parameters of a task's lookups.

    `locations` are the caches, one for each group of buckets: folders, or, with `everywhere`, what each host
    turns into a folder of its own (see `cache_paths`). A state that is not there, as where an executor has
    just come or somebody removed the folder, is waited for `wait_seconds` at most. `fields` name and type the
    members of the answer, in the order of the cache's columns; `many` says whether a key may have several
    rows. With `retry` each row says which snapshot it is of (`SNAPSHOT_FIELD`).
    """

    locations: tuple[str, ...]
    fields: tuple[pa.Field, ...]
    many: bool
    cache_bytes: int
    retry: Retry | None = None
    wait_seconds: float = 0.0
    everywhere: bool = False


def coalesce_batches(
    batches: Iterable[tuple[pa.Array, ...]], most_rows: int = MOST_ROWS
) -> Iterator[list[pa.Array]]:
    """Combine whole Spark batches of a task, up to `most_rows` rows.

    Many keys at once are closer to each other in the cache, and share the fixed cost of a lookup.
    """
    held: list[tuple[pa.Array, ...]] = []
    rows = 0
    for batch in batches:
        if held and rows + len(batch[0]) > most_rows:
            yield _concatenated(held)
            held, rows = [], 0
        held.append(batch)
        rows += len(batch[0])
    if held:
        yield _concatenated(held)


def _concatenated(batches: list[tuple[pa.Array, ...]]) -> list[pa.Array]:
    return (
        list(batches[0])
        if len(batches) == 1
        else [pa.concat_arrays(each) for each in zip(*batches, strict=True)]
    )


def look_up_batches(
    wanted: TaskLookup,
    counter: Counter | None,
    pins: pa.Array,
    keys: Sequence[pa.Array],
    groups: pa.Array | None = None,
    marks: pa.Array | None = None,
) -> Iterator[pa.Array]:
    """Answer one batch of keys as `look_up` does, in several arrays if one would be very large."""
    try:
        found = look_up(wanted, counter, pins, keys, groups, marks)
    except AnswerTooLarge as large:
        size = -(-len(pins) // large.parts)
        if size == len(pins):
            size = -(-len(pins) // 2)
    else:
        yield found
        return
    for start in range(0, len(pins), size):
        part = [array.slice(start, size) for array in (pins, *keys)]
        some = None if groups is None else groups.slice(start, size)
        yield from look_up_batches(wanted, counter, part[0], part[1:], some, marks)


def look_up(
    wanted: TaskLookup,
    counter: Counter | None,
    pins: pa.Array,
    keys: Sequence[pa.Array],
    groups: pa.Array | None = None,
    marks: pa.Array | None = None,
) -> pa.Array:
    """Answer one batch of keys, all of one pin (see `pin_table`): one struct a key, or a list of structs.

    `groups` are the keys' groups of buckets, where there are several; `marks`, all the same, tell the
    snapshot from others of its number. Raises LookupCacheError if the pinned snapshot is not cached here, and
    AnswerTooLarge if the answer to several keys must be asked for in parts.
    """
    started = time.perf_counter_ns()
    snapshot_id, token = unpack(pins[0].as_py()) if len(pins) else (0, 0)
    mark = marks[0].as_py() if marks is not None and len(marks) else 0
    parts = _parts(groups)
    answers, retried = [], 0
    for group, where in parts:
        chosen = keys if where is None else [key.take(where) for key in keys]
        found, again = _answer(wanted, wanted.locations[group], (snapshot_id, token, mark), chosen)
        answers.append(found)
        retried += again
    found = answers[0] if len(parts) == 1 else _in_order(parts, answers)
    if counter is not None and len(pins):
        matched = int(np.count_nonzero(_matched(found, many=wanted.many)))
        # The time that a retry waits is not the cache's.
        counter.add({token: (len(pins), matched, retried, time.perf_counter_ns() - started)})
    return found


def _parts(groups: pa.Array | None) -> list[tuple[int, pa.Array | None]]:
    # The rows of each group. A task has one group, unless somebody merges Spark's partitions.
    if groups is None or len(groups) == 0:
        return [(0, None)]
    numbers = np.asarray(groups)
    there = np.unique(numbers).tolist()
    if len(there) == 1:
        return [(there[0], None)]
    return [(group, pa.array(np.flatnonzero(numbers == group))) for group in there]


def _in_order(parts: Sequence[tuple[int, pa.Array | None]], answers: Sequence[pa.Array]) -> pa.Array:
    order = np.concatenate([np.asarray(where) for _, where in parts])
    return pa.concat_arrays(answers).take(pa.array(np.argsort(order)))


def _answer(
    wanted: TaskLookup, location: str, pin: tuple[int, int, int], keys: Sequence[pa.Array]
) -> tuple[pa.Array, int]:
    path = str(local_path(location)) if wanted.everywhere else location
    snapshot_id, _, mark = pin
    state = WantedState(path, snapshot_id, wanted.cache_bytes, wanted.wait_seconds, mark)
    found = _ask(wanted, state, keys)
    if wanted.retry is None:
        return found, 0
    found = _with_snapshot(found, snapshot_id, many=wanted.many)
    return _ask_again(wanted, wanted.retry, path, pin, keys, found)


def _ask(wanted: TaskLookup, state: WantedState, keys: Sequence[pa.Array]) -> pa.Array:
    return answer(state, keys, AnswerForm(wanted.fields, wanted.many, _MOST_BYTES))


def _matched(found: pa.Array, *, many: bool) -> Bools:
    if many:
        return np.asarray(pc.fill_null(pc.list_value_length(found), 0)) > 0
    return np.asarray(found.is_valid())


def _with_snapshot(found: pa.Array, snapshot_id: int, *, many: bool) -> pa.Array:
    rows = found.values if many else found
    data_type = rows.type
    members = [
        *(rows.field(n) for n in range(data_type.num_fields)),
        pa.array(np.full(len(rows), snapshot_id)),
    ]
    fields = [*(data_type.field(n) for n in range(data_type.num_fields)), SNAPSHOT_FIELD]
    extended = pa.StructArray.from_arrays(members, fields=fields, mask=None if many else rows.is_null())
    return pa.ListArray.from_arrays(found.offsets, extended) if many else extended


def _ask_again(
    wanted: TaskLookup,
    retry: Retry,
    path: str,
    pin: tuple[int, int, int],
    keys: Sequence[pa.Array],
    found: pa.Array,
) -> tuple[pa.Array, int]:
    # Retries keys without a match on newer states, until the attempts of the batch are used up: later keys of
    # a task do not wait again as its first ones did.
    asked, token, _ = pin
    valid = np.ones(len(found), bool)
    for key in keys:
        valid &= np.asarray(key.is_valid())
    before = _matched(found, many=wanted.many)
    missed = np.flatnonzero(valid & ~before)
    first = _first_miss(path, token) if len(missed) else 0.0
    directory = CacheDirectory(Path(path))
    for attempt in range(1, retry.attempts + 1):
        if len(missed) == 0:
            break
        time.sleep(max(0.0, first + attempt * retry.delay_seconds - time.monotonic()))
        newest = directory.current()
        if newest is None or newest <= asked:
            continue
        try:
            state = WantedState(path, newest, wanted.cache_bytes)
            again = _ask(wanted, state, [key.take(pa.array(missed)) for key in keys])
        except LookupCacheError:  # a newer state has replaced it, and is asked next
            continue
        asked = newest
        found = _replaced(found, missed, _with_snapshot(again, newest, many=wanted.many))
        missed = missed[~_matched(again, many=wanted.many)]
    return found, int(np.count_nonzero(_matched(found, many=wanted.many) & ~before))


def _first_miss(path: str, token: int) -> float:
    at = _first_misses.setdefault((path, token), time.monotonic())
    while len(_first_misses) > _MOST_BATCHES:
        _first_misses.popitem(last=False)
    return at


def _replaced(found: pa.Array, where: np.ndarray, rows: pa.Array) -> pa.Array:
    at = np.arange(len(found))
    at[where] = len(found) + np.arange(len(where))
    return pa.concat_arrays([found, rows]).take(pa.array(at))
