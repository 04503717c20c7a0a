"""The system table `t$file_indexes`: each index of each data file of the newest snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from lockgate.framework.index.file_index_reader import FileIndexes, index_path
from lockgate.framework.plugins import BridgeContext
from lockgate.framework.store import Table, candidate_of
from lockgate.framework.types import BIGINT, STRING, DataField, arrow_schema

_COLUMNS = (
    ("partition", STRING),
    ("bucket", BIGINT),
    ("file_name", STRING),
    ("column_name", STRING),
    ("index_type", STRING),
    ("index_size_in_bytes", BIGINT),
    ("index_file", STRING),
)


class FileIndexTable:
    """The indexes by file, column and kind; `index_file` is null for indexes in manifests."""

    def schema(self, context: BridgeContext, table: Table) -> list[DataField]:
        """Return the columns."""
        return [DataField(number, name, kind) for number, (name, kind) in enumerate(_COLUMNS)]

    def rows(
        self,
        context: BridgeContext,
        table: Table,
        options: Mapping[str, str],
        properties: Mapping[str, str | None],
    ) -> pa.Table:
        """Return the rows; reads the index files."""
        rows = list(_rows(table))
        columns = list(zip(*rows, strict=True)) or [()] * len(_COLUMNS)
        schema = arrow_schema(self.schema(context, table))
        return pa.table(
            [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema
        )


def _rows(table: Table) -> Iterator[tuple[Any, ...]]:
    indexes = FileIndexes(table)
    for entry in table.manifests.live_files(table.latest_snapshot()):
        file = candidate_of(table, table.schema, entry.partition, entry.bucket, entry.file)
        container, _ = indexes.container(file)
        path = index_path(file) if entry.file.embedded_index is None else None
        location = (table.paths.partition_path(entry.partition), entry.bucket, entry.file.file_name)
        for column, kinds in container.items():
            for kind, data in kinds.items():
                yield (*location, column, kind, len(data or b""), path and path.rpartition("/")[2])
