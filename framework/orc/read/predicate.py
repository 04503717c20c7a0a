"""Predicates of the reader: filtering rows, and pruning by statistics of files and stripes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError
from lockgate.framework.orc.format.layout import TypeKind
from lockgate.framework.orc.format.orc_statistics import ColumnStatistics
from lockgate.framework.orc.format.tail import Tail
from lockgate.pushdown import (
    AlwaysFalse,
    And,
    Comparison,
    FieldPath,
    Not,
    Or,
    Predicate,
    columns_of,
    may_match,
    to_arrow_expression,
    with_literals,
)
from lockgate.pushdown import ColumnStatistics as Bounds

_JAVA = 0
# Versions of the Java writer, by their names in Apache ORC's OrcFile.WriterVersion.
_HIVE_8732, _ORC_135 = 1, 6
_DECIMAL64 = 18


class RowFilter:
    """A predicate of `lockgate.pushdown` or an Arrow expression, bound to the schema of a file.

    It ignores statistics of the columns in `distrusted`.
    """

    def __init__(self, predicate: Any, schema: pa.Schema, distrusted: frozenset[str] = frozenset()) -> None:
        if not isinstance(predicate, (Predicate, pc.Expression)):
            raise InputError(
                "a predicate is one of lockgate.pushdown or an Arrow expression, "
                f"not a {type(predicate).__name__}"
            )
        self.predicate = with_literals(predicate) if isinstance(predicate, Predicate) else None
        self.schema = schema
        self._distrusted = distrusted
        self._expression = (
            predicate if self.predicate is None else to_arrow_expression(self.predicate, schema)
        )

    @property
    def columns(self) -> Sequence[str]:
        """The top-level columns that the predicate reads; all of them for an Arrow expression."""
        if self.predicate is None:
            return list(self.schema.names)
        return sorted({path[0] for path in columns_of(self.predicate)})

    def apply(self, table: pa.Table) -> pa.Table:
        """Return the rows for which the predicate is true."""
        return table.filter(self._expression)

    def may_match(self, statistics: Mapping[str, ColumnStatistics], rows: int) -> bool:
        """Return whether a file or stripe of `rows` rows with these statistics may have a match; False means
        that it has none.
        """
        if self.predicate is None:
            return True
        bounds: dict[FieldPath, Bounds] = {
            (name,): self.bounds(name, statistics[name]) for name in self.columns if name in statistics
        }
        return may_match(self.predicate, bounds, rows)

    def bounds(self, name: str, statistics: ColumnStatistics) -> Bounds:
        """Return the statistics of a column in the form of `lockgate.pushdown`; empty for distrusted
        columns.
        """
        if name in self._distrusted:
            return Bounds()
        type_ = self.schema.field(name).type
        try:
            low = None if statistics.minimum is None else pa.scalar(statistics.minimum, type_)
            high = None if statistics.maximum is None else pa.scalar(statistics.maximum, type_)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            # A bound that does not fit the column's type is unusable.
            low = high = None
        return Bounds(low, high, statistics.null_count)


def may_be_true(predicate: Predicate, leaf: Callable[[Predicate, Comparison], bool]) -> bool:
    """Return whether a normalized predicate may be true; `leaf` decides for each comparison.

    `leaf` gets a comparison or NOT around one, and the comparison itself.
    """
    match predicate:
        case And(children):
            return all(may_be_true(child, leaf) for child in children)
        case Or(children):
            return any(may_be_true(child, leaf) for child in children)
        case Not(Comparison() as node):
            return leaf(predicate, node)
        case Comparison():
            return leaf(predicate, predicate)
    return not isinstance(predicate, AlwaysFalse)


def leaves(predicate: Predicate) -> list[tuple[Predicate, Comparison]]:
    """Return the comparisons of a normalized predicate, as the arguments of `may_be_true`'s `leaf`."""
    match predicate:
        case And(children) | Or(children):
            return [leaf for child in children for leaf in leaves(child)]
        case Not(Comparison() as node):
            return [(predicate, node)]
        case Comparison():
            return [(predicate, predicate)]
    return []


def distrusted_columns(tail: Tail) -> frozenset[str]:
    """Return the columns with wrong statistics, by the version of the Java writer.

    The first version wrote wrong maximums and did not compare texts by bytes (HIVE-8732); ORC 1.5.0 to 1.5.5
    wrote wrong bounds of short decimals (ORC-517); no version counts values without a row index.
    """
    version = tail.postscript.writer_version
    if tail.footer.writer != _JAVA:
        return frozenset()
    if version < _HIVE_8732 or not tail.footer.row_index_stride:
        return frozenset(tail.types.names)
    if version != _ORC_135:
        return frozenset()
    types = tail.types.types
    return frozenset(
        name
        for name, column in zip(tail.types.names, tail.types.top_levels(), strict=True)
        if types[column].kind == TypeKind.DECIMAL and types[column].precision <= _DECIMAL64
    )
