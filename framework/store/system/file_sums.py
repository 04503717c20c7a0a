"""Counts over the data files of a snapshot: rows, bytes, files and the time of the newest one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lockgate.framework.store.manifests.file_table import FileTable, Mask, Numbers

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

# Stands for a time that a manifest does not hold.
_NO_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True)
class FileSums:
    """Counts over some files; `newest` is in milliseconds, None if no file says when it was written."""

    rows: int = 0
    size: int = 0
    files: int = 0
    newest: int | None = None


def shown_files(
    table: TableHandle, snapshot: Snapshot | None, *, waiting: bool = False
) -> tuple[FileTable, Mask]:
    """Return the files of a snapshot and which of them system tables show.

    Those of postponed buckets, `waiting` for one, only if asked for.
    """
    files = FileTable(()) if snapshot is None else table.manifests.files(snapshot)
    return files, files.live if waiting else files.live & (files.bucket >= 0)


def total_of(files: FileTable, mask: Mask) -> FileSums:
    """Return the counts over the chosen files."""
    numbers = np.flatnonzero(mask)
    newest = _times(files, numbers).max(initial=_NO_TIME)
    rows, size = files.rows[numbers].sum(), files.bytes[numbers].sum()
    return FileSums(int(rows), int(size), len(numbers), _time(newest))


def sums_by(files: FileTable, mask: Mask, *, bucket: bool) -> dict[tuple[Any, ...], FileSums]:
    """Return the counts over the chosen files by partition, or by partition and bucket."""
    numbers = np.flatnonzero(mask)
    if not len(numbers):
        return {}
    keys = files.bucket[numbers] if bucket else np.zeros(len(numbers), np.int64)
    order = np.lexsort((keys, files.partition[numbers]))
    numbers, keys = numbers[order], keys[order]
    partition = files.partition[numbers]
    changes = (partition[1:] != partition[:-1]) | (keys[1:] != keys[:-1])
    starts = np.flatnonzero(np.concatenate(([True], changes)))
    columns = (
        np.add.reduceat(files.rows[numbers], starts),
        np.add.reduceat(files.bytes[numbers], starts),
        np.diff(starts, append=len(numbers)),
        np.maximum.reduceat(_times(files, numbers), starts),
    )
    found: dict[tuple[Any, ...], FileSums] = {}
    for number, key, rows, size, count, newest in zip(partition[starts], keys[starts], *columns, strict=True):
        group = (files.partitions[number], int(key)) if bucket else (files.partitions[number],)
        found[group] = FileSums(int(rows), int(size), int(count), _time(newest))
    return found


def _times(files: FileTable, numbers: Numbers) -> Numbers:
    entries = files.entries
    found = (entries[number].file.creation_time_millis for number in numbers.tolist())
    return np.fromiter((_NO_TIME if time is None else time for time in found), np.int64, len(numbers))


def _time(newest: np.int64) -> int | None:
    return None if newest == _NO_TIME else max(0, int(newest))
