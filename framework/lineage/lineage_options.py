"""Options of lineage: reactions to the loss of a column that others read, and to copies of copies in the
clear.
"""

from __future__ import annotations

from collections.abc import Mapping

from lockgate.framework.options import Option, one_of
from lockgate.framework.plugins import session_conf

_CHOICES = ("allow", "warn", "refuse", "")

ON_DROP = Option(
    "lineage.on-drop",
    one_of(*_CHOICES),
    "",
    "action when a table or column with readers is dropped or renamed: allow, warn or refuse; default: warn",
)
ON_PLAINTEXT = Option(
    "lineage.on-plaintext",
    one_of(*_CHOICES),
    "",
    "action when a statement copies values of an encrypted column from a copy in the clear: allow, "
    "warn or refuse; default: warn",
)
DECLARED = (ON_DROP, ON_PLAINTEXT)


def choice_of(
    option: Option[str], table: Mapping[str, str], warehouse: Mapping[str, str], *, default: str
) -> str:
    """Return the choice of the table, else of the session, else of the warehouse, else the default."""
    texts = (table.get(option.key), session_conf(f"spark.lockgate.{option.key}"), warehouse.get(option.key))
    return next((found for found in map(option.value_of, filter(None, texts)) if found), default)
