"""Patterns of texts and indexes of texts, compared with what Spark finds by plain SQL."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lockgate.framework.index.database.segment_kinds import Ngrams
from lockgate.framework.types import STRING
from lockgate.pushdown import Comparison, Predicate, col, conjuncts, evaluate, required_literals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = [
    *(
        "",
        "abc",
        "ABC",
        "xAbCx",
        "a_c",
        "a%c",
        "C:\\Tools\\run.exe",
        "line\nbreak",
        "投标书",
        "a😀b",
        "straße",
    ),
    *(
        "STRASSE",
        "ſtraße",
        "İstanbul",
        "istanbul",
        "ISTANBUL",
        "ıstanbul",
        "\N{KELVIN SIGN}elvin",
        "kelvin",
        "éa",
        "ÉA",
    ),
]
LIKE = [
    "abc",
    "%b%",
    "a_c",
    r"a\_c",
    r"a\%c",
    "%",
    "_bc",
    "%ü%",
    "a_b",
    "%\\\\Tools%exe",
    "line%break",
    "投%",
    "%标%",
]
ILIKE = [*LIKE, "%STANBUL", "%stra%", "K_LVIN", "kelvin", "%İ%", "é%", "_STANBUL"]
RLIKE = ["b+", "^abc$", "(?i)abc", "A?b[Cc]", r"\.exe|stan", "a.b", "(?i)kel|stra", r"\\run", "^.{3}$"]


def test_patterns_are_those_of_spark(spark: SparkSession) -> None:
    """The same rows are found, and none that Spark finds lacks what is required and indexed."""
    spark.createDataFrame([(value,) for value in VALUES], "c STRING").createOrReplaceTempView("texts")
    asked = [*product(["LIKE"], LIKE), *product(["ILIKE"], ILIKE), *product(["RLIKE"], RLIKE)]
    columns = ", ".join(f"c {op} '{escaped(pattern)}'" for op, pattern in asked)
    rows = {row[0]: row[1:] for row in spark.sql(f"SELECT c, {columns} FROM texts").collect()}
    spark.catalog.dropTempView("texts")
    for number, (op, pattern) in enumerate(asked):
        predicate = getattr(col("c"), op.lower())(pattern)
        for value in VALUES:
            where = f"{value!r} {op} {pattern!r}"
            is_met = bool(rows[value][number])
            # Java's lower case of İ is two letters, that of Arrow one; and (?i) is about ASCII in Java.
            if not (op == "ILIKE" and "İ" in value + pattern) and (value.isascii() or "(?i)" not in pattern):
                assert is_met is holds(predicate, value), where
                assert not is_met or holds(required_literals(predicate), value), where
            assert not is_met or may_have(predicate, value), where


def escaped(pattern: str) -> str:
    return pattern.replace("\\", "\\\\").replace("'", "\\'")


def holds(predicate: Predicate, value: str) -> bool:
    return evaluate(predicate, {("c",): pa.scalar(value)}) is True


def may_have(predicate: Predicate, value: str) -> bool:
    """Say whether the index of pieces lets a value pass."""
    keys = Ngrams().keys(pa.array([value]), STRING)
    for part in conjuncts(required_literals(predicate)):
        asked = Ngrams().lookup_keys(part, STRING) if isinstance(part, Comparison) else None
        if asked is not None and not np.isin(asked.keys, keys).all():
            return False
    return True
