"""The folder of a cache is removed by another process before each step of what writes into it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.caches import note_status
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.server.key_server import KeyServer

STEPS = {"open", "os.mkdir", "os.rename", "os.chmod", "os.utime", "os.listdir", "os.scandir", "socket.bind"}


class Neighbour:
    """Removes a folder once, before the step of a number."""

    def __init__(self) -> None:
        self.directory: CacheDirectory | None = None
        self.steps_left = -1
        sys.addaudithook(self._before)

    def _before(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in STEPS or self.directory is None:
            return
        self.steps_left -= 1
        if self.steps_left < 0:
            directory, self.directory = self.directory, None
            directory.discard()

    def removes_before(self, directory: CacheDirectory, step: int) -> None:
        self.directory, self.steps_left = directory, step


@pytest.fixture(scope="module")
def neighbour() -> Neighbour:
    return Neighbour()  # an audit hook stays for the life of the process, so there is one


@pytest.fixture
def disarmed(neighbour: Neighbour) -> Iterator[Neighbour]:
    yield neighbour
    neighbour.directory = None


def locks(directory: CacheDirectory) -> None:
    lock = directory.try_lock()
    assert lock is None or not lock.closed
    if lock is not None:
        lock.close()


def hands_out_a_key(directory: CacheDirectory) -> None:
    directory.in_folder(lambda: KeyServer(directory, lambda: None)).close()


ACTS: dict[str, Callable[[CacheDirectory], object]] = {
    "ensure": CacheDirectory.ensure,
    "hold": lambda directory: directory.hold("driver", [1, 2]),
    "want": lambda directory: directory.want(1, 7),
    "unwant": lambda directory: directory.unwant(1),
    "refuse": lambda directory: directory.refuse(1, {"type": "LookupCacheError", "message": "no"}),
    "release": lambda directory: directory.release("driver"),
    "report": lambda directory: note_status(directory, "driver", {}),
    "wanted": CacheDirectory.wanted,
    "needed": CacheDirectory.needed,
    "reports": CacheDirectory.reports,
    "lock": locks,
    "key": hands_out_a_key,
    "discard": CacheDirectory.discard,
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_folder_that_is_removed_is_made_again(
    tmp_path: Path, disarmed: Neighbour, act: Callable[[CacheDirectory], object]
) -> None:
    directory = CacheDirectory(tmp_path / "cache" / "c")
    for step in range(100):
        directory.ensure()
        disarmed.removes_before(directory, step)
        act(directory)
        if disarmed.directory is not None:  # it has no more steps
            break
    else:
        raise AssertionError("a hundred steps are too many")
    disarmed.directory = None
    directory.hold("driver", [1])
    assert directory.needed() == {1}


def test_a_cache_is_removed_twice(tmp_path: Path) -> None:
    directory = CacheDirectory.create(tmp_path, "c")
    directory.discard()
    directory.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_removed_again_and_again_is_named(tmp_path: Path) -> None:
    directory = CacheDirectory.create(tmp_path, "c")

    def step() -> None:
        directory.discard()
        raise FileNotFoundError("gone")

    with pytest.raises(LookupCacheError, match="removed again and again"):
        directory.in_folder(step)
