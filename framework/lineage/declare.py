"""Declared lineage: a program's own statement about columns whose origin no plan shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lockgate.errors import ColumnNotFoundError, InputError, nearest
from lockgate.framework.lineage.model.names import joined, split_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The key of a column's metadata that the connector reads.
METADATA = "lockgate.lineage"


def declare(rows: DataFrame, columns: Mapping[str, Sequence[str]]) -> DataFrame:
    """Return the same rows, with the sources of some columns: `{"zip": ["lake.hr.people.address"]}`.

    A source is `catalog.database.table.column`, or `path#column` of files. Raises ColumnNotFoundError for a
    column that `rows` does not have, InputError for a source that is no such name.
    """
    for name, sources in columns.items():
        if name not in rows.columns:
            raise ColumnNotFoundError(f"the rows have no column {name!r}{nearest(name, rows.columns)}")
        rows = rows.withMetadata(name, {METADATA: metadata(sources)})
    return rows


def metadata(sources: Sequence[str]) -> str:
    """Return what stands in a column's metadata for its sources."""
    return json.dumps([_source(text) for text in sources])


def _source(text: str) -> tuple[str, str]:
    path, mark, column = text.rpartition("#")
    if mark and path and column:
        return path, ".".join(split_name(column)[0]) if "`" in column else column
    parts, _ = split_name(text)
    if len(parts) < 4:
        raise InputError(f"a source is catalog.database.table.column or path#column, not {text!r}")
    return joined(parts[:3]), ".".join(parts[3:])
