"""Lockgate's confs in Spark: of applications and sessions, after `spark.lockgate.`, and of catalogs."""

from __future__ import annotations

from typing import Any

from lockgate.framework.options.file_options import ON_PLAINTEXT
from lockgate.framework.options.option import Option, one_of, parse_bool

_CHOICES = one_of("allow", "warn", "refuse")
# Java reads most of them, some before there is a Python.
SESSION_OPTIONS: tuple[Option[Any], ...] = (
    Option("user", str, "", "user that a session acts for"),
    Option("acts-for-others", parse_bool, False, "sessions may name a user; set when the application starts"),
    Option("governed", parse_bool, False, "nothing is allowed without a plugin that decides about access"),
    Option("fixed-catalogs", parse_bool, False, "sessions cannot change confs of catalogs or add catalogs"),
    Option("encryption.on-plaintext", ON_PLAINTEXT.parse, "", "as the option, for tables without it"),
    Option(
        "lineage",
        one_of("off", "writes", "all"),
        "writes",
        "statements to record; `all` records queries too, with the target `result`",
    ),
    Option("lineage.reason", str, "", "reason for the statements of this session; each run records it"),
    Option(
        "lineage.literals",
        one_of("keep", ""),
        "",
        "`keep`: strings and numbers stay in the text of statements; otherwise `?` replaces each",
    ),
    Option("lineage.on-drop", _CHOICES, "warn", "as the option, for tables without it"),
    Option("lineage.on-plaintext", _CHOICES, "warn", "as the option, for tables without it"),
    Option(
        "python",
        str,
        "",
        "Python that has the package `lockgate`; default: `spark.pyspark.driver.python`, "
        "`spark.pyspark.python`, the environment variables `PYSPARK_DRIVER_PYTHON` and `PYSPARK_PYTHON`, the "
        "Python whose program started the JVM, then `python3`",
    ),
    Option(
        "python.start",
        one_of("auto", "never"),
        "auto",
        "`never`: a statement fails and asks for `lockgate.attach(spark)`",
    ),
    Option("python.timeout", str, "120s", "time that a statement waits for Python to start"),
    Option("result.cache", parse_bool, False, "keep the rows of this session's queries"),
    Option(
        "result.cache.size",
        str,
        "64m",
        "memory for the results of all sessions, set when the application starts; results that were used "
        "longest ago go first",
    ),
)
CATALOG_OPTIONS: tuple[Option[Any], ...] = (
    Option("warehouse", str, "", "folder of the tables"),
    Option("keys", str, "", "`file:/secrets/keys.json`: the path of a key file, never a key"),
    Option(
        "external-roots",
        str,
        "",
        "comma-separated folders in which tables may keep files outside their own folder",
    ),
    ON_PLAINTEXT,
)
