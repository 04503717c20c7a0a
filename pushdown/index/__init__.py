"""Indexes as bytes: file indexes as Paimon writes them, and segments of the index database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.pushdown.index.container import damage_named, read_container, write_container
    from lockgate.pushdown.index.hashes import hashes_of
    from lockgate.pushdown.index.index_evaluation import keys_equal_to
    from lockgate.pushdown.index.index_kinds import keys_of_list
    from lockgate.pushdown.index.merged_segments import merge_segments
    from lockgate.pushdown.index.ordered import are_in, distinct
    from lockgate.pushdown.index.postings import sorted_pairs
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
    "Files",
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
    "keys_equal_to",
    "keys_of_list",
    "merge_segments",
    "read_container",
    "segment_of",
    "sorted_pairs",
    "write_container",
    "write_segment",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".container": "damage_named read_container write_container",
        ".hashes": "hashes_of",
        ".index_evaluation": "keys_equal_to",
        ".index_kinds": "keys_of_list",
        ".merged_segments": "merge_segments",
        ".ordered": "are_in distinct",
        ".postings": "sorted_pairs",
        ".segment": "Files PartContent PartName Segment SegmentPart segment_of write_segment",
        ".value_kinds": "Key Keys ValueKind",
    },
)
