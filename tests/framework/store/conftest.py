"""Warehouses, tables and made-up files for tests of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store import (
    Catalog,
    CommitMessage,
    DataFileMeta,
    FileSource,
    Schema,
    SimpleStats,
    Table,
)
from lockgate.framework.store.merge.merge import merge_tables
from lockgate.framework.store.pruning.split import by_bucket
from lockgate.framework.store.rows.row_conversion import file_schema
from lockgate.framework.store.scan.read import FileReader
from lockgate.framework.store.write.bucket_writer import BucketWriter

RawRows = Callable[..., pa.Table]
MakeTable = Callable[..., Table]
MakeMessage = Callable[..., CommitMessage]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def make_table(catalog: Catalog) -> MakeTable:
    """Create `db.<name>`; by default (id BIGINT, v STRING) without keys."""

    def make(
        name: str = "t",
        columns: dict[str, pa.DataType] | None = None,
        *,
        primary_keys: tuple[str, ...] = (),
        partition_keys: tuple[str, ...] = (),
        **options: str,
    ) -> Table:
        schema = pa.schema(list((columns or {"id": pa.int64(), "v": pa.string()}).items()))
        renamed = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
        return catalog.create_table(
            f"db.{name}",
            Schema.from_arrow(
                schema, primary_keys=primary_keys, partition_keys=partition_keys, options=renamed
            ),
        )

    return make


@pytest.fixture
def data_file() -> Callable[..., DataFileMeta]:
    """Describe a data file that need not exist, of a table with the key (or column) `id`."""

    def make(name: str, low: int = 0, high: int = 9, *, rows: int = 10, **fields: Any) -> DataFileMeta:
        stats = SimpleStats((low,), (high,), (0,))
        values: dict[str, Any] = {
            "value_stats": stats,
            "value_stats_cols": ("id",),
            "creation_time_millis": 1,
            **fields,
        }
        return DataFileMeta(name, 100, rows, **values)

    return make


@pytest.fixture
def key_file(data_file: Callable[..., DataFileMeta]) -> Callable[..., DataFileMeta]:
    """Describe a data file of a table with the primary key `id`."""

    def make(name: str, low: int = 0, high: int = 9, **fields: Any) -> DataFileMeta:
        stats = SimpleStats((low,), (high,), (0,))
        return data_file(name, low, high, min_key=(low,), max_key=(high,), key_stats=stats, **fields)

    return make


@pytest.fixture
def message() -> MakeMessage:
    """Make a message of files added to and deleted from one bucket."""

    def make(
        *added: DataFileMeta,
        deleted: tuple[DataFileMeta, ...] = (),
        partition: tuple[Any, ...] = (),
        bucket: int = 0,
        total_buckets: int = -1,
    ) -> CommitMessage:
        return CommitMessage(partition, bucket, total_buckets, added, deleted)

    return make


@pytest.fixture(scope="session")
def raw_rows() -> RawRows:
    """Read a data file as it is: unmerged, with the columns that files of key tables add."""

    def read(table: Table, file: DataFileMeta, partition: tuple[Any, ...] = (), bucket: int = 0) -> pa.Table:
        path = table.paths.data_file(partition, bucket, file)
        values = dict(zip(table.schema.partition_keys, partition, strict=True))
        reader = FileReader(table, table.schema, strict=True)
        return reader.whole(path, file, file_schema(table.schema).names, values)

    return read


@pytest.fixture(scope="session")
def compact(raw_rows: RawRows) -> Callable[[Table], None]:
    """Merge each bucket into one file of the highest level, as a full compaction does."""

    def run(table: Table) -> None:
        plan = table.scan().merge_plan
        assert plan is not None
        messages = []
        for entries in by_bucket(table.manifests.live_files(table.latest_snapshot())):
            where = (entries[0].partition, entries[0].bucket)
            parts = [raw_rows(table, entry.file, *where) for entry in entries]
            with BucketWriter(table, *where, level=5, file_source=FileSource.COMPACT) as writer:
                writer.write(merge_tables(plan, parts, ordered=True))
                added = writer.close()
            deleted = tuple(entry.file for entry in entries)
            messages.append(CommitMessage(*where, entries[0].total_buckets, added, deleted))
        if messages:
            table.commit(messages, kind="COMPACT")

    return run


@pytest.fixture
def live_names() -> Callable[[Table], list[str]]:
    """Return the names of a table's live files."""
    return lambda table: [
        entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())
    ]
