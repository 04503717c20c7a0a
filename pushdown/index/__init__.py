"""File indexes as Paimon writes them: bytes to answers and back.

Pure: no file, no table. `framework/index` finds the bytes and knows which column they are of.
"""

from lockgate.pushdown.index.container import Indexes, damage_named, read_container, write_container
from lockgate.pushdown.index.evaluation import IndexedColumn, matching_rows
from lockgate.pushdown.index.kinds import BITMAP, BLOOM_FILTER, INDEX_KINDS, RANGE_BITMAP, Answer, write_index
from lockgate.pushdown.index.value_kinds import ValueKind

__all__ = [
    "BITMAP",
    "BLOOM_FILTER",
    "INDEX_KINDS",
    "RANGE_BITMAP",
    "Answer",
    "IndexedColumn",
    "Indexes",
    "ValueKind",
    "damage_named",
    "matching_rows",
    "read_container",
    "write_container",
    "write_index",
]
