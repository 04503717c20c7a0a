"""The tables of options in the documentation, by the name of the marker that they stand behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lockgate.framework.lineage.lineage_options import DECLARED as LINEAGE_OPTIONS
from lockgate.framework.options import KNOWN, Option
from lockgate.framework.store.streams.stream_options import STREAM_OPTIONS

_TABLES: Mapping[str, Iterable[Option[Any]]] = {
    "tables": (*KNOWN.values(), *LINEAGE_OPTIONS),
    "streams": STREAM_OPTIONS.values(),
}


def table(name: str) -> str:
    """Return the table of options `name` in Markdown."""
    lines = ["| option | type | default | meaning |", "|---|---|---|---|"]
    for option in _TABLES[name]:
        default = f"`{option.default_text}`" if option.default_text else ""
        lines.append(f"| `{option.key}` | {option.type_name} | {default} | {option.doc} |")
    return "\n".join(lines)
