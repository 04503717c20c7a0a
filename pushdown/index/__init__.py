"""Encoding of indexes: file indexes in Paimon's format, and segments of the index database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.pushdown.index.container import damage_named, is_index, read_container, write_container
    from lockgate.pushdown.index.hashes import hashes_of
    from lockgate.pushdown.index.index_evaluation import IndexedColumn, keys_equal_to, matching_rows
    from lockgate.pushdown.index.index_kinds import INDEX_KINDS, Answer, keys_of_list, write_index
    from lockgate.pushdown.index.inflate import inflated
    from lockgate.pushdown.index.merged_segments import LEAST_PLACES, MOST_DENSITY, merge_segments
    from lockgate.pushdown.index.ordered import are_in, distinct
    from lockgate.pushdown.index.postings import sorted_pairs
    from lockgate.pushdown.index.row_ranges import matching_ranges
    from lockgate.pushdown.index.segment import (
        Files,
        PartContent,
        PartName,
        Segment,
        SegmentPart,
        segment_of,
        write_segment,
    )
    from lockgate.pushdown.index.value_kinds import Key, Keys, ValueKind


__all__ = [
    "INDEX_KINDS",
    "LEAST_PLACES",
    "MOST_DENSITY",
    "Answer",
    "Files",
    "IndexedColumn",
    "Key",
    "Keys",
    "PartContent",
    "PartName",
    "Segment",
    "SegmentPart",
    "ValueKind",
    "are_in",
    "damage_named",
    "distinct",
    "hashes_of",
    "inflated",
    "is_index",
    "keys_equal_to",
    "keys_of_list",
    "matching_ranges",
    "matching_rows",
    "merge_segments",
    "read_container",
    "segment_of",
    "sorted_pairs",
    "write_container",
    "write_index",
    "write_segment",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".container": "damage_named is_index read_container write_container",
        ".hashes": "hashes_of",
        ".index_evaluation": "IndexedColumn keys_equal_to matching_rows",
        ".index_kinds": "Answer INDEX_KINDS keys_of_list write_index",
        ".inflate": "inflated",
        ".merged_segments": "LEAST_PLACES merge_segments MOST_DENSITY",
        ".ordered": "are_in distinct",
        ".postings": "sorted_pairs",
        ".row_ranges": "matching_ranges",
        ".segment": "Files PartContent PartName Segment SegmentPart segment_of write_segment",
        ".value_kinds": "Key Keys ValueKind",
    },
)
