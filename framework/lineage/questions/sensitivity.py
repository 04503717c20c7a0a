"""Exposures: columns, files and views that hold values of an encrypted column without its encryption."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from lockgate.framework.lineage.model.edge_kinds import DIRECT, PLAIN
from lockgate.framework.lineage.model.lineage_records import WHOLE
from lockgate.framework.lineage.questions.trace import trace
from lockgate.framework.lineage.questions.vertices import Vertex, vertices

Secrets = Mapping[str, Mapping[str, str]]
"""The key of each encrypted column, by the name of its table in lineage and its own name in lower case."""


@dataclass(frozen=True)
class PlainCopy:
    """A column (or a whole dataset) that holds values of columns encrypted under `key`.

    `how` is `plain` if values can be read, `masked` for hashes, counts and similar results. `processes` are
    the numbers of the processes that wrote it.
    """

    key: str
    vertex: Vertex
    how: Literal["plain", "masked"]
    processes: tuple[int, ...]


def plaintext(database: sqlite3.Connection, secrets: Secrets, key: str | None = None) -> list[PlainCopy]:
    """Return all exposures, sorted by key, kind and name.

    Results of queries, which are not stored, and dropped tables are omitted.
    """
    keys = {each for columns in secrets.values() for each in columns.values()}
    return [
        copy
        for each in sorted(keys & _selected_keys(secrets, key))
        for copy in _copies_of_key(database, secrets, each)
    ]


def _selected_keys(secrets: Secrets, key: str | None) -> set[str]:
    return {key} if key is not None else {each for columns in secrets.values() for each in columns.values()}


def _copies_of_key(database: sqlite3.Connection, secrets: Secrets, key: str) -> list[PlainCopy]:
    starts = _fields(database, secrets, key)
    plain = _reached(database, starts, int(PLAIN))
    direct = _reached(database, starts, int(DIRECT))
    names = vertices(database, {*plain, *direct})
    copies = []
    for number, processes in direct.items():
        vertex = names[number]
        if not _is_safe(vertex, secrets, key):
            how: Literal["plain", "masked"] = "plain" if number in plain else "masked"
            copies.append(PlainCopy(key, vertex, how, tuple(sorted(plain.get(number, processes)))))
    return sorted(copies, key=lambda copy: (copy.key, copy.how != "plain", copy.vertex.qualified))


def _reached(database: sqlite3.Connection, starts: Collection[int], kinds: int) -> dict[int, set[int]]:
    processes_by_target: dict[int, set[int]] = {}
    for step, _ in trace(database, starts, "forward", kinds=kinds).steps:
        processes_by_target.setdefault(step.target, set()).add(step.process)
    return processes_by_target


def _fields(database: sqlite3.Connection, secrets: Secrets, key: str) -> list[int]:
    rows = database.execute("SELECT f.id, d.name, f.name FROM field f JOIN dataset d ON d.id = f.dataset "
                            "WHERE d.namespace = '' AND f.dropped IS NULL")  # fmt: skip
    return [number for number, table, column in rows if key_of(secrets.get(table, {}), column) == key]


def _is_safe(vertex: Vertex, secrets: Secrets, key: str) -> bool:
    if vertex.is_dropped or vertex.type == "result":
        return True
    return not vertex.namespace and key_of(secrets.get(vertex.name, {}), vertex.column or WHOLE) == key


def key_of(columns: Mapping[str, str], column: str) -> str | None:
    """Return the key of a column of a table: of itself, of its struct, or of its only encrypted members.

    `columns` maps the names of encrypted columns in lineage, in lower case, to their keys.
    """
    prefix = column.lower()
    while prefix:
        if prefix in columns:
            return columns[prefix]
        prefix = prefix.rpartition(".")[0]
    member_keys = {key for name, key in columns.items() if name.startswith(f"{column.lower()}.")}
    return member_keys.pop() if len(member_keys) == 1 else None
