"""Segments in hard places: stores of objects, clocks that jump, writers that die, several ways to a store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hdfs_on_disk import OnDisk
from s3_memory import MemoryClient

from lockgate.framework.access import Principal
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.io.hdfs import HdfsFileSystem
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.store.journal import Journal
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments
from lockgate.framework.lineage.store.segment_compaction import compact
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.store import Catalog

NOW = 1_700_000_000_000


def record(target: str, at: int = NOW) -> Record:
    edge = ("name", 0, "name", 1)
    shape = Shape("INSERT", Dataset.table("hr", target), (Dataset.table("hr", "people"),), (edge,))
    return Record(shape, Run(at, at + 5, rows=1))


def counts(segments: Segments, folder: Path) -> dict[str, int]:
    """The runs of each target, by an index that knows nothing before."""
    with Index(segments, folder).reading() as database:
        rows = database.execute(
            "SELECT d.name, p.count FROM process p JOIN dataset d ON d.id = p.target"
        ).fetchall()
    return {name.removeprefix("hr."): count for name, count in rows}


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """Folders for indexes, each new."""
    return (tmp_path / f"index{number}" for number in range(1_000_000))


@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_segments_of_several_drivers(
    tmp_path: Path, folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    if store == "s3":
        client = MemoryClient()
        monkeypatch.setattr("lockgate.framework.io.s3.make_client", lambda settings: client)
        catalog = Catalog("s3://bucket/lake")
        segments = Segments(catalog.file_system, catalog.warehouse)
    else:
        segments = Segments(HdfsFileSystem("", {}, OnDisk()), str(tmp_path / "lake"))
    journals = [Journal(segments, f"driver {number}") for number in range(3)]
    for journal in journals:
        for target in ("a", "b"):
            journal.add(record(target))
        assert journal.flush()
    assert counts(segments, next(folders)) == {"a": 3, "b": 3}
    assert compact(segments, retain_days=100_000).segments_after == 1
    assert counts(segments, next(folders)) == {"a": 3, "b": 3}


def test_a_clock_that_jumps_loses_nothing(
    tmp_path: Path, folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same moment again, a day long ago, one far away, and a run that ends before it began."""
    segments = Segments(LocalFileSystem(), str(tmp_path / "lake"))
    journal, index = Journal(segments), Index(segments, next(folders))
    for number, moment in enumerate((1.7e9, 1.7e9, 1.0, 4e9, 1.7e9 - 86_400)):
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        at = int(moment * 1000)
        journal.add(Record(record("a").shape, Run(at + 5, at - number)))
        assert journal.flush()
        assert index.refresh().merged == 1
    monkeypatch.undo()
    assert len(segments.days()) == 4
    for _ in range(2):
        assert counts(segments, next(folders)) == {"a": 5}
        with index.reading() as database:
            assert database.execute("SELECT count, first, last FROM process").fetchall() == [
                (5, 1005, 4_000_000_000_000 - 3)
            ]
        compact(segments, retain_days=100_000)


class Died(BaseException):
    """The end of a process; nothing catches it on its way."""


class Dies(LocalFileSystem):
    """A store whose process dies at one of its changes: just before it, or just after."""

    def __init__(self, at: int, *, after: bool) -> None:
        super().__init__()
        self.left, self.after = at, after

    def _count(self) -> bool:
        self.left -= 1
        if self.left < 0 or (self.left == 0 and not self.after):
            raise Died
        return self.left == 0

    def write_new(self, path: str, data: bytes) -> None:
        dies = self._count()
        super().write_new(path, data)
        if dies:
            raise Died

    def delete(self, path: str) -> bool:
        dies = self._count()
        deleted = super().delete(path)
        if dies:
            raise Died
        return deleted


def test_a_process_that_dies_at_any_change_counts_nothing_twice(
    tmp_path: Path, folders: Iterator[Path]
) -> None:
    """What was flushed is there once; what was being flushed once or not at all."""
    number, survived = 0, False
    while not survived:
        number += 1
        for after in (False, True):
            lake = str(tmp_path / f"lake{number}{after}")
            survived = _lives(Dies(number, after=after), lake, next(folders), next(folders))
    assert number > 8


def _lives(files: Dies, lake: str, early: Path, late: Path) -> bool:
    """Flush, compact, flush and compact again, then look with an index that was there and a new one."""
    segments = Segments(files, lake)
    sound = Segments(LocalFileSystem(), lake)
    flushed, tried = 0, 0
    try:
        for _ in range(2):
            journal = Journal(segments)
            for _ in range(2):
                tried += 1
                journal.add(record("a", NOW + tried))
                assert journal.flush()
                flushed += 1
                counts(sound, early)
            compact(segments, retain_days=100_000)
        lives = True
    except Died:
        lives = False
    found = counts(sound, late).get("a", 0)
    assert flushed <= found <= tried
    assert counts(sound, early).get("a", 0) == found
    for lock in Path(lake).rglob("compacting"):
        lock.unlink()
    compact(sound, retain_days=100_000)
    assert counts(sound, early).get("a", 0) == found
    return lives


def test_each_way_to_a_store_has_its_own_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials of one catalog write nothing for another one; answers have what both recorded."""
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path / "index"))
    path = str(tmp_path / "lake")
    first, again = Catalog(path), Catalog(path)
    ann, bob = (Catalog(path, principal=Principal(user)) for user in ("ann", "bob"))
    other = Catalog(path)
    other.file_system_options = {"secret-key": "b"}
    elsewhere = Catalog(str(tmp_path / "elsewhere"))
    lineages = [lineage_of(each) for each in (first, ann, bob, other, elsewhere)]
    assert len({id(each) for each in lineages}) == 5
    assert lineage_of(again) is lineages[0]
    assert [each.catalog for each in lineages] == [first, ann, bob, other, elsewhere]
    for number, each in enumerate(lineages):
        each.journal.add(record(f"t{number}"))
    assert "secret" not in repr(lineages[3])
    with lineages[0].reading() as database:
        names = {name for (name,) in database.execute("SELECT name FROM dataset")}
    assert names == {"hr.people", "hr.t0", "hr.t1", "hr.t2", "hr.t3"}
    assert lineages[4].journal.waiting() == 1
