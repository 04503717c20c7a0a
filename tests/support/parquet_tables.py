"""Tables whose data files are Parquet, made of ORC tables: the same rows, statistics and levels."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.table import Table


def to_parquet(table: Table, *, row_group_rows: int = 1000, every: int = 1) -> None:
    """Commit each data file of a table again as Parquet; with `every` only each second, third, ... one."""
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    replaced: dict[Any, list[tuple[DataFileMeta, DataFileMeta]]] = defaultdict(list)
    live = table.manifests.live_files(snapshot)
    entries = [entry for entry in live if entry.file.file_name.endswith(".orc")]
    for entry in entries[::every]:
        path = Path(table.paths.data_file(entry.partition, entry.bucket, entry.file))
        target = path.with_suffix(".parquet")
        with EncryptedOrcFile((table.file_system, str(path)), keys=table.keys, name=str(path)) as source:
            rows = source.read()
        declared = {field.name: field.type for field in table.schema.arrow_schema}
        schema = pa.schema([(field.name, declared.get(field.name, field.type)) for field in rows.schema])
        pq.write_table(rows.cast(schema), target, row_group_size=row_group_rows)
        file = dataclasses.replace(entry.file, file_name=target.name, file_size=target.stat().st_size)
        replaced[entry.partition, entry.bucket, entry.total_buckets].append((entry.file, file))
    messages = [
        CommitMessage(
            partition,
            bucket,
            buckets,
            added=tuple(new for _, new in files),
            deleted=tuple(old for old, _ in files),
        )
        for (partition, bucket, buckets), files in replaced.items()
    ]
    table.commit(messages, kind="COMPACT")
