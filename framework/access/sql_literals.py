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
_VISIBLE = ("name",)


def mask_literals(sql: str) -> str:
    """Return a statement with `?` for each string and number, without comments.

    Text in double quotes counts as a string, as in Spark. A string or comment without an end reaches to the
    end of the text, so nothing behind an opening quote is shown.
    """
    return _TOKEN.sub(_masked, sql).strip()


def _masked(match: re.Match[str]) -> str:
    if match.lastgroup == "comment":
        return " "
    return match[0] if match.lastgroup in _VISIBLE else "?"
