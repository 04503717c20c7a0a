"""A lake: one Lockgate catalog in one Spark session."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, ProcedureError, nearest
from lockgate.framework.keys import KeyProvider
from lockgate.framework.plugins import plugins
from lockgate.framework.spark.bridge.dispatcher import dispatcher
from lockgate.framework.spark.context.open_catalogs import OpenCatalog
from lockgate.framework.spark.context.query_reports import PushDownExplanation, explain_pushdown
from lockgate.framework.spark.context.sql_inspection import Statement, inspect_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

    from lockgate.framework.orc import Mode
    from lockgate.framework.store import Catalog


@checked_arguments
class Lake:
    """A warehouse of tables as a catalog of a Spark session; made by `lockgate.connect`.

    `spark` is the session, `name` the catalog's name in it, `catalog` the tables without Spark.
    """

    def __init__(self, spark: SparkSession, name: str, opened: OpenCatalog) -> None:
        self.spark = spark
        self.name = name
        self.handle = opened.handle
        self.catalog: Catalog = opened.catalog
        self._warehouse = opened.options["warehouse"]

    def sql(self, text: str, **arguments: Any) -> DataFrame:
        """Run a SQL statement in the session; `arguments` fill its named parameters (`:name`)."""
        _check_values(arguments)
        return self.spark.sql(text, args=arguments) if arguments else self.spark.sql(text)

    def table(self, name: str) -> DataFrame:
        """Return the table `db.t` of this catalog as a DataFrame; `lake.db.t` works too."""
        full = name if name.startswith(f"{self.name}.") else f"{self.name}.{name}"
        return self.spark.table(full)

    def read_orc(
        self,
        path: str | os.PathLike[str],
        *,
        keys: KeyProvider | str | os.PathLike[str] | None = None,
        schema: StructType | str | None = None,
        integrity: Mode = "verify",
        **options: str,
    ) -> DataFrame:
        """Return a DataFrame over the ORC files, encrypted or not, of a folder that is no table.

        Folders named `column=value` are partitions. `keys` is a provider or a text such as
        `file:/path/keys.json`; default: the lake's own. `schema` names and types the columns, as Hive's files
        without names need; `options` are those of Spark's ORC source, such as `mergeSchema="true"`. A column
        whose key is missing is read as its mask, with a `MaskedDataWarning`. Files with tags
        (docs/integrity.md) are read once by the driver to check them, unless `integrity` is "ignore";
        "require" refuses files that cannot be checked.

        The keys of all files are proven first: raises `WrongKeyError` for a key that does not open one,
        `IntegrityError` for damage, `NotFoundError` for no files, `StorageDeniedError` for one that this user
        may not read, `InputError` for files without names.
        """
        from lockgate.framework.spark.session.orc_folder import read_orc

        return read_orc(
            self.spark,
            path,
            keys=self.catalog.keys if keys is None else keys,
            schema=schema,
            integrity=integrity,
            file_system=self.catalog.file_system_options,
            options=options,
        )

    def call(self, procedure: str, **arguments: Any) -> list[Row]:
        """Run a procedure, as `CALL lake.sys.<procedure>(name => value, ...)` does, and return its rows."""
        if not procedure.replace(".", "_").isidentifier():
            raise ProcedureError(f"a procedure's name is a plain word such as 'compact', not {procedure!r}")
        home = f"{self.name}.{procedure}" if procedure.startswith("sys.") else f"{self.name}.sys.{procedure}"
        named = ", ".join(f"{name} => :{name}" for name in arguments)
        from pyspark.sql.functions import create_map, lit

        _check_values(arguments)
        # Spark takes a dict as a literal of no type.
        given = {
            name: create_map(*(lit(part) for pair in value.items() for part in pair))
            if isinstance(value, dict) and value
            else value
            for name, value in arguments.items()
        }
        return self.spark.sql(f"CALL {home}({named})", args=given).collect()

    def explain_pushdown(self, sql: str) -> PushDownExplanation:
        """Plan a query without running it, and report what each scan accepted and skipped."""
        return explain_pushdown(self.spark, dispatcher().reports, sql)

    def inspect_sql(self, text: str) -> Statement:
        """Say what a statement is about (its kind, tables, columns, options) without running it."""
        return inspect_sql(text, spark=self.spark)

    def __getattr__(self, name: str) -> Any:
        """Return a method that a plugin adds, such as `lookup_join`; AttributeError has the nearest names."""
        methods = {} if name.startswith("_") else plugins().lake_methods()
        if name not in methods:
            raise AttributeError(f"a lake has no attribute {name!r}{nearest(name, methods)}")
        return partial(methods[name], self)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *plugins().lake_methods()})

    def __repr__(self) -> str:
        keys = "no keys" if self.catalog.keys is None else repr(self.catalog.keys)
        return f"Lake({self.name!r}, {self._warehouse!r}, {keys})"


def _check_values(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of types that PySpark cannot hand to Spark, of which its own error names none."""
    from pyspark.sql.functions import lit

    for name, value in arguments.items():
        try:
            for part in (*value, *value.values()) if isinstance(value, dict) else (value,):
                lit(part)
        except (AttributeError, TypeError):
            kind = type(value).__name__
            raise InputError(f"argument {name} is, or holds, no value in SQL: it is a {kind}") from None
