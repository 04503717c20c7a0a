"""Names of vertices: from a text that people write to numbers of the index, and back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from lockgate.errors import ColumnNotFoundError, NotFoundError, nearest
from lockgate.framework.lineage.model.lineage_records import WHOLE, guid_of
from lockgate.framework.lineage.model.names import column_path, column_text, joined, split_name
from lockgate.framework.lineage.questions.graph import chunks


@dataclass(frozen=True)
class Vertex:
    """A column, or a whole dataset (`column` is None), with the six attributes of a vertex as properties."""

    dataset: int
    namespace: str
    name: str
    type: str
    column: str | None
    version: int | None
    created: int | None
    creator: str
    is_dropped: bool

    @property
    def table(self) -> str:
        """The dataset's name, with its namespace where that is not the warehouse."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def qualified(self) -> str:
        """The name of the column, or of the dataset."""
        if self.column is None:
            return self.table
        between = "#" if self.type == "file" else "."
        return f"{self.table}{between}{joined(column_path(self.column))}"

    def attributes(self) -> dict[str, Any]:
        """Return guid, name, typeName, createTime (milliseconds), createBy and version."""
        return {
            "guid": guid_of(self.qualified, self.version),
            "name": self.qualified,
            "typeName": self.type if self.column is None else "column",
            "createTime": self.created,
            "createBy": self.creator,
            "version": self.version,
        }


_DATASET = (
    "d.id, d.namespace, d.name, d.type, {column}, d.version, d.created, coalesce(d.creator, ''), {gone} OR "
    "EXISTS (SELECT 1 FROM dropped x WHERE x.namespace = d.namespace AND x.name = d.name AND x.at >= d.seen) "
    "OR EXISTS (SELECT 1 FROM dropped_database x WHERE x.namespace = d.namespace AND x.at >= d.seen "
    "AND substr(d.name, 1, length(x.prefix)) = x.prefix)"
)


def vertices(database: sqlite3.Connection, numbers: Collection[int]) -> dict[int, Vertex]:
    """Return the vertex of each number; a negative number is that of a whole dataset."""
    found = {}
    for some in chunks({number for number in numbers if number > 0}):
        columns = (
            f"SELECT f.id, {_DATASET.format(column='f.name', gone='f.dropped IS NOT NULL')} "  # noqa: S608 - numbers and constants, no text of others
            "FROM field f JOIN dataset d ON d.id = f.dataset"
        )
        for row in database.execute(f"{columns} WHERE f.id IN ({some})"):
            found[row[0]] = _vertex(row[1:])
    for some in chunks({-number for number in numbers if number < 0}):
        whole = f"SELECT d.id, {_DATASET.format(column='NULL', gone='FALSE')} FROM dataset d"  # noqa: S608 - numbers and constants, no text of others
        for row in database.execute(f"{whole} WHERE d.id IN ({some})"):
            found[-row[0]] = _vertex(row[1:])
    return found


def _vertex(row: Sequence[Any]) -> Vertex:
    dataset, namespace, name, kind, column, *rest, dropped = row
    version, created, creator = rest
    whole = column is None or column == WHOLE
    return Vertex(
        *(dataset, namespace, name, kind, None if whole else column),
        version=version,
        created=created,
        creator=creator,
        is_dropped=bool(dropped),
    )


def processes(database: sqlite3.Connection, numbers: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return each process with its attributes, sums and last run."""
    names = "id, hash, kind, name, target, views, opaque, cut, created, creator, count, failed, first, last, "
    names += "first_written, written, rows, bytes, run"
    found = {}
    for some in chunks(set(numbers)):
        for row in database.execute(f"SELECT {names} FROM process WHERE id IN ({some})"):  # noqa: S608 - numbers and constants, no text of others
            values = dict(zip(names.split(", "), row, strict=True))
            for key in ("views", "opaque", "run"):
                values[key] = json.loads(values[key]) if values[key] else None
            found[values["id"]] = {**_attributes(values), **values}
    return found


def _attributes(values: dict[str, Any]) -> dict[str, Any]:
    return {
        "guid": guid_of(values["hash"]),
        "typeName": values["kind"],
        "createTime": values["created"],
        "createBy": values["creator"],
        "version": values["count"],
    }


@dataclass(frozen=True)
class VertexMatch:
    """The dataset and the columns that a text names, and the snapshot behind its `@`."""

    dataset: int
    fields: tuple[int, ...]
    snapshot: int | None
    column: str | None


def find(
    database: sqlite3.Connection,
    text: str,
    catalog: str | None = None,
    may_name: Callable[[Vertex], bool] = lambda vertex: True,
) -> VertexMatch:
    """Return the vertices that `text` names: `db.table`, `db.table.column`, a path, or `path#column`.

    A first part that is the catalog's name may be there or not. Raises NotFoundError, with the nearest names
    among those that `may_name` allows.
    """
    exact = _exact(database, text)
    if exact:
        return exact
    parts, snapshot = split_name(text)
    for tried in (parts, parts[1:] if catalog is not None and parts[0] == catalog else []):
        for length in range(len(tried), 0, -1):
            dataset = _newest(database, joined(tried[:length]))
            if dataset is not None:
                column = column_text(tried[length:]) or None
                return _columns(database, dataset, column, snapshot, text)
    numbers = [-row[0] for row in database.execute("SELECT id FROM dataset")]
    names = [vertex.name for vertex in vertices(database, numbers).values() if may_name(vertex)]
    raise NotFoundError(f"the lineage knows no dataset {text!r}{nearest(text, names)}")


def _exact(database: sqlite3.Connection, text: str) -> VertexMatch | None:
    """Find what is not named by parts: a file with `#` before a column, or a dataset of another namespace.

    Their own names may hold either mark, so the longest name that is known counts.
    """
    dataset = _newest(database, text)
    if dataset is not None:
        return _columns(database, dataset, None, None, text)
    marks = "#." if "/" in text else "#"
    for at in range(len(text) - 2, 0, -1):
        dataset = _newest(database, text[:at]) if text[at] in marks else None
        if dataset is not None:
            rest = text[at + 1 :]
            column = column_text(split_name(rest)[0]) if "`" in rest else rest
            return _columns(database, dataset, column, None, text)
    return None


def _newest(database: sqlite3.Connection, name: str) -> int | None:
    found = database.execute(
        "SELECT id FROM dataset WHERE name = :name OR (namespace != '' AND namespace || '/' || name = :name) "
        "ORDER BY namespace = '' DESC, seen DESC, id DESC LIMIT 1",
        {"name": name},
    ).fetchone()
    if found is None:
        found = database.execute(
            "SELECT dataset FROM former WHERE namespace = '' AND name = ? ORDER BY at DESC LIMIT 1", (name,)
        ).fetchone()
    return None if found is None else int(found[0])


def _columns(
    database: sqlite3.Connection, dataset: int, column: str | None, snapshot: int | None, text: str
) -> VertexMatch:
    rows = database.execute(_COLUMNS, {"dataset": dataset}).fetchall()
    if column is None:
        return VertexMatch(dataset, tuple(number for _, number in rows), snapshot, None)
    # Members of a struct are columns of their own; asking for the struct asks for all of them.
    wanted = column.lower()
    named = [number for name, number in rows if _is_or_is_in(name.lower(), wanted)]
    if not named:
        names = [name for name, _ in rows if name != WHOLE]
        raise ColumnNotFoundError(f"the lineage knows no column {text!r}{nearest(column, names)}")
    return VertexMatch(dataset, tuple(named), snapshot, column)


def _is_or_is_in(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.") or wanted.startswith(f"{name}.")


# Prefer the newest column of this name; a dropped one only if no live one exists.
_COLUMNS = """
SELECT name, id FROM field f WHERE dataset = :dataset AND NOT EXISTS (
  SELECT 1 FROM field g WHERE g.dataset = :dataset AND g.name = f.name AND g.uid != f.uid
  AND ((g.dropped IS NULL AND f.dropped IS NOT NULL)
       OR ((g.dropped IS NULL) = (f.dropped IS NULL) AND (g.named, g.id) > (f.named, f.id))))
"""
