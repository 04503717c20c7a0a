"""Damage to segments and the index, and processes that are killed or disturb each other: no wrong answer."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import CorruptFileError, LineageError
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.lineage import Dataset, Run, Shape
from lockgate.framework.lineage.store import edges, segment_compaction
from lockgate.framework.lineage.store.journal import lines_of
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments
from lockgate.framework.lineage.store.segment_compaction import compact
from lockgate.framework.lineage.store.segment_file import decoded, encoded


def shape(number: int) -> Shape:
    source = Dataset.table("hr", f"s{number % 3}")
    columns = tuple((f"c{column}", 0, f"c{column}", 1) for column in range(6))
    return Shape("INSERT", Dataset.table("hr", f"t{number}"), (source,), columns)


def write(segments: Segments, count: int) -> None:
    for number in range(count):
        segments.write(lines_of([(shape(number % 40), [Run(number, number + 1, rows=1)])]))


Content = tuple[list[Any], list[Any]]


def content(index: Index) -> Content:
    """Edges and sums by names, in an order of their own."""
    with index.reading() as database:
        names = dict(
            database.execute(
                "SELECT f.id, d.name || '.' || f.name FROM field f JOIN dataset d ON d.id = f.dataset"
            )
        )
        found = [(names[a], names[b], kinds) for a, b, _, kinds in edges.all_edges(database).tolist()]
        sums = database.execute("SELECT hash, count, rows, first, last FROM process").fetchall()
    return sorted(found), sorted(sums)


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(LocalFileSystem(), str(tmp_path / "lake"))


@pytest.mark.parametrize("replaces", [(), ("2026-01-01/a.jsonl.zst", "2026-01-01/b.jsonl.zst")])
@pytest.mark.parametrize("bits", [0x01, 0x80, 0xFF])
def test_no_byte_of_a_segment_can_change(replaces: tuple[str, ...], bits: int) -> None:
    data = encoded(lines_of([(shape(1), [Run(1, 2)])]), replaces)
    whole = decoded(data, "s")
    refused = 0
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]
        try:
            assert decoded(flipped, "s") == whole
        except CorruptFileError:
            refused += 1
    assert refused > len(data) * 0.9
    for length in range(len(data) - 1):
        with pytest.raises(CorruptFileError):
            decoded(data[:length], "s")


@pytest.mark.parametrize("seed", range(3))
def test_any_page_of_the_index_can_be_damaged(segments: Segments, tmp_path: Path, seed: int) -> None:
    """The index is built again, at once or when it is asked again; no answer is wrong."""
    write(segments, 50)
    chance = random.Random(seed)
    index = Index(segments, tmp_path / "cache")
    before = content(index)
    for at in range(0, file_of(index).stat().st_size, 4096):
        edges._kept.clear()
        path = file_of(index)
        data = bytearray(path.read_bytes())
        data[at : at + 4096] = bytes(4096) if seed == 0 else chance.randbytes(4096)
        path.write_bytes(data)
        with suppress(LineageError):
            assert content(index) == before
        assert content(index) == before


def test_an_index_of_another_version_is_made_again(segments: Segments, tmp_path: Path) -> None:
    import sqlite3

    write(segments, 5)
    index = Index(segments, tmp_path / "cache")
    before = content(index)
    database = sqlite3.connect(file_of(index))
    database.executescript("DROP TABLE edges; CREATE TABLE back(x); PRAGMA user_version = 2")
    database.close()
    assert content(index) == before


class Dies(LocalFileSystem):
    """A store whose user is killed at one of its changes: before it, or right after."""

    def __init__(self, at: int, *, after: bool) -> None:
        super().__init__()
        self.left, self.after, self.dead = at, after, False

    def _do(self, change: Callable[[], Any]) -> Any:
        self.left -= 1
        if self.left < 0 and not self.after:
            self.dead = True
        if self.dead:
            raise KeyboardInterrupt
        found = change()
        if self.left < 0:
            self.dead = True
            raise KeyboardInterrupt
        return found

    def write_new(self, path: str, data: bytes) -> None:
        self._do(lambda: LocalFileSystem.write_new(self, path, data))

    def delete(self, path: str) -> bool:
        return bool(self._do(lambda: LocalFileSystem.delete(self, path)))


@pytest.mark.parametrize("after", [False, True])
def test_a_compaction_killed_at_any_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    at, died = 0, True
    while died:
        segments = Segments(LocalFileSystem(), str(tmp_path / f"lake{at}"))
        write(segments, 4)
        index = Index(segments, tmp_path / f"cache{at}")
        before = content(index)
        dies = Dies(at, after=after)
        with suppress(KeyboardInterrupt):
            compact(Segments(dies, str(tmp_path / f"lake{at}")), retain_days=100_000)
        died = dies.dead
        fresh = Index(segments, tmp_path / f"fresh{at}")
        assert content(index) == content(fresh) == before
        monkeypatch.setattr(segment_compaction, "_STALE_SECONDS", -1.0)
        compact(segments, retain_days=100_000)
        assert len(segments.all_names()) == 1
        assert content(index) == content(fresh) == before
        at += 1
    assert at > 6


ASKS = """
import sys, time
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from lockgate.errors import LineageError
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments
from test_damage import content
index = Index(Segments(LocalFileSystem(), sys.argv[1]), Path(sys.argv[2]))
end = time.monotonic() + float(sys.argv[4])
answers, removed, first = 0, 0, None
while time.monotonic() < end or not answers:
    try:
        found = content(index)
    except LineageError:
        removed += 1
        continue
    first = first or found
    assert found == first
    answers += 1
print(len(first[0]), len(first[1]), sum(each[1] for each in first[1]), flush=True)
"""


def file_of(index: Index) -> Path:
    found = index.file()
    assert found is not None
    return found


def asking(segments: Segments, path: Path, seconds: float) -> subprocess.Popen[str]:
    lake = segments.folder.removesuffix("/.lockgate/lineage")
    command = [sys.executable, "-c", ASKS, lake, str(path), str(Path(__file__).parent), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return out


@pytest.mark.long
def test_processes_that_build_one_index_at_a_time(segments: Segments, tmp_path: Path) -> None:
    write(segments, 200)
    path = tmp_path / "cache"
    for delay in (0.0, 0.3, 0.6, 0.9):
        Index(segments, path).remove()
        edges._kept.clear()
        askers = [asking(segments, path, 0.0) for _ in range(3)]
        time.sleep(delay)
        os.kill(askers[0].pid, signal.SIGKILL)
        assert {ended(each) for each in askers[1:]} == {"240 40 200\n"}
        askers[0].communicate()


def test_the_index_may_be_deleted_between_questions(segments: Segments, tmp_path: Path) -> None:
    write(segments, 20)
    index = Index(segments, tmp_path / "cache")
    before = content(index)
    with index.reading() as database:
        index.remove()
        # A question that is being answered keeps its file.
        assert len(edges.all_edges(database)) == len(before[0])
        assert content(index) == before
    file_of(index).unlink()
    assert content(index) == before


@pytest.mark.parametrize(
    "seconds", [1.0, pytest.param(8.0, marks=pytest.mark.long)], ids=["a second", "longer"]
)
def test_the_index_may_be_deleted_while_processes_ask(
    segments: Segments, tmp_path: Path, seconds: float
) -> None:
    """Files disappear one by one, in any order; no answer is wrong."""
    write(segments, 200)
    folder, chance, deleted = tmp_path / "cache", random.Random(5), 0
    askers = [asking(segments, folder, seconds) for _ in range(3)]
    while any(each.poll() is None for each in askers):
        files = list(folder.glob("index*"))
        for path in chance.sample(files, len(files)):
            path.unlink(missing_ok=True)
            deleted += 1
        time.sleep(chance.random() / 5)
    assert {ended(each) for each in askers} == {"240 40 200\n"}
    assert deleted > 3
