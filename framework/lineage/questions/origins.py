"""Origins of exposures: the encrypted columns whose values a column in the clear holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lockgate.framework.lineage.model.edge_kinds import PLAIN
from lockgate.framework.lineage.model.lineage_records import WHOLE
from lockgate.framework.lineage.questions.sensitivity import key_of
from lockgate.framework.lineage.questions.trace import trace
from lockgate.framework.lineage.questions.vertices import Vertex, vertices

KeysOf = Callable[[Vertex], Mapping[str, str]]
"""Returns the keys of the encrypted columns of a vertex's table, by their names in lower case."""


@dataclass(frozen=True)
class CopyOrigin:
    """An encrypted column with its key."""

    vertex: Vertex
    key: str


def origins(database: sqlite3.Connection, dataset: int, column: str, keys_of: KeysOf) -> Iterator[CopyOrigin]:
    """Yield the encrypted columns of other tables whose values a column holds."""
    lower_name = column.lower()
    starts = [
        number
        for number, name in database.execute("SELECT id, name FROM field WHERE dataset = ?", (dataset,))
        if name == WHOLE or name.lower() == lower_name or name.lower().startswith(f"{lower_name}.")
    ]
    sources = trace(database, starts, "back", kinds=int(PLAIN)).fields.difference(starts) if starts else ()
    for vertex in sorted(vertices(database, sources).values(), key=lambda each: each.qualified):
        key = key_of(keys_of(vertex), vertex.column or WHOLE)
        if key is not None and vertex.dataset != dataset:
            yield CopyOrigin(vertex, key)
