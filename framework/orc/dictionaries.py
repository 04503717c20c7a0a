"""The dictionary of a text column in a stripe: whether any of its entries can make a comparison true."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lockgate.framework.orc.layout import StreamKind
from lockgate.framework.orc.positions import DICTIONARY_V2
from lockgate.framework.orc.row_index import ColumnStreams
from lockgate.framework.orc.run_lengths import decode_integers
from lockgate.pushdown import Comparison, Not, Op, Predicate, filter_table

_OPS = frozenset({Op.EQ, Op.EQ_NULL_SAFE, Op.IN, Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS})


def is_answered_by_dictionary(predicate: Predicate) -> bool:
    """Whether only values can make it true, so that a dictionary without a match rules it out."""
    node = predicate.child if isinstance(predicate, Not) else predicate
    if not isinstance(node, Comparison) or node.op not in _OPS:
        return False
    return node.op is not Op.EQ_NULL_SAFE or node.literals[0].is_valid


def dictionary_of(column: ColumnStreams, type_: pa.DataType) -> pa.Array | None:
    """The entries as an array of `type_`, a string; None for a column that has no dictionary.

    Raises `CorruptFileError` if the dictionary cannot be read.
    """
    if column.encoding.kind != DICTIONARY_V2 or type_ != pa.string():
        return None
    size = int(column.encoding.dictionary_size)
    lengths = column.read(StreamKind.LENGTH)
    if lengths is None:
        return None
    stream = column.by_kind[StreamKind.LENGTH]
    try:
        decoded = decode_integers(lengths, size, signed=False)
    except ValueError as error:
        raise column.damaged(stream, str(error)) from error
    content = column.read(StreamKind.DICTIONARY_DATA) or b""
    if size and (int(decoded.min()) < 0 or int(decoded.max()) > len(content)):
        raise column.damaged(stream, "an entry is longer than the dictionary")
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(decoded)])
    if int(ends[-1]) > len(content):
        raise column.damaged(stream, f"its entries take {ends[-1]} bytes, the dictionary has {len(content)}")
    return pa.LargeStringArray.from_buffers(size, pa.py_buffer(ends), pa.py_buffer(content)).cast(type_)


def any_entry_matches(predicate: Predicate, name: str, entries: pa.Array) -> bool:
    """Whether one of the entries makes the comparison of column `name` true."""
    return bool(filter_table(pa.table({name: entries}), predicate).num_rows)
