"""`drop_partition` and `mark_partition_done`: procedures on partitions that the caller names."""

from __future__ import annotations

import json
from typing import Any

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.io import join
from lockgate.framework.store import Table
from lockgate.framework.store.maintenance import DROPPED, Partition, PartitionFiles
from lockgate.framework.store.schema.schema import load_json, now_millis
from lockgate.procedures.arguments import parse_selection
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_TABLE = Parameter("table", "STRING", doc="the table, 'database.table'")
_PARTITIONS = Parameter(
    "partitions", "STRING", None, "these partitions: 'day=2026-01-01,hour=1;day=2026-01-02'"
)
_WHERE = Parameter(
    "where", "STRING", None, "those of which this condition is true: \"day < DATE '2026-01-01'\""
)
_SUCCESS = "_SUCCESS"


class DropPartition(Procedure):
    """Removes all rows of partitions in one snapshot; no file is read, so no key is needed."""

    name = "drop_partition"
    right = Action.DELETE
    description = "Remove all rows of partitions of a table."
    parameters = (
        _TABLE,
        _PARTITIONS,
        Parameter("dry_run", "BOOLEAN", False, "only count what would be removed"),
        _WHERE,
    )
    result = DROPPED

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Drop the partitions; those without rows count for nothing."""
        files = PartitionFiles.of(context.table(arguments["table"]))
        partitions = _selected(files, arguments)
        return [files.drop(partitions, dry_run=arguments["dry_run"])]


class MarkPartitionDone(Procedure):
    """Writes a file `_SUCCESS` into the folders of partitions, to say that they are complete.

    A mark that is there keeps the time of its creation, as in Paimon's `SuccessFile`.
    """

    name = "mark_partition_done"
    description = "Mark partitions as complete, by a file _SUCCESS in their folders."
    parameters = (
        _TABLE,
        _PARTITIONS,
        Parameter("dry_run", "BOOLEAN", False, "only count the partitions"),
        _WHERE,
    )
    result = (("marked_partitions_count", "BIGINT"), ("created_files_count", "BIGINT"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Mark the partitions; those without rows have no folder and are left out."""
        table = context.table(arguments["table"])
        partitions = _selected(PartitionFiles.of(table), arguments)
        made = [_mark(table, each, dry_run=arguments["dry_run"]) for each in partitions]
        return [(len(made), sum(made))]


def _selected(files: PartitionFiles, arguments: dict[str, Any]) -> list[Partition]:
    partitions, where = arguments["partitions"], arguments["where"]
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
