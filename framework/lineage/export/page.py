"""Page that shows a graph in a browser: one file, which loads nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from lockgate.framework.lineage.model.kinds import DIRECT, kind_names

if TYPE_CHECKING:
    from lockgate.framework.lineage.answer import Edge
    from lockgate.framework.lineage.questions.vertices import Vertex

_PLACE = "/*DATA*/"


def page(name: str, edges: Iterable[Edge], starts: Iterable[Vertex]) -> str:
    """Return the page; names and texts of statements go in as data, never as markup."""
    template = (files("lockgate.framework.lineage.export") / "page.html").read_text(encoding="utf-8")
    text = json.dumps(_Data(name, tuple(edges), tuple(starts)).made(), ensure_ascii=False)
    # What could end the script element is written so that JSON reads the same and HTML does not see it.
    return template.replace(_PLACE, text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))


class _Data:
    """The graph as the page reads it: tables with columns, edges by numbers, processes by the questions."""

    def __init__(self, name: str, edges: tuple[Edge, ...], starts: tuple[Vertex, ...]) -> None:
        self._name, self._starts = name, starts
        self._tables: dict[int, dict[str, Any]] = {}
        self._numbers: dict[int, int] = {}
        self._processes: dict[int, int] = {}
        self._told: list[dict[str, str]] = []
        self._first = [self._place(vertex) for vertex in starts]
        self._edges = list({self._edge(edge): None for edge in edges})

    def made(self) -> dict[str, Any]:
        picked = self._first[0] if len(self._first) == 1 and self._first[0][1] >= 0 else None
        return {
            "name": self._name,
            "tables": list(self._tables.values()),
            "edges": self._edges,
            "processes": self._told,
            "focus": self._first[0][0] if self._first else 0,
            "pick": picked,
        }

    def _place(self, vertex: Vertex) -> tuple[int, int]:
        number = self._numbers.setdefault(vertex.dataset, len(self._numbers))
        table = self._tables.setdefault(number, {"name": vertex.table, "columns": []})
        if vertex.column is None:
            return number, -1
        if vertex.column not in table["columns"]:
            table["columns"].append(vertex.column)
        return number, table["columns"].index(vertex.column)

    def _edge(self, edge: Edge) -> tuple[Any, ...]:
        ends = (*self._place(edge.source), *self._place(edge.target))
        kinds = ", ".join(kind_names(edge.kinds))
        return (*ends, kinds, int(bool(edge.kinds & DIRECT)), self._process(edge.process))

    def _process(self, process: Mapping[str, Any]) -> int:
        number = self._processes.setdefault(process["id"], len(self._processes))
        if number == len(self._told):
            self._told.append(_questions(process))
        return number


def _questions(process: Mapping[str, Any]) -> dict[str, str]:
    """Return what, when, where, who, how, which and why of a process, and the count of its runs."""
    run = process["run"] or {}
    last = datetime.fromtimestamp((process["last"] or 0) / 1000, UTC)
    found = {
        "what": process["kind"],
        "when": f"{last:%Y-%m-%d %H:%M:%S} UTC",
        "where": _text(run.get("where")),
        "who": _text(run.get("who")),
        "how": run.get("how", ""),
        "which": _text({**run.get("which", {}), "written snapshot": run.get("written")}),
        "why": _text(run.get("why")),
        "runs": str(process["count"]),
        "failed": str(process["failed"] or ""),
        "not looked into": ", ".join(process["opaque"] or ()),
    }
    return {key: value for key, value in found.items() if value}


def _text(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{key} {value}" for key, value in (values or {}).items() if value not in (None, ""))
