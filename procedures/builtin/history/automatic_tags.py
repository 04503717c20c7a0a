"""`trigger_tag_automatic_creation`: a tag for the end of each hour, day or other period.

Source: Paimon's `TagAutoCreation` and `TagPeriodHandler`, whose names and choices of snapshots these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lockgate.framework import options as tag_options
from lockgate.framework.store.history import create_tag, delete_tags, new_tag, planned_tags
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import TableName, TypedProcedure


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    dry_run: Annotated[bool, "only say what would be done"] = False


@dataclass(frozen=True)
class _Row:
    created_tags_count: Annotated[int, "tags"]
    created_tags: Annotated[str, "their names, separated by commas, oldest first"]
    deleted_tags_count: Annotated[int, "tags beyond the number that stays"]
    deleted_tags: Annotated[str, "their names, separated by commas"]
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_manifests_count: Annotated[int, "manifests, manifest lists and other metadata"]
    deleted_bytes: Annotated[int, "their size on disk"]


class TriggerTagAutomaticCreation(TypedProcedure[_Arguments, _Row]):
    """Create the tags of the days, hours or other periods that are over.

    What is due follows from the snapshots that are there and from the options `tag.*`, so that it can be
    called at any time and again after it was killed. Tags that somebody named otherwise are left alone.
    """

    name = "trigger_tag_automatic_creation"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Create and delete; InputError if the table's options do not ask for tags by time."""
        table = context.table(arguments.table)
        options, plan = table.schema.table_options, planned_tags(table)
        dry_run, created = arguments.dry_run, [name for name, _ in plan.created]
        if not dry_run:
            for name, snapshot in plan.created:
                retained = options.get_option(tag_options.TAG_TIME_RETAINED)
                create_tag(table, new_tag(table, name, snapshot.id, retained))
        # A dry run has not created those that would go again at once.
        gone = [name for name in plan.deleted if not (dry_run and name in created)]
        released = delete_tags(table, gone, dry_run=dry_run)
        counts = (released.data_files, released.manifests, released.bytes)
        return [_Row(len(created), ",".join(created), len(plan.deleted), ",".join(plan.deleted), *counts)]
