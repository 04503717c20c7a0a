"""`rewrite_file_index`: gives data files the indexes that the table's current options require."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError
from lockgate.framework.index.file_index_collector import IndexCollector
from lockgate.framework.index.file_index_reader import FileIndexes
from lockgate.framework.store import (
    CommitKind,
    CommitMessage,
    DataFileMeta,
    FileReader,
    ManifestEntry,
    Table,
    TableSchema,
    WantedIndex,
    candidate_of,
    check_writable,
    wanted_indexes,
)
from lockgate.procedures import ProcedureContext, TableName, TypedProcedure, Where, parse_where


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    dry_run: Annotated[bool, "only count the files"] = False
    where: Where = None


@dataclass(frozen=True)
class _Row:
    rewritten_files_count: Annotated[int, "files with other indexes"]
    rewritten_indexes_count: Annotated[int, "indexes written"]
    skipped_files_count: Annotated[int, "files with rows that deletion vectors mark: they keep their indexes"]


class RewriteFileIndex(TypedProcedure[_Arguments, _Row]):
    """Give data files the indexes that the table's current options require.

    Source: Paimon's procedure of this name.
    """

    name = "rewrite_file_index"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Rewrite; files whose rows are marked as deleted are skipped, and counted."""
        table = context.table(arguments.table)
        if not wanted_indexes(table.schema.options):
            raise InputError(f"table {table.identifier} has no option 'file-index.<kind>.columns'")
        where = parse_where(arguments.where, table.schema)
        lacking = [(entry, collector) for entry, collector in _lacking(table) if where(entry.partition)]
        fitting = [(entry, collector) for entry, collector in lacking if entry.vector is None]
        if fitting and not arguments.dry_run:
            check_writable(table.schema)
            _rewrite(table, fitting)
        indexes = sum(len(collector.indexes) for _, collector in fitting)
        return [_Row(len(fitting), indexes, len(lacking) - len(fitting))]


def _rewrite(table: Table, fitting: list[tuple[ManifestEntry, IndexCollector]]) -> None:
    messages = [
        CommitMessage.indexing(table, entry, _made(table, entry, collector)) for entry, collector in fitting
    ]
    table.commit(messages, kind=CommitKind.COMPACT)


def _lacking(table: Table) -> Iterator[tuple[ManifestEntry, IndexCollector]]:
    """Return files that lack an index, each with what makes all that it should have."""
    wanted, indexes = wanted_indexes(table.schema.options), FileIndexes(table)
    for entry in table.manifests.live_files(table.latest_snapshot()):
        written = table.schema_of(entry.file.schema_id)
        collector = IndexCollector(
            written, [each for one in wanted for each in _then(table.schema, written, one)]
        )
        file = candidate_of(table, table.schema, entry.partition, entry.bucket, entry.file)
        found, _ = indexes.container(file)
        if any(each.kind not in found.get(each.name, {}) for each in collector.indexes):
            yield entry, collector


def _then(now: TableSchema, written: TableSchema, wanted: WantedIndex) -> Iterator[WantedIndex]:
    """Return an index with the name that its column had when a file was written; none if there was none."""
    if wanted.column not in now.field_names:
        return
    number = now.field(wanted.column).id
    for field in written.fields:
        if field.id == number:
            name = field.name if wanted.key is None else f"{field.name}[{wanted.key}]"
            yield WantedIndex(name, field.name, wanted.key, wanted.kind, wanted.parameters)


def _made(table: Table, entry: ManifestEntry, collector: IndexCollector) -> bytes:
    file: DataFileMeta = entry.file
    path = table.paths.data_file(entry.partition, entry.bucket, file)
    partition = dict(zip(table.schema.partition_keys, entry.partition, strict=True))
    collection = collector.begin()
    reader = FileReader(table, collector.schema, strict=True)
    for part in reader.parts(path, file, collector.columns, partition):
        collection.add(part)
    return collection.finish()
