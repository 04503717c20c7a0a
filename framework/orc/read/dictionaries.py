"""Pruning of stripes by the dictionaries of text columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from lockgate.framework.orc.format.layout import StreamKind
from lockgate.framework.orc.format.positions import DICTIONARY_V2
from lockgate.framework.orc.format.run_lengths import decode_integers
from lockgate.framework.orc.read.row_index import ColumnStreams
from lockgate.pushdown import (
    PATTERNS,
    TEXT,
    AlwaysFalse,
    And,
    Comparison,
    Not,
    Op,
    Or,
    Predicate,
    all_of,
    any_of,
    filter_table,
)

# Reading a dictionary costs a request; for other operators, bounds exclude as much.
_OPERATORS = frozenset({Op.EQ, Op.EQ_NULL_SAFE, Op.IN}) | TEXT | PATTERNS


def dictionary_of(column: ColumnStreams, type_: pa.DataType) -> pa.Array | None:
    """Return the entries of a column's dictionary; None for a column without one, or if it is no string.

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


class Dictionaries:
    """Simplifies predicates: comparisons that no dictionary entry meets become false.

    `read` returns the entries of a column by its name, None if it has no dictionary.
    """

    def __init__(self, read: Callable[[str], pa.Array | None]) -> None:
        self._read = read
        self._entries: dict[str, pa.Array | None] = {}

    def reduce(self, predicate: Predicate) -> Predicate:
        """Return a simpler normalized predicate with the same matches in the stripe."""
        match predicate:
            case Or(children):
                return any_of(*(self.reduce(child) for child in children))
            case And(children):
                return all_of(*(self.reduce(child) for child in children), *self._conflicts(children))
        return AlwaysFalse() if self._has_no_match(predicate) else predicate

    def _conflicts(self, children: Sequence[Predicate]) -> list[Predicate]:
        """Return AlwaysFalse if no entry of a column meets all its conditions."""
        by_column: dict[str | None, list[Predicate]] = {}
        for child in children:
            by_column.setdefault(_only_column(child), []).append(child)
        by_column.pop(None, None)
        conjunctions = (all_of(*conditions) for conditions in by_column.values() if len(conditions) > 1)
        return [AlwaysFalse()] if any(self._has_no_match(conjunction) for conjunction in conjunctions) else []

    def _has_no_match(self, predicate: Predicate) -> bool:
        name = _only_column(predicate)
        if name is None:
            return False
        if name not in self._entries:
            self._entries[name] = self._read(name)
        entries = self._entries[name]
        return entries is not None and not filter_table(pa.table({name: entries}), predicate).num_rows


def _only_column(predicate: Predicate) -> str | None:
    """Return the only column of a predicate; None if it has several, or if null can make it true."""
    match predicate:
        case And(children) | Or(children):
            names = {_only_column(child) for child in children}
            return names.pop() if len(names) == 1 else None
        case Not(child):
            return _only_column(child)
        case Comparison(op, (name,), literals) if op in _OPERATORS:
            return name if op is not Op.EQ_NULL_SAFE or literals[0].is_valid else None
    return None
