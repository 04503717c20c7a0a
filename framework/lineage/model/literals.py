"""Literals in SQL text: masked, because they may be secrets or values of encrypted columns."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
    (?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<raw>\br(?:'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)))
  | (?P<string>'(?:\\.|''|[^'\\])*(?:'|\Z)|"(?:\\.|""|[^"\\])*(?:"|\Z))
  | (?P<dollar>\$\$.*?(?:\$\$|\Z))
  | (?P<name>`(?:``|[^`])*`|[^\W\d]\w*)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?:bd|[lsdfy])?\b)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_KEPT = ("name",)
_LONGEST = 500


def mask_literals(sql: str) -> str:
    """Return a statement with `?` for each string and number, without comments.

    Text in double quotes counts as a string, since Spark reads it so. An end that is missing is the end of
    the text: nothing behind an opening quote is shown.
    """
    return _TOKEN.sub(_masked, sql).strip()


def why_of(description: str | None, reason: str | None, *, keeps: bool) -> dict[str, str]:
    """Return the reasons of a run: of its Spark job, and of its session.

    Spark describes a job by the text of the statement, or where in a program it began; unless `keeps`, the
    literals in it are masked.
    """
    job = description or ""
    found = {"job": job if keeps else mask_literals(job[:_LONGEST]), "reason": reason or ""}
    return {key: value for key, value in found.items() if value}


def _masked(match: re.Match[str]) -> str:
    if match.lastgroup == "comment":
        return " "
    return match[0] if match.lastgroup in _KEPT else "?"
