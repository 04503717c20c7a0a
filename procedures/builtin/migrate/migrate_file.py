"""`migrate_file`: the rows of another table, or of a folder, added to a table that exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.io import FileSystem, resolve
from lockgate.framework.store import Table, check_writable, grant
from lockgate.procedures.builtin.migrate.fit import why_nulls
from lockgate.procedures.builtin.migrate.migrated_by_spark import rewrite_into
from lockgate.procedures.builtin.migrate.migrated_encryption import check_nothing_is_revealed
from lockgate.procedures.builtin.migrate.migration import (
    MigrationCounts,
    adopt_all,
    delete_origin,
    divide,
    open_origin,
    table_keys,
)
from lockgate.procedures.builtin.migrate.migration_source import is_folder
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import Int, TypedProcedure


@dataclass(frozen=True)
class _Arguments:
    source_type: Annotated[
        str, "`spark` or `hive`: a table of Spark's session catalog; `orc`, `parquet` or `avro`: a folder"
    ]
    source_table: Annotated[str, "`database.table`, or the path of the folder"]
    target_table: Annotated[str, "the table that gets the rows"]
    delete_origin: Annotated[bool, "at the end, drop the source table or delete the folder's data files"] = (
        False
    )
    parallelism: Annotated[Int | None, "files inspected and adopted at a time (default: up to 8)"] = None
    dry_run: Annotated[bool, "only inspect the files and count"] = False
    source_keys: Annotated[
        str | None, "location of the source's keys: `file:/path/keys.json` (default: the lake's)"
    ] = None


class MigrateFile(TypedProcedure[_Arguments, MigrationCounts]):
    """Add the files of a table of Spark's catalog or of a folder to a table that exists.

    As in `migrate_table`, a file with the columns of the table, its encryption and its tags gets a second
    name; others are rewritten, as are all in a table with primary key or buckets. Nothing tells a source that
    was added before: a second call adds its rows again. If anything fails, the table stays as it was.
    Source: Paimon's `MigrateFileProcedure`.
    """

    name = "migrate_file"
    right = None  # a source is read, and a target written
    needs_all_rows = False  # of the source: its rights are checked

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[MigrationCounts]:
        """Add the rows; InputError if the table does not hold all values of the source's columns,
        or has other partitions.
        """
        kind, name, deletes = arguments.source_type, arguments.source_table, arguments.delete_origin
        table = context.table(arguments.target_table)
        grant(table, Action.INSERT)
        check_writable(table.schema)
        if is_folder(kind, name):
            _check_apart(table, *resolve(name, context.catalog.file_system_options))
        origin = open_origin(
            context,
            kind,
            name,
            deletes=deletes,
            keys=arguments.source_keys,
            parallelism=arguments.parallelism,
            into=table.schema,
        )
        check_nothing_is_revealed(origin.inspected, table.schema)
        held = table_keys(context, table.schema)
        division = divide(
            context,
            origin,
            table.schema,
            held,
            caller=self.name,
            why=lambda inspected: why_nulls(inspected, table.schema),
        )
        if arguments.dry_run:
            return [division.counts(None, None)]
        rewritten = rewrite_into(context, origin.source, table, division.rewritten, origin.keys)
        try:
            adopted = adopt_all(origin, table, division.adopted)
        except BaseException:
            table.abort(rewritten)
            raise
        messages = [*rewritten, *adopted]
        snapshot_id = None
        if messages:
            try:
                snapshot_id = table.commit(messages).id
            except BaseException:
                table.abort(messages)
                raise
        if deletes:
            delete_origin(context, origin, table, messages)
        return [division.counts(rewritten, snapshot_id)]


def _check_apart(table: Table, file_system: FileSystem, folder: str) -> None:
    """Refuse a folder of the table itself, whose rows would be added a second time."""
    own, given = (table.file_system, table.location), (file_system, folder)
    location, source = (f"{system.uri(path).rstrip('/')}/" for system, path in (own, given))
    if source.startswith(location) or location.startswith(source):
        raise InputError(f"{folder} holds files of the table {table.identifier} itself")
