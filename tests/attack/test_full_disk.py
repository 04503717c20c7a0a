"""A disk that is full: a named error, nothing visible by half, and everything well once there is room."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lockgate.errors import LockgateError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.history.expire import expire_snapshots
from lockgate.framework.store.history.orphans import remove_orphan_files
from lockgate.framework.store.schema.schema import now_millis

BYTES = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte; the test is skipped where this process may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={BYTES}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.binary())])


def make(folder: Path) -> Table:
    catalog = Catalog(str(folder / "lake"))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", Schema.from_arrow(SCHEMA, primary_keys=["id"]))


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


def fill(folder: Path) -> Path:
    """Take what room there is, but for some bytes."""
    path = folder / "ballast"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(descriptor, b"\0" * 512)
    os.close(descriptor)
    return path


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


def test_a_limit_of_a_file_s_size(tmp_path: Path) -> None:
    """The same without a mount: a process that may write files of some kilobytes only."""
    make(tmp_path).append(rows(0, 20, 100))
    program = f"""
        import resource, signal, sys
        sys.path[:0] = {[str(Path(__file__).parent)]!r}
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
