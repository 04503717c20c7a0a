"""Files of a merged table that a late filter, which nobody evaluates on the rows, may skip.

The files of a bucket hold older and newer versions of the same keys, and deletions. A filter of key columns
leaves a file out if no key of it passes. All versions of a key that passes stay together, since each lies in
a file that may hold the key. Of a key that fails, the newest version may go while an older one stays, in a
larger file; the merge then takes the older one for the row. Which filters may do so depends on what happens
to such rows afterwards:

=======================================  =========================================================
filters that a query pushes down         the exact filter is asked of each row after the merge, by
                                         `SplitReader` or by Spark, which keeps what it pushes:
                                         rows that fail are dropped, files may go one by one
filters of a dynamic pruning of a join   the join drops them, if both see the same values: Spark's
                                         broadcast, used twice; as above
filters of UPDATE, DELETE and MERGE      the keys that match, found by a query of Spark's own;
known at run time                        nobody asks again, and a row that comes back is written as
                                         new: only what is said here may go
filters of other columns                 leave out sections (`split.key_sections`) as a whole
filters of partition and bucket columns  leave out partitions and buckets as a whole
=======================================  =========================================================

A *late* filter is one after which failing rows are not dropped for certain. A file that it keeps brings
along all files that may hold newer versions of the same keys, and so on. Files with older versions only stay
out: without them a key has the same newest row, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lockgate.framework.store.manifests.file_table import FileTable, Mask
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.pruning.split import key_order

Numbers: TypeAlias = npt.NDArray[np.int64]


def with_newer_versions(files: FileTable, mask: Mask, kept: Mask, *, numbered: bool) -> Mask:
    """Return `kept` and those files of `mask` without which an older version of a key would seem the newest.

    `numbered`: the sequence number alone says which version is newer; with `sequence.field` any file may hold
    a newer one. `kept` is a part of `mask`.
    """
    result = kept.copy()
    left_out = mask & ~kept
    for bucket in _buckets(files, mask):
        chosen = kept[bucket]
        if chosen.any() and left_out[bucket].any():
            result[bucket] = _closed([files.entries[number].file for number in bucket], chosen, numbered)
    return result


def _buckets(files: FileTable, mask: Mask) -> list[Numbers]:
    """Return the numbers of the files of each bucket."""
    numbers = np.flatnonzero(mask)
    order = np.lexsort((files.bucket[numbers], files.partition[numbers]))
    numbers = numbers[order]
    turns = (np.diff(files.partition[numbers]) != 0) | (np.diff(files.bucket[numbers]) != 0)
    return np.split(numbers, np.flatnonzero(turns) + 1) if len(numbers) else []


def _closed(files: Sequence[DataFileMeta], chosen: Mask, numbered: bool) -> Mask:
    if any(not file.min_key or not file.max_key for file in files):
        return np.ones(len(files), np.bool_)
    low, high = _ranks(files)
    oldest = np.array([file.min_sequence_number for file in files], np.int64)
    newest = np.array([file.max_sequence_number for file in files], np.int64)
    closed = chosen.copy()
    waiting = list(np.flatnonzero(chosen))
    while waiting:
        one = waiting.pop()
        found = ~closed & (low <= high[one]) & (low[one] <= high)
        if numbered:
            found &= newest >= oldest[one]
        closed |= found
        waiting.extend(np.flatnonzero(found))
    return closed


def _ranks(files: Sequence[DataFileMeta]) -> tuple[Numbers, Numbers]:
    """Return whole numbers that are ordered as the least and the largest keys of files are."""
    bounds = [(key_order(file.min_key), key_order(file.max_key)) for file in files]
    rank = {key: index for index, key in enumerate(sorted({key for pair in bounds for key in pair}))}
    ranks = np.array([(rank[low], rank[high]) for low, high in bounds], np.int64)
    return ranks[:, 0], ranks[:, 1]
