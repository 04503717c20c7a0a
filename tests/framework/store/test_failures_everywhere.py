"""The file system fails, or the process dies, at every single operation of everything that changes a table.

Whatever happens, the table is readable, each part of it is as before or as after, calling again brings it to
the end, and files that nothing refers to go with `remove_orphan_files`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import KILLED, KILLED_AFTER, LOST, REFUSED, FaultyFileSystem, Killed, contents, through
from table_work import WORK, check_no_orphans, check_state, repeat

from lockgate.errors import LockgateError
from lockgate.framework.store import Catalog

pytestmark = pytest.mark.usefixtures("without_lineage")

# Each has a sibling of the same steps among the others.
LONG = {
    *("append to a branch", "create branch", "expire a branch", "fast forward", "rename branch"),
    *("rename tag", "replace tag", "rollback as latest"),
    *("compact vectors", "write a changelog", "rewrite file index", "purge", "migrate table"),
    *("expire to changelogs", "compact to a changelog"),
}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Catalog], None]], Path]:
    """Make the warehouse of a `start` once; tests work on copies of it."""
    made: dict[Callable[[Catalog], None], Path] = {}

    def start(how: Callable[[Catalog], None]) -> Path:
        if how not in made:
            made[how] = tmp_path_factory.mktemp("start") / "warehouse"
            catalog = Catalog(made[how])
            catalog.create_namespace("db")
            how(catalog)
        return made[how]

    return start


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(KILLED, id="killed"),
        pytest.param(LOST, marks=pytest.mark.long, id="lost"),
        pytest.param(REFUSED, marks=pytest.mark.slow, id="refused"),
        pytest.param(KILLED_AFTER, marks=pytest.mark.slow, id="killed after"),
    ],
)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in WORK]
)
def test_a_failure_at_any_operation(
    name: str, how: str, started: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Processes die here, not the machine.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    work = WORK[name]
    origin = started(work.start)
    whole = copied(origin, tmp_path / "whole")
    before, counting = contents(whole, work.table), FaultyFileSystem()
    work.done(through(whole, counting))
    after = contents(whole, work.table)
    assert counting.asked > 1
    # Without a trace is who dies between two changes, wherever that is.
    points = range(counting.asked) if how == REFUSED else sorted(counting.changes)
    for point in points:
        catalog = copied(origin, tmp_path / str(point))
        files = FaultyFileSystem(point, how)
        try:
            work.done(through(catalog, files))
        except (OSError, LockgateError, Killed):
            assert files.failed
        check_state(name, catalog, before, after)
        repeat(work, catalog, after)
        check_no_orphans(catalog)
        shutil.rmtree(tmp_path / str(point))


def copied(origin: Path, target: Path) -> Catalog:
    shutil.copytree(origin, target)
    return Catalog(target)
