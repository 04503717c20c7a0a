"""`migrate_table`: a table made of the files of another, or of a folder, which are adopted where possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from lockgate.errors import AlreadyExistsError
from lockgate.framework.options import ORC_INTEGRITY
from lockgate.framework.store import Schema
from lockgate.framework.store.ddl.validation import first_schema
from lockgate.procedures.arguments import parse_options
from lockgate.procedures.builtin.migrate.file_adoption import Inspected
from lockgate.procedures.builtin.migrate.migrated_by_spark import rewrite
from lockgate.procedures.builtin.migrate.migrated_encryption import encryption_options
from lockgate.procedures.builtin.migrate.migration import (
    MigrationCounts,
    Origin,
    adopt_all,
    delete_origin,
    divide,
    open_origin,
    table_keys,
)
from lockgate.procedures.builtin.migrate.migration_source import target_name
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import Int, TypedProcedure


@dataclass(frozen=True)
class MigrateTableArguments:
    """What to migrate, and how."""

    source_type: Annotated[
        str, "`spark` or `hive`: a table of Spark's session catalog; `orc`, `parquet` or `avro`: a folder"
    ]
    table: Annotated[str, "`database.table`, or the path of the folder"]
    options: Annotated[str | None, "options of the new table: `primary-key=id,bucket=4`"] = None
    delete_origin: Annotated[bool, "at the end, drop the source table or delete the folder's data files"] = (
        False
    )
    target_table: Annotated[
        str | None,
        "the new table; it must not exist, its database must (default: the source's database and name)",
    ] = None
    parallelism: Annotated[Int | None, "files inspected and adopted at a time (default: up to 8)"] = None
    dry_run: Annotated[bool, "only inspect the files and count"] = False
    source_keys: Annotated[
        str | None, "location of the source's keys: `file:/path/keys.json` (default: the lake's)"
    ] = None
    options_map: Annotated[
        dict[str, str] | None, "options of the new table as a map; none of them may be in `options` too"
    ] = None


class MigrateTable(TypedProcedure[MigrateTableArguments, MigrationCounts]):
    """Make a Lockgate table from a table of Spark's catalog or a folder of files.

    A file with exactly the columns that Lockgate would have written gets a second name in the new table (a
    hard link; a copy where there are none), with statistics from its footer. Others are rewritten: all of a
    table with primary key or buckets, and files with timestamps, which Spark stores in its own way.
    Files are opened strictly: a missing key raises KeyMissingError, a wrong one WrongKeyError, before the
    new table is created. It is encrypted and masked like the files, unless the options change that; files
    under keys that are not the catalog's are rewritten under those. The new table gets its rows in one
    snapshot; if anything fails it is dropped, and the source is as it was. A source is deleted only after its
    rows and those of the new files were compared.
    """

    name = "migrate_table"
    right = None
    needs_all_rows = False  # of the source: its rights are checked

    def run(self, context: ProcedureContext, arguments: MigrateTableArguments) -> list[MigrationCounts]:
        """Migrate; `rows` and `bytes` count the source, `files_written` counts the files that replace the
        rewritten ones.
        """
        kind, name, deletes = arguments.source_type, arguments.table, arguments.delete_origin
        options = parse_options(arguments.options, arguments.options_map)
        origin = open_origin(
            context,
            kind,
            name,
            deletes=deletes,
            keys=arguments.source_keys,
            parallelism=arguments.parallelism,
        )
        target = context.identifier(arguments.target_table or target_name(name))
        if context.catalog.table_exists(target):
            raise AlreadyExistsError(f"table {target!r} exists: give another target_table, or drop it first")
        schema = _schema(origin, options)
        first = first_schema(schema)
        division = divide(context, origin, first, table_keys(context, first), caller=self.name)
        if ORC_INTEGRITY.key not in options and not any(_untagged(each) for each in division.adopted):
            # Rewritten files get tags, and the table requires them, as any new table does.
            made = {key: text for key, text in schema.options.items() if key != ORC_INTEGRITY.key}
            schema = replace(schema, options=made)
        if arguments.dry_run:
            return [division.counts(None, None)]
        table = context.catalog.create_table(target, schema)
        try:
            rewritten = rewrite(context, origin.source, table, division.rewritten, origin.keys)
            messages = [*rewritten, *adopt_all(origin, table, division.adopted)]
            snapshot = table.commit(messages)
        except BaseException:
            context.catalog.drop_table(target)
            raise
        if deletes:
            delete_origin(context, origin, table, messages)
        return [division.counts(rewritten, snapshot.id)]


def _schema(origin: Origin, options: Mapping[str, str]) -> Schema:
    """Return the new table's schema; encrypted as the source is, unless the options say otherwise."""
    made = {**encryption_options(origin.inspected, options), **options}
    if any(_untagged(each) for each in origin.inspected):
        # Files of other writers have no tags, so a table that adopts them cannot require any.
        made.setdefault(ORC_INTEGRITY.key, "verify")
    return Schema(origin.source.fields, origin.source.partition_keys, options=made)


def _untagged(inspected: Inspected) -> bool:
    return bool(inspected.encryption) and not inspected.tagged
