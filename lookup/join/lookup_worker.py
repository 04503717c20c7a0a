"""Looking up inside Spark's Python workers, which are reused for many tasks and may vanish at any time."""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.cache_version import CacheVersion, DamagedVersionError
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.codec.byte_rows import offsets_of
from lockgate.lookup.codec.cache_cipher import CacheCipher
from lockgate.lookup.server.key_server import fetch_cipher
from lockgate.lookup.server.partial_service import partial_reader
from lockgate.lookup.server.version_wait import await_state, is_ready

_log = logging.getLogger("lockgate.lookup")

# States kept open in one worker; a query needs one for each of its lookups, and one more while they change.
_MOST_OPEN = 16
# Several tasks may meet a damaged cache, and each may remove it while another one opens the next.
_TRIES = 5

# By folder, snapshot and the snapshot's mark: a number alone can come again.
_Key = tuple[str, int, int]
_open: OrderedDict[_Key, tuple[tuple[int, int], CacheVersion]] = OrderedDict()
_ciphers: dict[str, tuple[str, CacheCipher]] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class WantedState:
    """The state of the cache in the folder `path` at a snapshot; snapshot 0 has no rows.

    `mark` tells the snapshot from others of its number (`mark_of`; 0: any). `cache_bytes` are for
    blocks that are copied. A state that is not there is waited for `wait_seconds` at most.
    """

    path: str
    snapshot_id: int
    cache_bytes: int
    wait_seconds: float = 0.0
    mark: int = 0


@dataclass(frozen=True)
class AnswerForm:
    """The form of an answer: a struct a key, or with `many` a list of structs.

    `fields` name and type the structs' members, in the order of the cache's columns. The answer to several
    keys has at most `most_bytes`; None: however many.
    """

    fields: Sequence[pa.Field]
    many: bool
    most_bytes: int | None = None


def cache_version(wanted: WantedState) -> CacheVersion:
    """Return a state, opened once in this process.

    Raises LookupCacheError if it is not cached and not waited for, the errors of `state_wait.await_state`,
    and UnsafePathError if the cache's folder could be another user's.
    """
    path = Path(wanted.path)
    for tries_left in reversed(range(_TRIES)):
        before = _folder_of(path)
        try:
            return _opened(wanted)
        except (DamagedVersionError, LookupCacheError, FileNotFoundError) as error:
            is_damaged, is_other = isinstance(error, DamagedVersionError), _folder_of(path) != before
            if not wanted.wait_seconds or not tries_left or not (is_damaged or is_other):
                raise error if isinstance(error, LookupCacheError) else LookupCacheError(str(error)) from None
            if not is_other:
                _log.warning("the lookup cache %s is removed and built again: %s", path, error)
                CacheDirectory(path).discard()
    raise AssertionError("each try returns or raises")


def _folder_of(path: Path) -> int | None:
    """Return what tells a folder from one that is made later in its place; None if there is none."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _opened(wanted: WantedState) -> CacheVersion:
    path, snapshot_id, mark = wanted.path, wanted.snapshot_id, wanted.mark
    directory = CacheDirectory(Path(path))
    key = (path, snapshot_id, mark)
    if wanted.wait_seconds and key not in _open:
        await_state(directory, snapshot_id, wanted.wait_seconds, mark)
    with _lock:
        stamp = _stamp(directory, snapshot_id)
        entry = _open.get(key)
        if entry is not None and (stamp in (None, entry[0]) or not is_ready(directory, snapshot_id, mark)):
            # Removed from disk by now, or replaced by another of its number: what is open stays readable.
            _open.move_to_end(key)
            return entry[1]
        with contextlib.suppress(FileNotFoundError):  # the next step has a better error
            directory.check(snapshot_id)
        reader = partial_reader(directory, snapshot_id)
        fresh = CacheVersion(directory, snapshot_id, wanted.cache_bytes, _cipher(directory), reader)
        if mark not in (0, fresh.info.mark):
            fresh.close()
            raise LookupCacheError(
                f"the lookup cache {path} holds another snapshot {snapshot_id} than this query was planned "
                "with, which has been rolled back: run the query again"
            )
        if entry is not None:
            entry[1].close()
        _open[key] = (stamp or (0, 0), fresh)
        _open.move_to_end(key)
        _close_removed(key)
        while len(_open) > _MOST_OPEN:
            _open.popitem(last=False)[1][1].close()
        return fresh


@atexit.register
def close_states() -> None:
    """Close the states that are open in this process, and what they are asked over."""
    with _lock:
        while _open:
            _open.popitem()[1][1].close()


def _close_removed(asked: _Key) -> None:
    # The owner has removed states that no batch needs. Their disk space is free only when no process holds
    # them open.
    for key in [key for key in _open if key != asked]:
        if _stamp(CacheDirectory(Path(key[0])), key[1]) is None:
            _open.pop(key)[1].close()


def _cipher(directory: CacheDirectory) -> CacheCipher | None:
    if not directory.layout().keys:
        return None
    content = directory.key()
    entry = _ciphers.get(str(directory.path))
    if entry is None or content is None or entry[0] != content["check"]:
        fetched = fetch_cipher(directory)
        content = directory.key() or {"check": ""}
        entry = _ciphers[str(directory.path)] = str(content["check"]), fetched
    return entry[1]


def _stamp(directory: CacheDirectory, snapshot_id: int) -> tuple[int, int] | None:
    # Tells a state from another of the same number, built after it.
    try:
        status = (directory.version_path(snapshot_id) / "GENERATION.json").stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def answer(wanted: WantedState, keys: Sequence[pa.Array], form: AnswerForm) -> pa.Array:
    """Answer a batch of keys, with null or an empty list where nothing matches.

    Raises what `cache_version` does, and AnswerTooLarge if the form allows no answer of this size.
    """
    count = len(keys[0])
    kind = pa.struct(form.fields)
    if count == 0 or wanted.snapshot_id == 0:
        return pa.nulls(count, pa.list_(kind) if form.many else kind)
    state = cache_version(wanted)
    if not form.many:
        rows, found = state.aligned(keys, form.most_bytes)
        return _struct(rows, form.fields, pa.array(~found))
    rows, counts = state.matches(keys, form.most_bytes)
    return pa.ListArray.from_arrays(
        pa.array(offsets_of(counts).astype(np.int32)), _struct(rows, form.fields, None)
    )


def _struct(rows: pa.RecordBatch, fields: Sequence[pa.Field], missing: pa.Array | None) -> pa.Array:
    columns = [column.cast(field.type) for column, field in zip(rows.columns, fields, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=list(fields), mask=missing)
