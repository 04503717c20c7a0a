"""The tables of options in the documentation, each by the name that its marker gives it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from lockgate.framework.governance.catalog_confs import DECLARED as POLICY_OPTIONS
from lockgate.framework.lineage.lineage_options import DECLARED as LINEAGE_OPTIONS
from lockgate.framework.options import SESSION_OPTIONS, Change, Effect, Option, merge_options
from lockgate.framework.options.option import REFUSED
from lockgate.framework.options.table_options import ALL_OPTIONS, OWN_OPTIONS
from lockgate.framework.store.streams.stream_options import STREAM_OPTIONS
from lockgate.lookup.spec.lookup_options import ALL as LOOKUP_OPTIONS

_APPLIED = [each for each in (*OWN_OPTIONS, *LINEAGE_OPTIONS) if each.effect is Effect.APPLIED]
_TABLES: Mapping[str, Iterable[Option[Any]]] = {
    "tables": _APPLIED,
    "merge": [each for each in _APPLIED if each in vars(merge_options).values()],
    "indexes": [each for each in _APPLIED if each.key.startswith("index.")],
    "file-indexes": [each for each in _APPLIED if each.key.startswith("file-index.")],
    "streams": STREAM_OPTIONS.values(),
    "lookup": LOOKUP_OPTIONS,
    "policies": POLICY_OPTIONS,
    **{
        f"sessions {start}": [
            replace(each, key=f"spark.lockgate.{each.key}")
            for each in SESSION_OPTIONS
            if each.key.startswith(start)
        ]
        for start in ("lineage", "python", "result")
    },
}


def table(name: str) -> str:
    """Return the table `name` in Markdown: options with type, default and meaning, or the refused ones."""
    return _refused() if name == "refused" else _described(_TABLES[name])


def _described(options: Iterable[Option[Any]]) -> str:
    lines = ["| option | type | default | meaning |", "|---|---|---|---|"]
    for option in options:
        default = f"`{option.default_text}`" if option.default_text else ""
        meaning = option.doc if option.change is Change.ANY_TIME else f"{option.doc}; {option.change.value}"
        lines.append(f"| `{option.key}` | {option.type_name} | {default} | {meaning} |")
    return "\n".join(lines)


def _refused() -> str:
    lines = ["| tables with the option | are | because |", "|---|---|---|"]
    refused = [effect for effect in Effect if effect in REFUSED]
    options = [option for effect in refused for option in ALL_OPTIONS if option.effect is effect]
    for _, alike in groupby(options, key=lambda each: (each.effect, each.doc, each.needs_key, each.off)):
        group = list(alike)
        keys = ", ".join(f"`{option.key}`" for option in group)
        off = "".join(f" other than `{value}`" for value in sorted(group[0].off) if len(group[0].off) == 1)
        only = ", with a primary key" if group[0].needs_key else ""
        lines.append(f"| {keys}{off}{only} | {group[0].effect.value} | {group[0].doc} |")
    return "\n".join(lines)
