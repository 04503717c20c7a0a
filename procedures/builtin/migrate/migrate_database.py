"""`migrate_database`: `migrate_table` for the tables of a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from lockgate.errors import InputError, LockgateError, NotFoundError, nearest
from lockgate.framework.access import Action, Target
from lockgate.framework.plugins import authorize, plugins
from lockgate.framework.spark import SESSION_CATALOG
from lockgate.procedures.arguments import parse_options, parse_pattern
from lockgate.procedures.builtin.migrate.migrate_table import MigrateTable, MigrateTableArguments
from lockgate.procedures.builtin.migrate.migration import MigrationCounts
from lockgate.procedures.builtin.migrate.migration_source import CATALOG_TYPES
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import Int, TypedProcedure

_VIEW = "VIEW"
_LISTED = 20


@dataclass(frozen=True)
class _Arguments:
    source_type: Annotated[str, "`spark` or `hive`"]
    database: Annotated[str, "the database of Spark's session catalog"]
    options: Annotated[str | None, "options of all new tables: `file.format=parquet,bucket=4`"] = None
    options_map: Annotated[
        dict[str, str] | None, "the same as a map; none of them may be in `options` too"
    ] = None
    parallelism: Annotated[Int | None, "files inspected and adopted at a time (default: up to 8)"] = None
    target_database: Annotated[str | None, "where the new tables are made (default: the source's name)"] = (
        None
    )
    including_tables: Annotated[
        str | None, "tables whose whole names match this regular expression (default: all)"
    ] = None
    excluding_tables: Annotated[str | None, "tables to leave out although they match (default: none)"] = None
    delete_origin: Annotated[bool, "drop each source table once it is migrated"] = False
    dry_run: Annotated[bool, "only inspect the files and count"] = False
    source_keys: Annotated[str | None, "location of the sources' keys (default: the lake's)"] = None


@dataclass(frozen=True)
class _Row:
    tables: Annotated[Int, "tables that match"]
    migrated_tables: Annotated[Int, "those with a new table, and those that could not be migrated"]
    failed_tables: Int
    files_adopted: Annotated[int, "files of the sources"]
    files_rewritten: int
    rows: Annotated[int, "of the sources"]
    bytes: int
    failures: Annotated[
        str | None, "the tables that could not be migrated, with the reasons; NULL if there are none"
    ]


class MigrateDatabase(TypedProcedure[_Arguments, _Row]):
    """Make Lockgate tables from the tables of a database of Spark's catalog.

    Where policies decide, its names take SELECT on the database, and each table what `migrate_table` takes.

    Each new table has a snapshot of its own. A table that cannot be migrated is reported and counted, and the
    others are migrated all the same; a second call migrates what is left. Views are left out.
    Source: Paimon's `MigrateDatabaseProcedure`.
    """

    name = "migrate_database"
    right = None  # each migration checks its own
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Migrate; `failures` names the tables that were left, with the reason of each."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        kind = arguments.source_type.lower()
        if kind not in CATALOG_TYPES:
            raise InputError(
                f"source_type cannot be {arguments.source_type!r}{nearest(kind, CATALOG_TYPES)}: folders "
                "become tables by migrate_table, one by one"
            )
        parse_options(arguments.options, arguments.options_map)
        database = arguments.database.strip("`").removeprefix("spark_catalog.")
        spark = context.require_spark(f"migrating the database {database!r} of Spark's catalog")
        if plugins().decides_access():
            authorize(Action.SELECT, Target("database", database, catalog=SESSION_CATALOG))
        names = _names(spark, database, arguments)
        target = (arguments.target_database or database).strip("`")
        if not context.catalog.namespace_exists(target) and not arguments.dry_run:
            context.catalog.create_namespace(target)
        done: list[MigrationCounts] = []
        failures = []
        for name in names:
            request = MigrateTableArguments(
                kind,
                f"{database}.{name}",
                arguments.options,
                arguments.delete_origin,
                f"{target}.{name}",
                arguments.parallelism,
                arguments.dry_run,
                arguments.source_keys,
                arguments.options_map,
            )
            try:
                done += MigrateTable().run(context, request)
            except (LockgateError, PySparkException, Py4JError) as error:
                # Texts of Spark's errors may hold values of the rows.
                why = str(error) if isinstance(error, LockgateError) else f"{type(error).__name__} in Spark"
                context.report(f"migrate_database: {database}.{name} was left: {why}")
                failures.append(f"{database}.{name}: {why}")
        return [
            _Row(
                len(names),
                len(done),
                len(failures),
                sum(row.files_adopted for row in done),
                sum(row.files_rewritten for row in done),
                sum(row.rows for row in done),
                sum(row.bytes for row in done),
                _shown(failures),
            )
        ]


def _names(spark: Any, database: str, arguments: _Arguments) -> list[str]:
    """Return the matching tables of a database, sorted; NotFoundError if there is no such database."""
    including = parse_pattern("including_tables", arguments.including_tables, ".*")
    excluding = parse_pattern("excluding_tables", arguments.excluding_tables, "(?!)")
    # The session catalog itself: the current catalog may be another one.
    catalog = spark._jsparkSession.sessionState().catalog()
    if not catalog.databaseExists(database):
        databases = list(catalog.listDatabases().mkString("\n").split("\n"))
        raise NotFoundError(
            f"there is no database {database!r} in Spark's catalog{nearest(database, databases)}"
        )
    found = catalog.listTables(database, "*", False)
    identifiers = [found.apply(index) for index in range(found.size())]
    return sorted(
        each.table()
        for each in identifiers
        if including.fullmatch(each.table())
        and not excluding.fullmatch(each.table())
        and str(catalog.getTableMetadata(each).tableType().name()) != _VIEW
    )


def _shown(failures: list[str]) -> str | None:
    more = len(failures) - _LISTED
    return "; ".join([*failures[:_LISTED], *([f"and {more} more"] if more > 0 else [])]) or None
