"""What a statement led to: rows as a bag that keeps every bit apart, or the kind of its error."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from exact_rows import Rows, exact_rows, in_order
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException


@dataclass(frozen=True)
class Failed:
    """An error by its kind: Spark's error condition, or the name of Lockgate's error."""

    kind: str
    message: str

    @property
    def internal(self) -> bool:
        """Whether nobody raised it on purpose."""
        return "INTERNAL_ERROR" in self.kind or self.kind == "Py4JJavaError"


def failure(error: Exception) -> Failed:
    """The kind of an error, found at its deepest cause that has one."""
    java = _java(error)
    message = str(java.getMessage() if java is not None else error).split("JVM stacktrace")[0][:600]
    kind = type(error).__name__
    if isinstance(error, PySparkException):
        # Lockgate's own errors come without a condition, as AnalysisException.
        kind = error.getCondition() or kind
    for condition in _causes(java):
        kind = condition
    return Failed(kind, message)


def _java(error: BaseException | None) -> Any:
    # Collecting by Arrow raises what Python saw of the broken stream, with Java's error as its context.
    while error is not None:
        java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        if java is not None:
            return java
        error = error.__cause__ or error.__context__
    return None


def _causes(origin: Any) -> list[str]:
    found = []
    while origin is not None:
        try:
            condition = origin.getCondition()
        except Exception:  # any Java exception that is not Spark's
            condition = None
        found += [str(condition)] if condition else []
        origin = origin.getCause()
    return found


def attempt(work: Callable[[], Any]) -> Any:
    """What `work` returns, or how it failed."""
    try:
        return work()
    except (PySparkException, Py4JError, pa.ArrowException) as error:
        return failure(error)


def alike(one: Failed, other: Failed) -> bool:
    """Whether two errors are of one kind: the part of a condition before its dot."""
    return one.kind.partition(".")[0] == other.kind.partition(".")[0]


# --- bags ----------------------------------------------------------------------------------------


def bag(table: pa.Table, zeros: bool = True) -> list[str]:
    """The rows of an Arrow table as sorted text; `zeros` keeps -0.0 apart from 0.0."""
    rows: Rows = exact_rows(table)
    if not zeros:
        rows = [[_unsigned(value) for value in row] for row in rows]
    return sorted(json.dumps(row, default=str) for row in in_order(rows))


def _unsigned(value: Any) -> Any:
    if isinstance(value, list):
        return [_unsigned(item) for item in value]
    return 0.0 if isinstance(value, float) and value == 0 else value


def differ(wanted: list[str], found: list[str]) -> str:
    """The first rows that are missing and that are too many; empty if there are none."""
    if wanted == found:
        return ""
    missing, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    return (
        f"{len(wanted)} rows expected, {len(found)} found; missing {sum(missing.values())}: "
        f"{list(missing)[:3]}; too many {sum(extra.values())}: {list(extra)[:3]}"
    )
