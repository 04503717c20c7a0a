"""Inspection of a SQL statement by Spark's own parser, without running or resolving it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import BridgeError, InputError
from lockgate.framework.spark.context.driver_jvm import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Common statements, by the class that the parser makes of them; others are spelled after their class.
_KINDS = {
    "InsertIntoStatement": "INSERT",
    "InsertOverwrite": "INSERT OVERWRITE",
    "DeleteFromTable": "DELETE",
    "UpdateTable": "UPDATE",
    "MergeIntoTable": "MERGE",
    "CreateTable": "CREATE TABLE",
    "CreateTableAsSelect": "CREATE TABLE AS SELECT",
    "ReplaceTable": "REPLACE TABLE",
    "ReplaceTableAsSelect": "REPLACE TABLE AS SELECT",
    "DropTable": "DROP TABLE",
    "CreateNamespace": "CREATE DATABASE",
    "DropNamespace": "DROP DATABASE",
    "Call": "CALL",
    "ShowTables": "SHOW TABLES",
    "ShowNamespaces": "SHOW DATABASES",
    "ShowProceduresCommand": "SHOW PROCEDURES",
    "DescribeRelation": "DESCRIBE",
    "DescribeProcedure": "DESCRIBE PROCEDURE",
    "ExplainCommand": "EXPLAIN",
    "TruncateTable": "TRUNCATE TABLE",
    "SetCatalogAndNamespace": "USE",
    "SetCommand": "SET",
    "CacheTable": "CACHE TABLE",
}


@dataclass(frozen=True)
class Statement:
    """A parsed statement: its kind (`SELECT`, `INSERT`, `CALL`, ...), and the names it mentions, as written.

    `tables` are the tables read, `target` is the one written, created or dropped, or the procedure called.
    `columns` are in order of their first mention; `*` stands for all. `options` are read options, table
    properties and arguments of a call.
    """

    kind: str
    tables: tuple[str, ...] = ()
    target: str | None = None
    columns: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@checked_arguments
def inspect_sql(text: str, *, spark: SparkSession | None = None) -> Statement:
    """Parse `text` with Spark's parser and describe it; it runs nothing, and no table need exist.

    Raises InputError for text that is not SQL, BridgeError without a session that has the connector jar.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import ParseException, PySparkException
    from pyspark.sql import SparkSession

    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise BridgeError("no Spark session is running: call lockgate.connect(...) first")
    try:
        found = json.loads(
            java_class(session, "io.lockgate.spark.rules.sql.SqlInspector").inspect(
                session._jsparkSession, text
            )
        )
    except ParseException as error:
        raise InputError(f"not a SQL statement: {error}") from None
    except (PySparkException, Py4JJavaError) as error:
        raise InputError(f"Spark's parser failed: {error}") from None
    return Statement(
        kind=_KINDS.get(found["node"], "SELECT" if found["query"] else _spelled(found["node"])),
        tables=tuple(dict.fromkeys(found["tables"])),
        target=found["target"],
        columns=tuple(dict.fromkeys(found["columns"])),
        options=found["options"],
    )


def _spelled(node: str) -> str:
    """Spell the class of a plan as words: `RefreshTable` is `REFRESH TABLE`.

    >>> _spelled("RefreshTable")
    'REFRESH TABLE'
    """
    words = re.findall(r"[A-Z][a-z0-9]*", node.removesuffix("Command").removesuffix("Statement"))
    return " ".join(words).upper()
