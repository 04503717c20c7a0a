"""Indexes as bytes: file indexes as Paimon writes them, and segments of the index database.

Pure: no file, no table. `framework/index` finds the bytes and knows which column they are of.
"""

from lockgate.pushdown.index.container import Indexes, damage_named, read_container, write_container
from lockgate.pushdown.index.evaluation import IndexedColumn, keys_equal_to, matching_rows
from lockgate.pushdown.index.hashes import hashes_of
from lockgate.pushdown.index.kinds import (
    BITMAP,
    BLOOM_FILTER,
    INDEX_KINDS,
    RANGE_BITMAP,
    Answer,
    keys_of_list,
    write_index,
)
from lockgate.pushdown.index.merge_segments import LEAST_PLACES, MOST_DENSITY, merge_segments
from lockgate.pushdown.index.places import places_of
from lockgate.pushdown.index.postings import distinct, sorted_pairs
from lockgate.pushdown.index.segment import (
    Files,
    Part,
    PartContent,
    PartName,
    Segment,
    segment_of,
    write_segment,
)
from lockgate.pushdown.index.value_kinds import ValueKind

__all__ = [
    "BITMAP",
    "BLOOM_FILTER",
    "INDEX_KINDS",
    "LEAST_PLACES",
    "MOST_DENSITY",
    "RANGE_BITMAP",
    "Answer",
    "Files",
    "IndexedColumn",
    "Indexes",
    "Part",
    "PartContent",
    "PartName",
    "Segment",
    "ValueKind",
    "damage_named",
    "distinct",
    "hashes_of",
    "keys_equal_to",
    "keys_of_list",
    "matching_rows",
    "merge_segments",
    "places_of",
    "read_container",
    "segment_of",
    "sorted_pairs",
    "write_container",
    "write_index",
    "write_segment",
]
