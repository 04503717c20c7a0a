"""`drop_partition` and `mark_partition_done`: procedures on partitions that the caller names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.io import join
from lockgate.framework.store import Table
from lockgate.framework.store.maintenance import Partition, PartitionFiles
from lockgate.framework.store.schema.schema import load_json, now_millis
from lockgate.procedures.arguments import parse_selection
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, TableName, TypedProcedure

_SUCCESS = "_SUCCESS"


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    partitions: Annotated[
        str | None,
        "these partitions: `day=2026-01-01,hour=1;day=2026-01-02`; a column left out means all its values "
        "(default: none)",
    ] = None
    dry_run: DryRun = False
    where: Annotated[
        str | None,
        "those of which this condition is true: `day < DATE '2026-01-01'`. At least one of `partitions` and "
        "`where` is needed (default: none)",
    ] = None


@dataclass(frozen=True)
class DroppedPartitions:
    """What became of dropped partitions."""

    dropped_partitions_count: Annotated[int, "partitions"]
    dropped_data_files_count: Annotated[int, "their data files"]
    dropped_rows: Annotated[int, "their rows, not merged"]
    dropped_bytes: Annotated[int, "size of the files"]
    snapshot_id: Annotated[int | None, "the new snapshot; NULL if there was nothing to do"]


class DropPartition(TypedProcedure[_Arguments, DroppedPartitions]):
    """Remove all rows of partitions of a table."""

    name = "drop_partition"
    right = Action.DELETE

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[DroppedPartitions]:
        """Drop the partitions; those without rows count for nothing."""
        files = PartitionFiles.of(context.table(arguments.table))
        partitions = _selected(files, arguments)
        return [DroppedPartitions(*files.drop(partitions, dry_run=arguments.dry_run))]


@dataclass(frozen=True)
class _MarkPartitionDoneRow:
    marked_partitions_count: Annotated[int, "partitions with rows among those named"]
    created_files_count: Annotated[int, "those that had no mark before"]


class MarkPartitionDone(TypedProcedure[_Arguments, _MarkPartitionDoneRow]):
    """Mark partitions as complete, by a file _SUCCESS in their folders.

    A mark that is there keeps the time of its creation, as in Paimon's `SuccessFile`.
    """

    name = "mark_partition_done"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_MarkPartitionDoneRow]:
        """Mark the partitions; those without rows have no folder and are left out."""
        table = context.table(arguments.table)
        partitions = _selected(PartitionFiles.of(table), arguments)
        made = [_mark(table, each, dry_run=arguments.dry_run) for each in partitions]
        return [_MarkPartitionDoneRow(len(made), sum(made))]


def _selected(files: PartitionFiles, arguments: _Arguments) -> list[Partition]:
    partitions, where = arguments.partitions, arguments.where
    if not files.table.schema.partition_keys:
        raise InputError(f"table {files.table.identifier} has no partitions")
    if not (partitions or "").strip(" ;") and not (where or "").strip():
        raise InputError("name at least one partition: partitions 'day=2026-01-01', or a condition by where")
    return files.partitions(parse_selection(partitions, where, files.table.schema))


def _mark(table: Table, partition: Partition, *, dry_run: bool) -> bool:
    """Write or renew the mark of a partition; true if there was none."""
    path = join(table.location, table.paths.partition_path(partition), _SUCCESS)
    now = now_millis()
    try:
        created = load_json(table.file_system.read_bytes(path), path).get("creationTime", now)
    except FileNotFoundError:
        created = None
    if not dry_run:
        content = {"creationTime": created or now, "modificationTime": now}
        table.file_system.write_atomic(path, json.dumps(content).encode())
    return created is None
