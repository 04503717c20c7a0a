"""Masks of a decision, applied to the rows of a read."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lockgate.framework.access import MASKED, Mask
from lockgate.framework.orc.encryption.options import Encryption
from lockgate.framework.orc.encryption.options import Mask as OrcMask
from lockgate.framework.orc.format.column_paths import ColumnTree
from lockgate.framework.orc.masks.masks import ColumnMasks
from lockgate.framework.store.schema.schema import TableSchema


class DecidedMasks:
    """Masks by top-level column; OptionError for a mask that no plugin and no format brings."""

    def __init__(self, masks: Mapping[str, Mask], schema: TableSchema) -> None:
        self._masks = {name: mask for name, mask in masks.items() if name in schema.field_names}
        tree = ColumnTree(schema.arrow_schema)
        self._columns = {column.name: column for column in tree.top}
        stored = {name: OrcMask(mask.name, mask.parameters) for name, mask in self._masks.items()}
        self._functions = ColumnMasks(Encryption({}, stored), tree) if stored else None

    def put_on(self, rows: pa.Table) -> pa.Table:
        """Return the rows with masks in place of what is hidden."""
        if self._functions is None:
            return rows
        for index, field in enumerate(rows.schema):
            if field.name in self._masks:
                masked = self._functions.mask_column(self._columns[field.name], rows.column(index))
                rows = rows.set_column(index, self._marked(field), masked)
        return rows

    def marked(self, schema: pa.Schema) -> pa.Schema:
        """Return a schema whose masked columns are marked, as those are whose key is missing."""
        return pa.schema([self._marked(field) if field.name in self._masks else field for field in schema])

    def _marked(self, field: pa.Field) -> pa.Field:
        mark = {MASKED: str(self._masks[field.name]).encode()}
        return field.with_nullable(True).with_metadata({**(field.metadata or {}), **mark})
