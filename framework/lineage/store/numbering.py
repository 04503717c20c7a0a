"""Numbers of datasets and columns in the index: by their ids where these are known, else by their names.

A table or column that is renamed keeps its id, so it keeps its number, and with it its history; the name is
the one that was used last. What is made under a name that was free again has another id.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from lockgate.framework.lineage.model.records import Dataset


@dataclass
class _Field:
    """A column: its number, its name, its id (empty if not known), and when it was last seen to be so
    named."""

    number: int
    dataset: int
    name: str
    uid: str
    named: int


class Numbering:
    """Finds numbers, or gives them, inside one transaction; `finish` writes the new columns."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._datasets: dict[tuple[str, ...], int] = {}
        self._fields: dict[int, _Columns] = {}
        self._next_field = 1 + (database.execute("SELECT max(id) FROM field").fetchone()[0] or 0)
        self._new: list[_Field] = []

    def dataset(self, dataset: Dataset) -> int:
        """Return the number of a dataset, which is made if it is new."""
        key = (dataset.namespace, dataset.id) if dataset.id else (dataset.namespace, dataset.name, "")
        number = self._datasets.get(key)
        if number is None:
            where = "uid = ? AND uid != ''" if dataset.id else "name = ? AND uid = ?"
            found = self._database.execute(
                f"SELECT id FROM dataset WHERE namespace = ? AND {where}", key
            ).fetchone()
            number = int(found[0]) if found else self._new_dataset(dataset)
            self._datasets[key] = number
        return number

    def _new_dataset(self, dataset: Dataset) -> int:
        made = self._database.execute(
            "INSERT INTO dataset(namespace, name, type, uid) VALUES (?, ?, ?, ?)",
            (dataset.namespace, dataset.name, dataset.type, dataset.id),
        ).lastrowid
        assert made is not None
        return made

    def field(self, dataset: int, name: str, uid: str = "", at: int = 0) -> int:
        """Return the number of a column of a dataset, which is made if it is new; it had the name at `at`."""
        columns = self._fields.get(dataset)
        if columns is None:
            columns = self._fields[dataset] = self._columns_of(dataset)
        found = columns.find(name, uid)
        if found is None:
            found = _Field(self._next_field, dataset, name, uid, at)
            self._next_field += 1
            self._new.append(found)
            columns.add(found)
        elif (uid and not found.uid) or (found.name != name and at >= found.named):
            self._rename(columns, found, name, uid or found.uid, at)
        return found.number

    def drop(self, dataset: int, name: str, uid: str, at: int) -> None:
        """Note that a column was dropped."""
        number = self.field(dataset, name, uid, at)
        self.finish()
        self._database.execute(
            "UPDATE field SET dropped = max(coalesce(dropped, 0), ?) WHERE id = ?", (at, number)
        )

    def _rename(self, columns: _Columns, found: _Field, name: str, uid: str, at: int) -> None:
        found.name, found.uid, found.named = name, uid, max(at, found.named)
        columns.add(found)
        self._database.execute(
            "UPDATE field SET name = ?, uid = ?, named = ? WHERE id = ?",
            (name, uid, found.named, found.number),
        )

    def _columns_of(self, dataset: int) -> _Columns:
        columns = _Columns()
        rows = self._database.execute(
            "SELECT id, dataset, name, uid, named FROM field WHERE dataset = ? ORDER BY id", (dataset,)
        )
        for row in rows:
            columns.add(_Field(*row))
        return columns

    def finish(self) -> None:
        """Write the new columns."""
        self._database.executemany(
            "INSERT INTO field(id, dataset, name, uid, named) VALUES (?, ?, ?, ?, ?)",
            [(each.number, each.dataset, each.name, each.uid, each.named) for each in self._new],
        )
        self._new.clear()


class _Columns:
    """The columns of one dataset, by id and by name."""

    def __init__(self) -> None:
        self._by_uid: dict[str, _Field] = {}
        self._by_name: dict[str, _Field] = {}

    def find(self, name: str, uid: str) -> _Field | None:
        if not uid:
            return self._by_name.get(name)
        found = self._by_uid.get(uid)
        if found is None and name in self._by_name and not self._by_name[name].uid:
            return self._by_name[name]
        return found

    def add(self, field: _Field) -> None:
        if field.uid:
            self._by_uid[field.uid] = field
        self._by_name[field.name] = field
