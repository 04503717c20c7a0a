"""What encryption costs a writer, and how fast files are put under other keys."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.orc
from harness import emit, interleaved, note, ratio

from lockgate.framework.orc import rekey, write_table
from lockgate.framework.orc.write.writer import DICTIONARY_THRESHOLD, STRIPE_SIZE
from orc.data import ENCRYPT, Files, people

BENCH = "orc"
# As many rows as stay in memory next to what the writers need.
_MOST_ROWS = 2_000_000


def write_cpu_ratio(files: Files, repetitions: int) -> None:
    """The metric `write_cpu_ratio`: CPU of an encrypted write (`nullify`) over Arrow's of the same rows.

    Both write one table that is in memory, with the same settings, in turns, in this process.
    """
    table = people(0, min(files.rows, _MOST_ROWS))
    note(f"writing {table.num_rows:,} rows with {files.codec}, plain and encrypted")
    path = files.plain.parent / "written.orc"
    seconds = interleaved(
        {
            "plain": lambda: write_plain(table, path, files.codec),
            "encrypted": lambda: write_encrypted(table, path, files),
        },
        repetitions,
        clock=time.process_time,
    )
    baseline = f"pyarrow writes the same rows in {median(seconds['plain']):.3f} s of CPU"
    emit(
        BENCH,
        files.metric("write_cpu_ratio"),
        ratio(seconds["encrypted"], seconds["plain"]),
        "ratio",
        baseline,
    )
    path.unlink()


def rekey_gb_per_s(files: Files, repetitions: int) -> None:
    """The metric `rekey_gb_per_s`: billions of bytes of the file over seconds of CPU.

    The source is warm in the page cache; its tags are checked, and the copy bears new ones.
    """
    note(f"putting {files.rows:,} rows of {files.codec} under other keys")
    size = files.encrypted.stat().st_size
    path = files.encrypted.parent / "rekeyed.orc"
    seconds = interleaved(
        {
            "rekey": lambda: rekey(files.encrypted, path, files.keys),
            "copy": lambda: copy(files.encrypted, path),
        },
        repetitions,
        clock=time.process_time,
    )
    baseline = f"a plain copy through memory: {size / median(seconds['copy']) / 1e9:.2f} GB/s"
    emit(BENCH, files.metric("rekey_gb_per_s"), size / median(seconds["rekey"]) / 1e9, "GB/s", baseline)
    path.unlink()


def write_plain(table: pa.Table, path: Path, codec: str) -> None:
    """Arrow's own write, with the settings that Lockgate has by default."""
    pyarrow.orc.write_table(
        table,
        str(path),
        compression=codec,
        stripe_size=STRIPE_SIZE,
        dictionary_key_size_threshold=DICTIONARY_THRESHOLD,
    )


def write_encrypted(table: pa.Table, path: Path, files: Files) -> None:
    """The same with five of eight columns encrypted, and null in their place."""
    write_table(table, path, compression=files.codec, encrypt=ENCRYPT, keys=files.keys)


def copy(source: Path, target: Path) -> None:
    """Read and write every byte."""
    with open(source, "rb") as old, open(target, "wb") as new:
        while data := old.read(8 << 20):
            new.write(data)
