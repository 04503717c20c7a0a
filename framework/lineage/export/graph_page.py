"""A web page that shows a graph: one file without external resources."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from lockgate.framework.lineage.export.neighbourhood import near
from lockgate.framework.lineage.model.edge_kinds import DIRECT, kind_names

if TYPE_CHECKING:
    from lockgate.framework.lineage.answer import Edge
    from lockgate.framework.lineage.questions.vertices import Vertex


def page(name: str, edges: Iterable[Edge], starts: Iterable[Vertex]) -> str:
    """Return the page; names and texts of statements are embedded as data, never as markup."""
    template = (files("lockgate.framework.lineage.export") / "page.html").read_text(encoding="utf-8")
    data = _Data(name, edges, tuple(starts))
    values = {"/*FIRST*/": data.first(), "/*DATA*/": data.graph(), "/*PROCESSES*/": data.questions}
    return _PLACE.sub(lambda found: _embedded(values[found[0]]), template)


_PLACE = re.compile(r"/\*(?:FIRST|DATA|PROCESSES)\*/")


def _embedded(value: Any) -> str:
    """Return JSON with escapes for characters that could end a script element in HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028")


class _Data:
    """The data of the page: tables with columns, edges as numbers, and texts about processes."""

    def __init__(self, name: str, edges: Iterable[Edge], starts: tuple[Vertex, ...]) -> None:
        self._name = name
        self._tables: dict[int, dict[str, Any]] = {}
        self._numbers: dict[int, int] = {}
        self._columns: dict[tuple[int, str | None], int] = {}
        self._kinds: dict[int, int] = {}
        self._processes: dict[int, int] = {}
        self.questions: list[dict[str, str]] = []
        # The queried table comes first.
        self._starts = [self._place(vertex) for vertex in starts]
        edges_by_number = list({self._edge(edge): None for edge in edges})
        self._near = near(edges_by_number, len(self._tables))
        order = {number: position for position, number in enumerate(self._near.tables)}
        for number in self._tables:
            order.setdefault(number, len(order))
        self._ordered = [self._tables[number] for number in order]
        self._edges = [(order[a], b, order[c], *rest) for a, b, c, *rest in edges_by_number]

    def graph(self) -> dict[str, Any]:
        """Return the data of the complete graph."""
        return {
            "tables": self._ordered,
            "kinds": [(", ".join(kind_names(kinds)), int(bool(kinds & DIRECT))) for kinds in self._kinds],
            "edges": [number for edge in self._edges for number in edge],
        }

    def first(self) -> dict[str, Any]:
        """Return the data of the first picture: the tables near the first one."""
        count = len(self._near.tables)
        edges = [edge for edge in self._edges if edge[0] < count and edge[2] < count]
        is_column = len(self._starts) == 1 and self._starts[0][1] >= 0
        return {
            **self.graph(),
            "name": self._name,
            "tables": self._ordered[:count],
            "edges": [number for edge in edges for number in edge],
            "processes": {edge[5]: self.questions[edge[5]] for edge in edges if edge[2] == 0},
            "pick": self._starts[0] if is_column else None,
            "count": len(self._ordered),
            "hops": self._near.hops,
            "beyond": self._near.beyond,
        }

    def _place(self, vertex: Vertex) -> tuple[int, int]:
        number = self._numbers.setdefault(vertex.dataset, len(self._numbers))
        if number not in self._tables:
            self._tables[number] = {"name": vertex.table, "columns": []}
            if vertex.type == "file":
                self._tables[number]["isFile"] = True
        key = (number, vertex.column)
        if key not in self._columns:
            self._columns[key] = self._new_column(number, vertex.column)
        return number, self._columns[key]

    def _new_column(self, table: int, column: str | None) -> int:
        if column is None:
            return -1
        columns: list[str] = self._tables[table]["columns"]
        columns.append(column)
        return len(columns) - 1

    def _edge(self, edge: Edge) -> tuple[int, ...]:
        ends = (*self._place(edge.source), *self._place(edge.target))
        kind = self._kinds.setdefault(edge.kinds, len(self._kinds))
        return (*ends, kind, self._process(edge.process))

    def _process(self, process: Mapping[str, Any]) -> int:
        number = self._processes.setdefault(process["id"], len(self._processes))
        if number == len(self.questions):
            self.questions.append(_questions(process))
        return number


def _questions(process: Mapping[str, Any]) -> dict[str, str]:
    """Return what, when, where, who, how, which, why and how much of a process, and the count of its runs."""
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
        "how much": _text({name: run.get(key) for name, key in _AMOUNTS.items()}),
        "runs": str(process["count"]),
        "failed": str(process["failed"] or ""),
        "not looked into": ", ".join(process["opaque"] or ()),
    }
    return {key: value for key, value in found.items() if value}


_AMOUNTS = {
    "rows read": "rows_read",
    "bytes read": "bytes_read",
    "rows written": "rows",
    "bytes written": "bytes",
}


def _text(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{key} {value}" for key, value in (values or {}).items() if value not in (None, ""))
