"""Data files as plugins see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lockgate.framework.plugins import CandidateFile
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.schema.schema import TableSchema

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def candidate_of(
    table: TableHandle, schema: TableSchema, partition: Sequence[Any], bucket: int, file: DataFileMeta
) -> CandidateFile:
    """Return a file of a table that is read as `schema`; `partition` are values in order."""
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
    )
