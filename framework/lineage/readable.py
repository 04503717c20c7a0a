"""Tables of a warehouse that the current user may read; lineage shows no others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lockgate.errors import AccessDeniedError, LockgateError
from lockgate.framework.access import Action
from lockgate.framework.lineage.model.names import column_path, split_name
from lockgate.framework.lineage.questions.vertices import VertexMatch, find, vertices
from lockgate.framework.plugins import plugins
from lockgate.framework.store import Identifier, grant_by_name

if TYPE_CHECKING:
    import sqlite3

    from lockgate.framework.lineage.questions.vertices import Vertex
    from lockgate.framework.store import Catalog


class Readable:
    """Decides whether the principal may read a dataset: plugins decide about tables of the warehouse, and
    other datasets are readable.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.is_governed = plugins().decides_access()
        self._decisions: dict[int, bool] = {}

    def __call__(self, vertex: Vertex | None) -> bool:
        """Return whether the principal may read the dataset of a vertex; True without a vertex."""
        if vertex is None or not self.is_governed or vertex.namespace or vertex.type not in ("table", "view"):
            return True
        if vertex.dataset not in self._decisions:
            self._decisions[vertex.dataset] = self._may_read(vertex.name)
        return self._decisions[vertex.dataset]

    def require(self, vertex: Vertex) -> None:
        """Raise AccessDeniedError, which names the missing grants, unless the principal may
        read the dataset.
        """
        if not self(vertex):
            self._authorize(vertex.name)

    def without_namesakes(
        self, database: sqlite3.Connection, whole: Vertex, match: VertexMatch
    ) -> VertexMatch:
        """Return a match without dropped columns whose names newer columns of the table have."""
        parts, _ = split_name(whole.name)
        if whole.namespace or whole.type != "table" or len(parts) != 2:
            return match
        try:
            table = self._catalog.load_table(Identifier(*parts))
        except LockgateError:  # a dropped table or branch has no live columns
            return match
        stored = database.execute(
            "SELECT f.id, f.name, f.uid FROM field f JOIN dataset d ON d.id = f.dataset "
            "WHERE d.id = ? AND d.uid = ?",
            (match.dataset, str(table.table_id)),
        ).fetchall()
        live = {field.name.lower(): str(field.id) for field in table.schema.fields}
        namesakes = {
            number
            for number, name, uid in stored
            if uid and live.get(column_path(name)[0].lower(), uid.split(".")[0]) != uid.split(".")[0]
        }
        return replace(match, fields=tuple(each for each in match.fields if each not in namesakes))

    def _may_read(self, name: str) -> bool:
        try:
            self._authorize(name)
        except AccessDeniedError:
            return False
        return True

    def _authorize(self, name: str) -> None:
        parts, _ = split_name(name)
        if len(parts) == 2:
            identifier = Identifier(*parts)
            location = self._catalog.location(identifier)
            grant_by_name(Action.SELECT, identifier, location, principal=self._catalog.principal)


def readable_processes(database: sqlite3.Connection, may_read: Readable) -> list[int]:
    """Return the numbers of the processes whose target and inputs are all readable, by their last run.

    The text of a statement names its target and all inputs, so all must be readable.
    """
    numbers = [row[0] for row in database.execute("SELECT id FROM process ORDER BY last, id")]
    if not may_read.is_governed:
        return numbers
    rows = "SELECT process, dataset FROM input UNION SELECT id, target FROM process WHERE target IS NOT NULL"
    datasets = [row[0] for row in database.execute(f"SELECT DISTINCT dataset FROM ({rows})")]  # noqa: S608 - constants only
    hidden = {
        -number
        for number, vertex in vertices(database, [-each for each in datasets]).items()
        if not may_read(vertex)
    }
    hidden_processes = {process for process, dataset in database.execute(rows) if dataset in hidden}
    return [number for number in numbers if number not in hidden_processes]


def find_readable(
    database: sqlite3.Connection, text: str, catalog: str | None, may_read: Readable
) -> VertexMatch:
    """Find what `text` names, as `find` does; AccessDeniedError if the user may not read its table.

    For an unknown name, the error suggests readable tables only. A column with the name of a dropped one is a
    different column, perhaps without recorded lineage.
    """
    match = find(database, text, catalog, may_read)
    [whole] = vertices(database, [-match.dataset]).values()
    may_read.require(whole)
    return match if match.snapshot is not None else may_read.without_namesakes(database, whole, match)
