"""Masks in SQL: expressions of Spark that never fail and never show more than the masks of ORC.

Each of ORC's three masks gives the value that it stores in files, or null if SQL cannot compute that (such as
redacted floating-point numbers). The connector adds a cast to the column's type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lockgate.framework.access.mask import Mask
from lockgate.pushdown import sql_name

NULL = "NULL"
# In this order no later pattern matches an earlier replacement. As in Apache ORC, separators stay and quotes
# count as other characters.
_CHARACTER_CLASSES = (
    (r"[\p{Lt}\p{Lm}\p{Lo}]", "\u00aa"),
    (r"\p{Lu}", "X"),
    (r"\p{Ll}", "x"),
    (r"\p{Nd}", "9"),
    (r"[\p{Nl}\p{No}]", "\u00b2"),
    (r"[\p{Pc}\p{Pd}\p{Ps}\p{Pe}\p{Po}]", "."),
    (r"\p{S}", "\\$"),
    (r"\p{M}", "\u0903"),
    (r"[\p{C}\p{Pi}\p{Pf}]", "\u06dd"),
)
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})


_WORD = re.compile(r"\w+")


def mask_sql(mask: Mask, column: str, kind: str) -> str | None:
    """Return the SQL of a mask of ORC over a column of Spark's type `kind`; None for a plugin's mask."""
    builders = {"nullify": _nullify, "sha256": _sha256, "redact": _redact}
    builder = builders.get(mask.name)
    return None if builder is None or mask.parameters else builder(sql_name(column), kind.upper())


def is_text(kind: str) -> bool:
    """Return whether a type of Spark is a text type, such as VARCHAR(10)."""
    return kind.upper().startswith(("STRING", "VARCHAR", "CHAR"))


def _nullify(column: str, kind: str) -> str:
    return NULL


def _sha256(column: str, kind: str) -> str:
    digest = f"sha2(CAST({column} AS BINARY), 256)"
    if is_text(kind):
        return f"upper({digest})"
    return f"unhex({digest})" if kind == "BINARY" else NULL


def _redact(column: str, kind: str) -> str:
    if is_text(kind):
        for pattern, replacement in _CHARACTER_CLASSES:
            column = f"regexp_replace({column}, r'{pattern}', r'{replacement}')"
        return column
    if kind == "BOOLEAN":
        return f"CASE WHEN {column} IS NOT NULL THEN TRUE END"
    if kind in _INTEGERS:
        return f"TRY_CAST(regexp_replace(CAST({column} AS STRING), '[0-9]', '9') AS {kind})"
    if kind == "DATE":
        return f"trunc({column}, 'YEAR')"
    return f"date_trunc('YEAR', {column})" if kind.startswith("TIMESTAMP") else NULL


def columns_named(texts: Iterable[str], columns: Iterable[str]) -> frozenset[str]:
    """Return the columns that expressions of SQL may name, in doubt more."""
    lowered = [text.lower() for text in texts]
    words = {word for text in lowered for word in _WORD.findall(text)}
    return frozenset(
        name
        for name in columns
        if (name.lower() in words if _WORD.fullmatch(name) else _is_in(name, lowered))
    )


def _is_in(name: str, texts: Iterable[str]) -> bool:
    return any(name.lower().replace("`", "``") in text for text in texts)
