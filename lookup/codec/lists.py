"""Several rows under one key: packing lists of rows into one value, and taking them apart again.

A list is: the number of rows (one word), the length of each in words (four bytes each, padded to a word),
the rows.
"""

from __future__ import annotations

import numpy as np

from lockgate.lookup.codec.byte_rows import Int64s, Rows, Scattered, offsets_of, ragged


def _header(counts: Int64s) -> Int64s:
    return 1 + (counts + 1) // 2


def pack(rows: Rows, counts: Int64s) -> Rows:
    """Pack consecutive rows into lists of `counts[0]`, `counts[1]`, ... rows."""
    header = _header(counts)
    lengths = rows.lengths
    bodies = np.diff(rows.offsets[offsets_of(counts)])
    offsets = offsets_of(header + bodies)
    words = np.zeros(int(offsets[-1]), np.uint64)
    words[offsets[:-1]] = counts.astype(np.uint64)
    words.view(np.uint32)[ragged((offsets[:-1] + 1) * 2, counts)] = lengths
    words[ragged(offsets[:-1] + header, bodies)] = rows.words[rows.offsets[0] : rows.offsets[-1]]
    return Rows(words, offsets)


def unpack(lists: Rows | Scattered) -> tuple[Scattered, Int64s]:
    """Take packed lists apart: all rows one after another, where they lie, and how many each list held."""
    counts = lists.words[lists.starts].astype(np.int64)
    lengths = lists.words.view(np.uint32)[ragged((lists.starts + 1) * 2, counts)].astype(np.int64)
    before = offsets_of(lengths)
    first = lists.starts + _header(counts)
    # A row begins behind those of its list that precede it.
    starts = np.repeat(first - before[offsets_of(counts)[:-1]], counts) + before[:-1]
    return Scattered(lists.words, starts, lengths), counts
