"""Predicates as the reader needs them: columns, stripes that cannot match, and the filter itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError
from lockgate.framework.orc.statistics import ColumnStatistics
from lockgate.pushdown import ColumnStatistics as Bounds
from lockgate.pushdown import FieldPath, Predicate, columns_of, may_match, to_arrow_expression


class RowFilter:
    """A predicate of `lockgate.pushdown` or an Arrow expression, bound to the schema of a file."""

    def __init__(self, predicate: Any, schema: pa.Schema) -> None:
        if not isinstance(predicate, (Predicate, pc.Expression)):
            raise InputError(
                "a predicate is one of lockgate.pushdown or an Arrow expression, "
                f"not a {type(predicate).__name__}"
            )
        self._predicate = predicate if isinstance(predicate, Predicate) else None
        self._schema = schema
        self._expression = (
            predicate if self._predicate is None else to_arrow_expression(self._predicate, schema)
        )

    @property
    def columns(self) -> Sequence[str]:
        """The top-level columns that are looked at; all of them for an expression, which does not say."""
        if self._predicate is None:
            return list(self._schema.names)
        return sorted({path[0] for path in columns_of(self._predicate)})

    def apply(self, table: pa.Table) -> pa.Table:
        """The rows for which it is true."""
        return table.filter(self._expression)

    def may_match(self, statistics: Mapping[str, ColumnStatistics], rows: int) -> bool:
        """Whether a stripe of `rows` rows with these statistics may hold such a row; False is certain."""
        if self._predicate is None:
            return True
        bounds: dict[FieldPath, Bounds] = {
            (name,): _bounds(found, self._schema.field(name).type)
            for name, found in statistics.items()
            if name in self.columns
        }
        return may_match(self._predicate, bounds, rows)


def _bounds(found: ColumnStatistics, type_: pa.DataType) -> Bounds:
    try:
        low = None if found.minimum is None else pa.scalar(found.minimum, type_)
        high = None if found.maximum is None else pa.scalar(found.maximum, type_)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        # A bound that the column's own type cannot hold says nothing.
        low = high = None
    return Bounds(low, high, found.null_count)
