"""Segments, journal, index and compaction: nothing is lost, and nothing is counted a second time."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lineage_edges import spread

from lockgate.errors import LineageError, UnsafePathError
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.store.journal import Journal, lines_of
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments
from lockgate.framework.lineage.store.segment_compaction import compact

NOW = 1_700_000_000_000


def shape(target: str = "copy", source: str = "people", kind: str = "INSERT") -> Shape:
    """A process that copies one column."""
    return Shape(kind, Dataset.table("hr", target), (Dataset.table("hr", source),), (("name", 0, "name", 1),))


def run(at: int = NOW, **values: object) -> Run:
    return dataclasses.replace(Run(at, at + 5, who={"user": "ann"}), **values)  # type: ignore[arg-type]  # keywords of several types


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(LocalFileSystem(), str(tmp_path / "lake"))


@pytest.fixture
def index(segments: Segments, tmp_path: Path) -> Index:
    return Index(segments, tmp_path / "cache")


def content(index: Index) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """What the index holds, by names: edges and sums of processes."""
    with index.reading() as database:
        edges = (
            spread(database)
            .execute(
                "SELECT t.name || '.' || a.name, s.name || '.' || b.name, p.kind, e.kinds FROM back e "
                "JOIN field a ON a.id = e.target JOIN dataset t ON t.id = a.dataset "
                "JOIN field b ON b.id = e.source JOIN dataset s ON s.id = b.dataset "
                "JOIN process p ON p.id = e.process"
            )
            .fetchall()
        )
        sums = database.execute(
            "SELECT hash, count, failed, first, last, first_written, written, rows FROM process"
        ).fetchall()
    return sorted(edges), sorted(sums)


def test_a_record_is_read_back(segments: Segments, index: Index) -> None:
    journal = Journal(segments, "app 1/é")
    journal.add(Record(shape(), run(written=3, rows=7)))
    assert journal.flush()
    assert content(index) == (
        [("hr.copy.name", "hr.people.name", "INSERT", 1)],
        [(shape().hash, 1, 0, NOW, NOW + 5, 3, 3, 7)],
    )


def test_equal_shapes_are_one_process_in_any_order(segments: Segments, tmp_path: Path) -> None:
    runs = [run(NOW + number * 1000, written=number + 1, rows=2) for number in range(20)]
    lines = lines_of((shape(), [each]) for each in runs)
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(lines)
        other = Segments(LocalFileSystem(), str(tmp_path / f"lake{seed}"))
        for line in lines:
            other.write([line])
        found.append(content(Index(other, tmp_path / f"cache{seed}")))
    assert found[0] == found[1] == found[2]
    assert found[0][1] == [(shape().hash, 20, 0, NOW, NOW + 19_005, 1, 20, 40)]


def test_many_batches_of_a_stream_are_one_line(segments: Segments, index: Index) -> None:
    journal = Journal(segments)
    stream = shape(kind="STREAM")
    for number in range(400):
        journal.add(Record(stream, run(NOW + number, written=number + 1, rows=1)))
    journal.flush()
    [name] = segments.all_names()
    [line] = segments.read(name).lines
    assert len(line["runs"]) == 2
    assert content(index)[1] == [(stream.hash, 400, 0, NOW, NOW + 404, 1, 400, 400)]


def test_a_million_batches_are_one_process(segments: Segments, index: Index) -> None:
    """As the connector counts them, a hundred in a message."""
    stream, total, at_once = shape(kind="STREAM"), 1_000_000, 100
    journal = Journal(segments)
    for number in range(0, total, at_once):
        last = number + at_once
        journal.add(
            Record(
                stream, run(NOW + last, count=at_once, first_written=number + 1, written=last, rows=at_once)
            )
        )
    journal.flush()
    sums = (stream.hash, total, 0, NOW + at_once, NOW + total + 5, 1, total, total)
    assert content(index)[1] == [sums]
    compact(segments, retain_days=100_000)
    [name] = segments.all_names()
    [line] = segments.read(name).lines
    assert len(line["runs"]) <= 101
    assert content(index)[1] == [sums]
    with index.reading() as database:
        assert database.execute("SELECT count(*) FROM run").fetchone()[0] <= 101
    assert sum(path.stat().st_size for path in index.file().parent.iterdir()) < 1 << 20  # type: ignore[union-attr]  # it was read


def test_what_cannot_be_written_is_kept(
    segments: Segments, index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    class Refuses(LocalFileSystem):
        broken = True

        def write_new(self, path: str, data: bytes) -> None:
            if self.broken:
                raise OSError("disk full")
            super().write_new(path, data)

    files = Refuses()
    journal = Journal(Segments(files, segments.folder.removesuffix("/.lockgate/lineage")))
    journal.add(Record(shape(), run()))
    assert not journal.flush()
    assert not journal.flush()
    assert caplog.text.count("disk full") == 1
    journal.add(Record(shape("other"), run()))
    files.broken = False
    assert journal.flush()
    assert [count for _, count, *_ in content(index)[1]] == [1, 1]


def test_a_damaged_segment_is_named_and_the_others_count(segments: Segments, index: Index) -> None:
    names = [segments.write(lines_of([(shape(each), [run()])])) for each in ("a", "b", "c")]
    path = Path(segments.folder, names[1])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    [(name, text)] = index.refresh().damaged
    assert name == names[1]
    assert "damaged" in text
    assert [edge[0] for edge in content(index)[0]] == ["hr.a.name", "hr.c.name"]
    assert index.refresh().merged == 0


def test_cut_and_empty_segments_are_damaged(segments: Segments, index: Index) -> None:
    for cut in (0, 1, 20):
        path = Path(segments.folder, segments.write(lines_of([(shape(), [run()])])))
        path.write_bytes(path.read_bytes()[:cut])
    assert len(index.refresh().damaged) == 3


@pytest.mark.parametrize("spoil", [b"", b"no database at all" * 1000])
def test_a_damaged_index_is_made_again(segments: Segments, tmp_path: Path, spoil: bytes) -> None:
    segments.write(lines_of([(shape(), [run()])]))
    index = Index(segments, tmp_path / "cache")
    before = content(index)
    path = index.file()
    assert path is not None
    path.write_bytes(spoil)
    assert content(index) == before


def test_the_folder_of_the_index_is_private(segments: Segments, index: Index, tmp_path: Path) -> None:
    content(index)
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(UnsafePathError):
        content(index)


def test_compaction_changes_no_answer(segments: Segments, index: Index, tmp_path: Path) -> None:
    for number in range(12):
        segments.write(lines_of([(shape(f"t{number % 3}"), [run(NOW + number, rows=1, written=number)])]))
    before = content(index)
    planned = compact(segments, retain_days=100_000, dry_run=True)
    assert len(segments.all_names()) == 12
    assert compact(segments, retain_days=100_000) == planned
    assert (planned.segments_before, planned.segments_after, planned.processes, planned.runs) == (
        12,
        1,
        3,
        12,
    )
    assert len(segments.all_names()) == 1
    assert content(index) == before
    assert content(Index(segments, tmp_path / "other")) == before
    assert compact(segments, retain_days=100_000).processes == 0


def test_details_of_old_runs_go_and_their_sums_stay(segments: Segments, index: Index) -> None:
    today = int(time.time() * 1000)
    times = [today - 100 * 86_400_000 + number for number in range(5)] + [today]
    segments.write(lines_of([(shape(), [run(at, rows=1) for at in times])]))
    before = content(index)
    assert compact(segments, retain_days=90).runs == 2
    index.remove()
    assert content(index) == before
    with index.reading() as database:
        assert database.execute("SELECT count(*) FROM run").fetchone() == (2,)


def test_a_killed_compaction_counts_nothing_twice(
    segments: Segments, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of what the compacted segment replaces was not deleted; indexes know none, some or all of it."""
    names = [segments.write(lines_of([(shape(f"t{number}"), [run()])])) for number in range(4)]
    before = content(index)
    partly = Index(segments, tmp_path / "partly")
    hidden = [Path(segments.folder, name) for name in names[2:]]
    kept = [path.read_bytes() for path in hidden]
    for path in hidden:
        path.unlink()
    assert len(content(partly)[0]) == 2
    for path, data in zip(hidden, kept, strict=True):
        path.write_bytes(data)

    def dies(self: Segments, name: str) -> bool:
        if name == names[2]:
            raise KeyboardInterrupt
        return delete(self, name)

    delete = Segments.delete
    monkeypatch.setattr(Segments, "delete", dies)
    with pytest.raises(KeyboardInterrupt):
        compact(segments, retain_days=1000)
    monkeypatch.undo()
    fresh = Index(segments, tmp_path / "fresh")
    assert content(index) == content(partly) == content(fresh) == before
    compact(segments, retain_days=1000)
    later = Index(segments, tmp_path / "later")
    assert content(index) == content(partly) == content(fresh) == content(later) == before


def test_one_process_compacts_at_a_time(segments: Segments) -> None:
    for _ in range(2):
        name = segments.write(lines_of([(shape(), [run()])]))
    lock = Path(segments.folder, name).parent / "compacting"
    lock.write_text(f'{{"host": "h", "process": 1, "at": {time.time()}}}')
    with pytest.raises(LineageError, match="process 1 on h"):
        compact(segments, retain_days=1)
    lock.write_text('{"host": "h", "process": 1, "at": 0}')
    assert compact(segments, retain_days=1).segments_before == 2
    assert not lock.exists()


WRITER = """
import sys
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.store.journal import Journal
from lockgate.framework.lineage.store.lineage_segments import Segments
journal = Journal(Segments(LocalFileSystem(), sys.argv[1]), sys.argv[2])
for number in range(int(sys.argv[3])):
    edge = ("c", 0, "c", 1)
    shape = Shape("INSERT", Dataset.table("w", sys.argv[2]), (Dataset.table("w", "s"),), (edge,))
    journal.add(Record(shape, Run(number, number + 1, rows=1)))
    assert journal.flush()
    print(number, flush=True)
"""


def test_several_writers_one_of_them_killed(segments: Segments, index: Index) -> None:
    """What a writer said to have written is there once, whichever way it ended."""
    folder = segments.folder.removesuffix("/.lockgate/lineage")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, folder, f"w{number}", count], stdout=subprocess.PIPE, text=True
        )
        for number, count in enumerate(("30", "30", "100000"))
    ]
    killed = writers[2]
    assert killed.stdout is not None
    said = [killed.stdout.readline() for _ in range(20)]
    os.kill(killed.pid, signal.SIGKILL)
    said += killed.stdout.read().splitlines()
    for writer in writers:
        writer.communicate()
    counts = {name[-1]: count for name, count in _counts(index)}
    assert counts["0"] == counts["1"] == 30
    assert len(said) <= counts["2"] <= len(said) + 1


def _counts(index: Index) -> list[tuple[str, int]]:
    with index.reading() as database:
        return database.execute(
            "SELECT d.name, count FROM process p JOIN dataset d ON d.id = p.target"
        ).fetchall()
