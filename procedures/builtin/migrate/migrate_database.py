"""`migrate_database`: `migrate_table` for the tables of a database."""

from __future__ import annotations

from typing import Any

from lockgate.errors import InputError, LockgateError, NotFoundError, nearest
from lockgate.framework.access import Action, Target
from lockgate.framework.plugins import authorize, plugins
from lockgate.framework.spark import SESSION_CATALOG
from lockgate.procedures.arguments import OPTIONS_MAP, parse_options, parse_pattern
from lockgate.procedures.builtin.migrate.migrate_table import MigrateTable
from lockgate.procedures.builtin.migrate.migration_source import CATALOG_TYPES
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_VIEW = "VIEW"
_LISTED = 20


class MigrateDatabase(Procedure):
    """Migrates every table of a database of Spark's catalog whose name matches, one after the other.

    Where policies decide, its names take SELECT on the database, and each table what `migrate_table` takes.

    Each new table has a snapshot of its own. A table that cannot be migrated is reported and counted, and the
    others are migrated all the same; a second call migrates what is left. Views are left out.
    Source: Paimon's `MigrateDatabaseProcedure`.
    """

    name = "migrate_database"
    right = None  # each migration checks its own
    needs_all_rows = False
    description = "Make Lockgate tables from the tables of a database of Spark's catalog."
    parameters = (
        Parameter("source_type", "STRING", doc="'spark' or 'hive'"),
        Parameter("database", "STRING", doc="the database of Spark's catalog"),
        Parameter("options", "STRING", None, "options of the new tables: 'file.format=parquet,bucket=4'"),
        Parameter("options_map", "MAP<STRING,STRING>", None, OPTIONS_MAP),
        Parameter("parallelism", "INT", None, "files inspected and adopted at a time (default: up to 8)"),
        Parameter("target_database", "STRING", None, "the new tables' database (default: of the same name)"),
        Parameter("including_tables", "STRING", None, "pattern of names of tables (default: all)"),
        Parameter("excluding_tables", "STRING", None, "pattern of names of tables to leave (default: none)"),
        Parameter("delete_origin", "BOOLEAN", False, "drop each source table once it is migrated"),
        Parameter("dry_run", "BOOLEAN", False, "only inspect the files and count what would be done"),
        Parameter("source_keys", "STRING", None, "where the sources' keys are (default: as the catalog's)"),
    )
    result = (
        ("tables", "INT"),
        ("migrated_tables", "INT"),
        ("failed_tables", "INT"),
        ("files_adopted", "BIGINT"),
        ("files_rewritten", "BIGINT"),
        ("rows", "BIGINT"),
        ("bytes", "BIGINT"),
        ("failures", "STRING"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Migrate; `failures` names the tables that were left, with the reason of each."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        kind = arguments["source_type"].lower()
        if kind not in CATALOG_TYPES:
            raise InputError(
                f"source_type cannot be {arguments['source_type']!r}{nearest(kind, CATALOG_TYPES)}: folders "
                "become tables by migrate_table, one by one"
            )
        parse_options(arguments["options"], arguments["options_map"])
        database = arguments["database"].strip("`").removeprefix("spark_catalog.")
        spark = context.require_spark(f"migrating the database {database!r} of Spark's catalog")
        if plugins().decides_access():
            authorize(Action.SELECT, Target("database", database, catalog=SESSION_CATALOG))
        names = _names(spark, database, arguments)
        target = (arguments["target_database"] or database).strip("`")
        if not context.catalog.namespace_exists(target) and not arguments["dry_run"]:
            context.catalog.create_namespace(target)
        given = {each.name: arguments.get(each.name) for each in MigrateTable.parameters}
        done: list[tuple[Any, ...]] = []
        failures = []
        for name in names:
            own = {"source_type": kind, "table": f"{database}.{name}", "target_table": f"{target}.{name}"}
            try:
                done += MigrateTable().call(context, **{**given, **own})
            except (LockgateError, PySparkException, Py4JError) as error:
                # Texts of Spark's errors may hold values of the rows.
                why = str(error) if isinstance(error, LockgateError) else f"{type(error).__name__} in Spark"
                context.report(f"migrate_database: {database}.{name} was left: {why}")
                failures.append(f"{database}.{name}: {why}")
        columns = [column for column, _ in MigrateTable.result]
        sums = [
            sum(row[columns.index(column)] for row in done)
            for column in ("files_adopted", "files_rewritten", "rows", "bytes")
        ]
        return [(len(names), len(done), len(failures), *sums, _shown(failures))]


def _names(spark: Any, database: str, arguments: dict[str, Any]) -> list[str]:
    """Return the matching tables of a database, sorted; NotFoundError if there is no such database."""
    including = parse_pattern("including_tables", arguments["including_tables"], ".*")
    excluding = parse_pattern("excluding_tables", arguments["excluding_tables"], "(?!)")
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
