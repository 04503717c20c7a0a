"""`remove_orphan_files`: removal of files that killed writers left, once they are old enough."""

from __future__ import annotations

import os
from typing import Any

from lockgate.errors import InputError, LockgateError, ProcedureError
from lockgate.framework.access import Action
from lockgate.framework.store.maintenance import OrphanResult, remove_orphan_files
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
        Parameter("table", "STRING", doc="the table, 'database.table'; 'database.*': all its tables"),
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
    right = None  # of all tables of a database, each is asked about on its own
    needs_all_rows = False
    result = (
        ("deleted_data_files_count", "BIGINT"),
        ("deleted_other_files_count", "BIGINT"),
        ("deleted_bytes", "BIGINT"),
        ("young_files_count", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Clean; InputError for a time that is not safely in the past.

        Of a database, a table that cannot be cleaned stays as it is, and the error at the end names it, after
        the others are cleaned.
        """
        older_than, parallelism = arguments["older_than"], arguments["parallelism"]
        every, failures = OrphanResult(), list[str]()
        names = _names(context, arguments["table"])
        for name in names:
            try:
                context.require(Action.ALTER, name)
                context.require_all_rows(name)
                done = remove_orphan_files(
                    context.table(name),
                    older_than_millis=None if older_than is None else micros_of(older_than) // 1000,
                    allow_recent=arguments["allow_recent"],
                    parallelism=min(8, os.cpu_count() or 1) if parallelism is None else parallelism,
                    dry_run=arguments["dry_run"],
                )
            except LockgateError as error:
                if names == [arguments["table"]] or isinstance(error, InputError):
                    raise
                context.report(f"{name} is not cleaned: {error}")
                failures.append(f"{name}: {error}")
                continue
            every = OrphanResult(
                *(one + other for one, other in zip(_counts(every), _counts(done), strict=True))
            )
        if failures:
            raise ProcedureError(
                f"{len(failures)} of {len(names)} tables are not cleaned, the others are: "
                f"{'; '.join(failures)}"
            )
        return [_counts(every)]


def _names(context: ProcedureContext, name: str) -> list[str]:
    database, dot, table = name.rpartition(".")
    if not dot or table.strip("`") != "*":
        return [name]
    namespace = context.identifier(f"{database}.t").rpartition(".")[0]
    return [f"{namespace}.{each}" for each in context.catalog.list_tables(namespace)]


def _counts(result: OrphanResult) -> tuple[int, int, int, int]:
    return result.data_files, result.other_files, result.bytes, result.young_files
