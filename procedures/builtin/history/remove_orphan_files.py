"""`remove_orphan_files`: removal of files that killed writers left, once they are old enough."""

from __future__ import annotations

import os
from typing import Any

from lockgate.framework.store.history.orphans import remove_orphan_files
from lockgate.framework.types import micros_of
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext


class RemoveOrphanFiles(Procedure):
    """Deletes files in a table's folder that no snapshot, tag or branch refers to.

    A writer's files are unreferenced before it commits, so only files older than a day are deleted. Data is
    only deleted, never read, so no key is needed. If killed halfway, it can be called again.
    """

    name = "remove_orphan_files"
    description = "Delete old files of a table that no snapshot, tag or branch refers to."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("older_than", "TIMESTAMP", None, "delete files older than this (default: a day ago)"),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be deleted"),
        Parameter("parallelism", "INT", None, "files deleted at a time (default: up to 8)"),
        Parameter(
            "allow_recent",
            "BOOLEAN",
            False,
            "accept an older_than of less than a day ago, because nothing is writing to the table",
        ),
    )
    result = (
        ("deleted_data_files_count", "BIGINT"),
        ("deleted_other_files_count", "BIGINT"),
        ("deleted_bytes", "BIGINT"),
        ("young_files_count", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Clean; InputError for a time that is not safely in the past."""
        older_than, parallelism = arguments["older_than"], arguments["parallelism"]
        done = remove_orphan_files(
            context.table(arguments["table"]),
            older_than_millis=None if older_than is None else micros_of(older_than) // 1000,
            allow_recent=arguments["allow_recent"],
            parallelism=min(8, os.cpu_count() or 1) if parallelism is None else parallelism,
            dry_run=arguments["dry_run"],
        )
        return [(done.data_files, done.other_files, done.bytes, done.young_files)]
