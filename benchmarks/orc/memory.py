"""How much memory reading a file takes that is larger than it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from harness import emit, note

from lockgate.framework.keys import create_key_file
from lockgate.framework.orc import OrcWriter
from orc import ALLOCATOR
from orc.data import ENCRYPT, people

BENCH = "orc"
READER = Path(__file__).with_name("large_read.py")
_BATCH = 500_000


def peak(folder: Path, gigabytes: float) -> None:
    """The metric `peak_memory_mb_5gb`: the largest resident size of a process that reads 5 GB by batches.

    The file is written here, some rows at a time, and read in a child process, whose pages of the file itself
    are counted too as long as the system keeps them mapped.
    """
    note(f"writing {gigabytes:g} GB")
    path, keys = folder / "large.orc", folder / "keys.json"
    create_key_file(keys, ["pii", "fin"])
    _write(path, keys, int(gigabytes * 1e9))
    note("reading it in a child process")
    # This process tells Arrow to keep what is freed (see __init__.py); the child is to run as users do.
    environment = {name: value for name, value in os.environ.items() if name != ALLOCATOR}
    command = [sys.executable, str(READER), str(path), str(keys)]
    child = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found = json.loads(child.stdout)
    size = path.stat().st_size / 1e9
    path.unlink()
    baseline = (
        f"{found['rows']:,} rows, {size:.2f} GB, {found['seconds']:.0f} s on {found['threads']} threads"
    )
    emit(BENCH, "peak_memory_mb_5gb", found["peak"] / 1e6, "MB", baseline)


def _write(path: Path, keys: Path, size: int) -> None:
    schema = people(0, 1).schema
    with OrcWriter(path, schema, encrypt=ENCRYPT, keys=keys, compression="snappy") as writer:
        for table in _tables():
            writer.write(table)
            if path.stat().st_size >= size:
                return


def _tables() -> Iterator[pa.Table]:
    start = 0
    while True:
        yield people(start, _BATCH)
        start += _BATCH
