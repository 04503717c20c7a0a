"""Declared lineage: sources that a program declares for columns whose origin no plan shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import ColumnNotFoundError, InputError, nearest
from lockgate.framework.lineage.model.names import joined, split_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The key of a column's metadata that the connector reads.
METADATA = "lockgate.lineage"


@checked_arguments
def declare(rows: DataFrame, columns: Mapping[str, Sequence[str]]) -> DataFrame:
    """Return the rows with declared sources of columns: `{"zip": ["lake.hr.people.address"]}`.

    A source is `catalog.database.table.column`, or `path#column` of files. Raises ColumnNotFoundError for a
    column that `rows` does not have, InputError for a malformed source.
    """
    for name, sources in columns.items():
        if name not in rows.columns:
            raise ColumnNotFoundError(f"the rows have no column {name!r}{nearest(name, rows.columns)}")
        same = rows["`" + name.replace("`", "``") + "`"]
        rows = rows.withColumn(name, same.alias(name, metadata={METADATA: metadata(sources)}))
    return rows


def metadata(sources: Sequence[str]) -> str:
    """Return the metadata value of a column with these sources."""
    return json.dumps([_source(text) for text in sources])


def _source(text: str) -> tuple[str, list[str]]:
    """Return the dataset, and the path of the column through structs."""
    path, mark, column = text.rpartition("#")
    if mark and path and column:
        parts = split_name(column)[0] if "`" in column else column.split(".")
        if all(parts):
            return path, parts
    else:
        parts, _ = split_name(text)
        if len(parts) > 3:
            return joined(parts[:3]), parts[3:]
    raise InputError(f"a source is catalog.database.table.column or path#column, not {text!r}")
