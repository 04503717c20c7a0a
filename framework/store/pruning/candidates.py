"""Data files as plugins see them: one by one, or all of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockgate.framework.plugins import CandidateFile
from lockgate.framework.store.manifests.file_table import FileTable, Numbers
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.schema.schema import TableSchema

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def candidate_of(
    table: TableHandle,
    schema: TableSchema,
    partition: Sequence[Any],
    bucket: int,
    file: DataFileMeta,
    index_manifest: str | None = None,
) -> CandidateFile:
    """Return a file of a table that is read as `schema`; `partition` are values in order.

    `index_manifest` is that of the snapshot that is read.
    """
    return CandidateFile(
        path=table.paths.data_file(partition, bucket, file),
        partition=dict(zip(schema.partition_keys, partition, strict=True)),
        bucket=bucket,
        rows=file.row_count,
        size=file.file_size,
        schema_id=file.schema_id,
        extra_files=file.extra_files,
        embedded_index=file.embedded_index,
        read_schema_id=schema.id,
        index_manifest=index_manifest,
    )


@dataclass(frozen=True)
class CandidateFiles:
    """The files of a snapshot as a `SetPruner` sees them."""

    files: FileTable
    index_manifest: str | None
    read_schema_id: int

    def __len__(self) -> int:
        return len(self.files)

    def positions(self, key: str, number_of: Callable[[str], int | None]) -> tuple[Numbers, Numbers]:
        """Return the positions of files by name, and their numbers."""
        return self.files.positions(key, number_of)
