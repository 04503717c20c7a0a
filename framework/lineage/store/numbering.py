"""Numbers of datasets and columns in the index: by their ids where these are known, else by their names.

A table or column that is renamed keeps its id, so it keeps its number, and with it its history; the name is
the one that was used last. What is made under a name that was free again has another id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from lockgate.framework.lineage.model.lineage_records import Dataset

_Field = tuple[int, str, str, int]
"""A column: its number, its name, its id (empty if not known), and when it was last seen to be so named.

A plain tuple: there are hundreds of thousands, and the garbage collector soon
leaves these alone.
"""


class Numbering:
    """Finds numbers, or gives them, inside one transaction; `finish` writes the new columns."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._datasets: dict[tuple[str, ...], int] = {}
        self._fields: dict[int, _Columns] = {}
        self._next_field = 1 + (database.execute("SELECT max(id) FROM field").fetchone()[0] or 0)
        self._new: list[tuple[int, int, str, str, int]] = []

    def dataset(self, dataset: Dataset) -> int:
        """Return the number of a dataset, which is made if it is new."""
        key = (dataset.namespace, dataset.id) if dataset.id else (dataset.namespace, dataset.name, "")
        number = self._datasets.get(key)
        if number is None:
            where = "uid = ? AND uid != ''" if dataset.id else "name = ? AND uid = ?"
            found = self._database.execute(
                f"SELECT id FROM dataset WHERE namespace = ? AND {where}",  # noqa: S608 - constants only; values are parameters
                key,
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
        self._fields[made] = _Columns(())
        return made

    def field(self, dataset: int, name: str, uid: str = "", at: int = 0) -> int:
        """Return the number of a column of a dataset, which is made if it is new; it had the name at `at`."""
        columns = self._columns(dataset)
        found = columns.find(name, uid)
        if found is None:
            number = self._next_field
            self._next_field += 1
            self._new.append((number, dataset, name, uid, at))
            columns.add((number, name, uid, at))
            return number
        number, old_name, old_uid, named = found
        if (uid and not old_uid) or (old_name != name and at >= named):
            self._rename(columns, found, (number, name, uid or old_uid, max(at, named)))
        return number

    def fields(self, dataset: int, names: Iterable[str], uids: Mapping[str, str], at: int) -> dict[str, int]:
        """Return the numbers of several columns; `uids` are those of their ids that are known."""
        columns = self._columns(dataset)
        by_name, by_uid = columns.by_name, columns.by_uid
        found = {}
        for name in names:
            uid = uids.get(name, "")
            entry = by_uid.get(uid) if uid else by_name.get(name)
            # Nearly always the column is there and has this name.
            is_so = entry is not None and entry[1] == name
            found[name] = entry[0] if entry is not None and is_so else self.field(dataset, name, uid, at)
        return found

    @property
    def size(self) -> int:
        """The number of columns that are known by now."""
        return sum(len(columns.by_name) for columns in self._fields.values())

    def drop(self, dataset: int, name: str, uid: str, at: int) -> None:
        """Note that a column was dropped."""
        number = self.field(dataset, name, uid, at)
        self.finish()
        self._database.execute(
            "UPDATE field SET dropped = max(coalesce(dropped, 0), ?) WHERE id = ?", (at, number)
        )

    def _rename(self, columns: _Columns, old: _Field, new: _Field) -> None:
        columns.replace(old, new)
        self.finish()
        number, name, uid, named = new
        self._database.execute(
            "UPDATE field SET name = ?, uid = ?, named = ? WHERE id = ?", (name, uid, named, number)
        )

    def _columns(self, dataset: int) -> _Columns:
        columns = self._fields.get(dataset)
        if columns is None:
            rows = self._database.execute(
                "SELECT id, name, uid, named FROM field WHERE dataset = ? ORDER BY id", (dataset,)
            )
            columns = self._fields[dataset] = _Columns(rows)
        return columns

    def finish(self) -> None:
        """Write the new columns."""
        self._database.executemany(
            "INSERT INTO field(id, dataset, name, uid, named) VALUES (?, ?, ?, ?, ?)", self._new
        )
        self._new.clear()


class _Columns:
    """The columns of one dataset, by id and by name, former names too."""

    def __init__(self, fields: Iterable[_Field]) -> None:
        self.by_uid: dict[str, _Field] = {}
        self.by_name: dict[str, _Field] = {}
        for each in fields:
            self.add(each)

    def find(self, name: str, uid: str) -> _Field | None:
        if not uid:
            return self.by_name.get(name)
        found = self.by_uid.get(uid)
        if found is None and name in self.by_name and not self.by_name[name][2]:
            return self.by_name[name]
        return found

    def add(self, field: _Field) -> None:
        if field[2]:
            self.by_uid[field[2]] = field
        self.by_name[field[1]] = field

    def replace(self, old: _Field, new: _Field) -> None:
        for name in [name for name, each in self.by_name.items() if each is old]:
            self.by_name[name] = new
        self.add(new)
