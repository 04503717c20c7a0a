"""`remove_orphan_files`: removal of files that killed writers left, once they are old enough."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError, LockgateError, ProcedureError
from lockgate.framework.access import Action
from lockgate.framework.store.maintenance import OrphanResult, remove_orphan_files
from lockgate.framework.types import micros_of
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, Int, TypedProcedure


@dataclass(frozen=True)
class _Arguments:
    table: Annotated[str, "the table; `database.*`: all its tables"]
    older_than: Annotated[datetime.datetime | None, "delete files older than this (default: a day ago)"] = (
        None
    )
    dry_run: DryRun = False
    parallelism: Annotated[Int | None, "files deleted at a time (default: up to 8)"] = None
    allow_recent: Annotated[
        bool, "accept an `older_than` of less than a day ago, because nothing is writing to the table"
    ] = False


@dataclass(frozen=True)
class _Row:
    deleted_data_files_count: Annotated[int, "files in the folders of buckets"]
    deleted_other_files_count: Annotated[int, "manifests and other metadata"]
    deleted_bytes: Annotated[int, "their size on disk"]
    young_files_count: Annotated[int, "unreferenced files that are not old enough"]


class RemoveOrphanFiles(TypedProcedure[_Arguments, _Row]):
    """Delete old files of a table that no snapshot, tag or branch refers to.

    A writer's files are unreferenced before it commits, so only files older than a day are deleted. Data is
    only deleted, never read, so no key is needed. If killed halfway, it can be called again.
    """

    name = "remove_orphan_files"
    right = None  # of all tables of a database, each is asked about on its own
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Clean; InputError for a time that is not safely in the past.

        Of a database, a table that cannot be cleaned stays as it is, and the error at the end names it, after
        the others are cleaned.
        """
        older_than, parallelism = arguments.older_than, arguments.parallelism
        every, failures = OrphanResult(), list[str]()
        names = _names(context, arguments.table)
        for name in names:
            try:
                context.require(Action.ALTER, name)
                context.require_all_rows(name)
                done = remove_orphan_files(
                    context.table(name),
                    older_than_millis=None if older_than is None else micros_of(older_than) // 1000,
                    allow_recent=arguments.allow_recent,
                    parallelism=min(8, os.cpu_count() or 1) if parallelism is None else parallelism,
                    dry_run=arguments.dry_run,
                )
            except LockgateError as error:
                if names == [arguments.table] or isinstance(error, InputError):
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
        return [_Row(*_counts(every))]


def _names(context: ProcedureContext, name: str) -> list[str]:
    database, dot, table = name.rpartition(".")
    if not dot or table.strip("`") != "*":
        return [name]
    namespace = context.identifier(f"{database}.t").rpartition(".")[0]
    return [f"{namespace}.{each}" for each in context.catalog.list_tables(namespace)]


def _counts(result: OrphanResult) -> tuple[int, int, int, int]:
    return result.data_files, result.other_files, result.bytes, result.young_files
