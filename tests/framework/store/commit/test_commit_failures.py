"""The file system fails at every step of a commit: nothing half visible, and success is reported as such."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockgate.framework.io import LocalFileSystem
from lockgate.framework.store import CommitMessage, DataFileMeta, Table
from lockgate.framework.store.handle import TableContext

MakeTable = Callable[..., Table]
MakeFile = Callable[..., DataFileMeta]
MakeMessage = Callable[..., CommitMessage]

CHANGES = ("write_new", "write_atomic", "delete")


class FailingFileSystem(LocalFileSystem):
    """Fails at the `point`-th change, before or after doing it; `once` or from then on."""

    def __init__(self, point: int, *, after: bool, once: bool) -> None:
        self._left, self._after, self._once = point, after, once
        self.failed = False

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._failing(found) if name in CHANGES else found

    def _failing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            self._left -= 1
            fails = self._left == -1 if self._once else self._left < 0
            if fails and not self._after:
                self.failed = True
                raise OSError("the disk is gone")
            result = call(*arguments)
            if fails:
                self.failed = True
                raise OSError("the disk is gone")
            return result

        return step


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("point", range(6))
def test_a_failure_at_any_step(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage, point: int, after: bool, once: bool
) -> None:
    table = make_table()
    table.commit([message(data_file("first"))])
    before = {path.name for path in (Path(table.location) / "manifest").iterdir()}
    failing = FailingFileSystem(point, after=after, once=once)
    broken = Table(table.identifier, table.location, table.schema, TableContext(failing))
    try:
        snapshot = broken.commit([message(data_file("second"))])
    except OSError:
        assert [each.id for each in table.snapshots()] == [1]
        if once and not after:
            assert {path.name for path in (Path(table.location) / "manifest").iterdir()} == before
    else:
        assert snapshot == table.latest_snapshot()
        assert snapshot.id == 2
    # Readable in any case, and what comes next is complete.
    expected = ["first", "second"] if len(table.snapshots()) == 2 else ["first"]
    last = table.commit([message(data_file("third"))])
    assert [entry.file.file_name for entry in table.manifests.live_files(last)] == [*expected, "third"]
    assert failing.failed or point >= 4
