"""A disk that is full: a named error, nothing visible by half, and everything well once there is room."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from full_disk import fill, small_disk

from lockgate.errors import LockgateError
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.store.journal import Journal
from lockgate.framework.lineage.store.lineage_segments import Segments
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.commit.hash_index import hash_entries, read_hashes
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import now_millis
from lockgate.pushdown import col


@pytest.fixture(name="small_disk")
def fixture_of_a_small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    with small_disk(tmp_path / "disk") as folder:
        yield folder


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.binary())])


def make(folder: Path, **options: str) -> Table:
    catalog = Catalog(str(folder / "lake"))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", Schema.from_arrow(SCHEMA, primary_keys=["id"], options=options))


def rows(start: int, count: int, size: int) -> pa.Table:
    noise = np.random.default_rng(start)
    ids = pa.array(range(start, start + count), pa.int64())
    return pa.table({"id": ids, "v": [noise.bytes(size) for _ in range(count)]}, schema=SCHEMA)


def clean(table: Table) -> None:
    """Remove what nothing refers to, however young."""
    older = now_millis()
    while now_millis() == older:
        time.sleep(0.001)
    remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True)


def failure(work: Callable[[], object]) -> LockgateError | None:
    try:
        work()
    except LockgateError as error:
        return error
    return None


def test_writing_and_upkeep_on_a_full_disk(small_disk: Path) -> None:
    table = make(small_disk)
    table.append(rows(0, 20, 100))
    with pytest.raises((LockgateError, OSError)):
        table.append(rows(100, 3000, 1000))
    assert table.read().num_rows == 20
    ballast = fill(small_disk)
    for work in (
        lambda: table.append(rows(50, 10, 1000)),
        lambda: table.delete(rows(0, 5, 1).select(["id"])),
        lambda: table.create_tag("kept"),
        lambda: table.overwrite(rows(0, 5, 1000)),
    ):
        with pytest.raises((LockgateError, OSError), match=r"(?i)no space|full|disk"):
            work()
    assert sorted(table.read(columns=["id"]).column("id").to_pylist()) == list(range(20))
    ballast.unlink()
    table.append(rows(50, 10, 100))
    expire_snapshots(table, retain_max=1, retain_min=1)
    clean(table)
    assert table.read().num_rows == 30


KINDS = {
    "Parquet": {"file.format": "parquet"},
    "file indexes": {"file-index.bloom-filter.columns": "id", "file-index.in-manifest-threshold": "0"},
    "dynamic buckets": {"bucket": "-1", "dynamic-bucket.target-row-num": "5"},
}
PAGE = 4096
# Each write of the test needs less room than this, and more than none.
MOST_PAGES = 16


@pytest.mark.parametrize("kind", KINDS)
def test_any_file_of_a_write_may_be_the_one_without_room(small_disk: Path, kind: str) -> None:
    """With more room a write fails later: at its data file, its index, its manifests, its snapshot."""
    table = make(small_disk, **KINDS[kind])
    table.append(rows(0, 5, 100))
    expected, refused = list(range(5)), 0
    for pages in range(MOST_PAGES):
        ballast = fill(small_disk)
        os.truncate(ballast, ballast.stat().st_size - pages * PAGE)
        new = rows(5 + 5 * pages, 5, 100)
        error = failure(lambda new=new: table.append(new))
        if error is None:
            expected += new["id"].to_pylist()
        else:
            assert re.search(r"(?i)no space|full|disk", str(error)), error
            refused += 1
        ballast.unlink()
        assert sorted(table.read(columns=["id"])["id"].to_pylist()) == expected
        clean(table)
    assert 2 < refused < MOST_PAGES, "some writes fail, and some do not"
    table.append(rows(1000, 5, 100))
    expected += range(1000, 1005)
    for number in (*expected, 999):
        found = table.read(predicate=col("id") == number, columns=["id"])["id"].to_pylist()
        assert found == [number] * (number in expected)
    hashed = hash_entries(table, table.latest_snapshot())
    for entries in hashed.values():
        assert sum(len(each) for each in read_hashes(table, entries).values()) == len(expected)
    assert bool(hashed) == (kind == "dynamic buckets")
    named = [
        path.name for path in Path(table.location).rglob("*") if path.name.endswith((".index", ".parquet"))
    ]
    assert bool(named) == (kind != "dynamic buckets")


def test_lineage_waits_until_there_is_room(small_disk: Path) -> None:
    segments = Segments(LocalFileSystem(), str(small_disk / "lake"))
    journal = Journal(segments)
    tables = Dataset.table("hr", "copy"), (Dataset.table("hr", "people"),)
    shape = Shape("INSERT", *tables, (("name", 0, "name", 1),))
    journal.add(Record(shape, Run(1, 2)))
    assert journal.flush()
    ballast = fill(small_disk)
    journal.add(Record(shape, Run(3, 4)))
    assert not journal.flush()
    assert journal.waiting() == 1
    [name] = segments.all_names()
    ballast.unlink()
    assert journal.flush()
    assert len(segments.all_names()) == 2
    for each in segments.all_names():
        assert segments.read(each)
    assert name in segments.all_names()
    assert sorted(path.suffix for path in small_disk.rglob("*") if path.is_file()) == [".zst", ".zst"]


def test_a_limit_of_a_file_s_size(tmp_path: Path) -> None:
    """The same without a mount: a process that may write files of some kilobytes only."""
    make(tmp_path).append(rows(0, 20, 100))
    program = f"""
        import resource, signal, sys
        sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]!r}
        from test_full_disk import rows
        from lockgate.framework.store import Catalog
        table = Catalog({str(tmp_path / "lake")!r}).load_table("db.t")
        data = rows(100, 3000, 1000)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        try:
            table.append(data)
        except Exception as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip(), "the writer must be told"
    table = Catalog(str(tmp_path / "lake")).load_table("db.t")
    assert table.read().num_rows == 20
    # What the writer had begun is gone, or waits for the cleaning of orphans; nothing refers to it.
    clean(table)
    assert len(list(Path(table.location).rglob("data-*"))) == 1
