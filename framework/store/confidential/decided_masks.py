"""Masks of a decision, applied to the rows of a read.

A mask gives what it gives in a query of Spark (`access.masked_sql`): null for values that SQL cannot redact.
So a user sees the same by Python, by a lookup join and by SQL.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.access import MASKED, SHA256, Mask
from lockgate.framework.orc import ColumnMasks, ColumnTree, Encryption
from lockgate.framework.orc import Mask as OrcMask
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import BINARY_KINDS, FLOAT_KINDS, NESTED_KINDS, DataType, Kind

_REDACT = Mask("redact")
# Types of values that SQL makes null.
_NULL = {
    SHA256: NESTED_KINDS,
    _REDACT: NESTED_KINDS | FLOAT_KINDS | BINARY_KINDS | {Kind.DECIMAL, Kind.TIME},
}
# The least values with as many digits as the largest of the type: nines in their place are too large.
_LIMITS = {Kind.TINYINT: 100, Kind.SMALLINT: 10**4, Kind.INT: 10**9, Kind.BIGINT: 10**18}


class DecidedMasks:
    """Masks by top-level column; OptionError for a mask that no plugin and no format brings."""

    def __init__(self, masks: Mapping[str, Mask], schema: TableSchema) -> None:
        self._masks = {name: mask for name, mask in masks.items() if name in schema.field_names}
        tree = ColumnTree(schema.arrow_schema)
        self._columns = {column.name: column for column in tree.top}
        self._types = {field.name: field.type for field in schema.fields}
        stored = {name: _stored(mask, self._types[name]) for name, mask in self._masks.items()}
        self._functions = ColumnMasks(Encryption({}, stored), tree) if stored else None

    def put_on(self, rows: pa.Table) -> pa.Table:
        """Return the rows with masks in place of what is hidden."""
        if self._functions is None:
            return rows
        for index, field in enumerate(rows.schema):
            if field.name in self._masks:
                values = rows.column(index)
                masked = self._functions.mask_column(self._columns[field.name], values)
                limit = _LIMITS.get(self._types[field.name].kind)
                if limit is not None and self._masks[field.name] == _REDACT:
                    masked = _without(masked, values, limit)
                rows = rows.set_column(index, self._marked(field), masked)
        return rows

    def marked(self, schema: pa.Schema) -> pa.Schema:
        """Return a schema whose masked columns are marked, as those are whose key is missing."""
        return pa.schema([self._marked(field) if field.name in self._masks else field for field in schema])

    def _marked(self, field: pa.Field) -> pa.Field:
        mark = {MASKED: str(self._masks[field.name]).encode()}
        return field.with_nullable(True).with_metadata({**(field.metadata or {}), **mark})


def _stored(mask: Mask, type_: DataType) -> OrcMask:
    if type_.kind in _NULL.get(mask, ()):
        return OrcMask.NULLIFY
    return OrcMask(mask.name, mask.parameters)


def _without(masked: pa.ChunkedArray, values: pa.ChunkedArray, limit: int) -> pa.ChunkedArray:
    """Return masked numbers, null where a value has as many digits as the largest of its type."""
    wide = values.cast(pa.int64())
    fits = pc.and_(pc.less(wide, limit), pc.greater(wide, -limit))
    return pc.if_else(fits, masked, pa.scalar(None, masked.type))
