"""A file system that fails or dies at one operation, whichever it is, and what a table then holds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from lockgate.errors import LockgateError
from lockgate.framework.io import FileSystem, LocalFileSystem
from lockgate.framework.store import Catalog, Table

READS = ("read_bytes", "open_input", "list", "exists", "size")
CHANGES = ("write_new", "write_atomic", "delete", "delete_tree", "make_directory", "move_folder")

# "refused": an error, nothing done; "lost": done, and yet an error; both once. "killed": a process that ends
# before the operation, "killed after": right after it; all that it would do then, cleaning up too, it cannot.
REFUSED, LOST, KILLED, KILLED_AFTER = "refused", "lost", "killed", "killed after"


class Killed(BaseException):
    """What a dead process does next: nothing."""


class FaultyFileSystem(LocalFileSystem):
    """Counts operations; the `point`-th goes wrong as `how` says. Opening and closing a file are two.

    `of_changes` counts no reads: how often a session of Spark looks at a table depends on the time, too.
    """

    def __init__(self, point: int = -1, how: str = REFUSED, *, of_changes: bool = False) -> None:
        self.asked = 0
        self.changes: set[int] = set()
        self._point, self._how, self._of_changes = point, how, of_changes

    @property
    def failed(self) -> bool:
        return 0 <= self._point < self.asked

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name in READS:
            return lambda *arguments: self._step(lambda: found(*arguments))
        if name in CHANGES:
            return lambda *arguments: self._step(lambda: found(*arguments), change=True)
        return found

    def _step(self, call: Callable[[], Any], *, change: bool = False) -> Any:
        if self._of_changes and not change:
            return call()
        number, self.asked = self.asked, self.asked + 1
        if change:
            self.changes.add(number)
        if self._point < 0 or number < self._point:
            return call()
        if number > self._point:
            if self._how in (KILLED, KILLED_AFTER):
                raise Killed
            return call()
        if self._how in (LOST, KILLED_AFTER):
            done = call()
            if hasattr(done, "close"):
                done.close()
        raise Killed if self._how in (KILLED, KILLED_AFTER) else OSError("the disk is gone")

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        inner = super().create(path)
        file = self._step(inner.__enter__, change=True)
        try:
            yield file
        except BaseException as error:
            inner.__exit__(type(error), error, None)
            raise
        try:
            self._step(lambda: inner.__exit__(None, None, None), change=True)
        except BaseException:
            inner.__exit__(LockgateError, LockgateError("given up"), None)
            raise


def through(catalog: Catalog, files: FileSystem) -> Catalog:
    """The same warehouse, reached through another file system."""
    other = copy.copy(catalog)
    other.file_system = files
    return other


Contents = dict[tuple[str, str, Any], Any]


def contents(catalog: Catalog, name: str = "db.t") -> Contents:
    """All that can be read of a table: its columns, newest rows, snapshots, tags, and its branches' too."""
    if not catalog.table_exists(name):
        return {}
    table = catalog.load_table(name)
    found = _line(table, "")
    for branch in table.branches():
        found |= _line(catalog.load_table(f"{name}$branch_{branch}"), branch)
    return found


def _line(table: Table, line: str) -> Contents:
    found: Contents = {(line, "columns", ""): str(table.schema.arrow_schema)}
    found[line, "newest", ""] = _rows(table)
    for snapshot in table.snapshots():
        found[line, "snapshot", snapshot.id] = _rows(table, snapshot_id=snapshot.id)
    for tag in table.tags():
        found[line, "tag", tag.name] = _rows(table, tag=tag.name)
    return found


def _rows(table: Table, **what: Any) -> str:
    rows = table.read(**what)
    return str(sorted(rows.to_pylist(), key=repr))


def check_between(found: Contents, before: Contents, after: Contents) -> None:
    """Each part of `found` is as before or as after, and nothing that both have is missing."""
    for part, value in found.items():
        assert value in [state[part] for state in (before, after) if part in state], part
    assert before.keys() & after.keys() <= found.keys()
