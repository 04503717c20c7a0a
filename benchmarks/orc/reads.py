"""What decryption and verification cost a reader, against Arrow reading the same rows unencrypted."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.orc
from harness import emit, interleaved, note, ratio

from lockgate.framework.orc import EncryptedOrcFile
from orc.data import Files

BENCH = "orc"


def cpu_ratios(files: Files, repetitions: int) -> None:
    """The metrics `read_cpu_ratio` and `read_verified_cpu_ratio`: one thread, CPU over Arrow's.

    The files are warm in the page cache and read whole, in turns, in this process.
    """
    note(f"reading {files.rows:,} rows of {files.codec}, one thread")
    check(files)
    seconds = interleaved(
        {
            "plain": lambda: read_plain(files),
            "read": lambda: read_encrypted(files, integrity="ignore"),
            "verified": lambda: read_encrypted(files, integrity="verify"),
        },
        repetitions,
        clock=time.process_time,
    )
    baseline = f"pyarrow reads the plain twin in {median(seconds['plain']):.3f} s of CPU"
    emit(BENCH, files.metric("read_cpu_ratio"), ratio(seconds["read"], seconds["plain"]), "ratio", baseline)
    emit(
        BENCH,
        files.metric("read_verified_cpu_ratio"),
        ratio(seconds["verified"], seconds["plain"]),
        "ratio",
        baseline,
    )


def two_threads(files: Files, repetitions: int) -> None:
    """The metric `read_two_threads_wall_ratio`: elapsed time with two threads over that with one."""
    note(f"reading {files.rows:,} rows of {files.codec}, two threads")
    seconds = interleaved(
        {
            "one": lambda: read_encrypted(files),
            "two": lambda: read_encrypted(files, threads=2),
            "plain": lambda: read_plain(files),
        },
        repetitions,
    )
    baseline = f"one thread {median(seconds['one']):.3f} s, pyarrow {median(seconds['plain']):.3f} s"
    emit(
        BENCH,
        files.metric("read_two_threads_wall_ratio"),
        ratio(seconds["two"], seconds["one"]),
        "ratio",
        baseline,
    )


def read_plain(files: Files) -> pa.Table:
    """The rows by Arrow alone."""
    return pyarrow.orc.ORCFile(pa.memory_map(str(files.plain))).read()


def read_encrypted(files: Files, *, threads: int = 1, **options: Any) -> pa.Table:
    """The rows by Lockgate."""
    with EncryptedOrcFile(files.encrypted, files.keys, strict=True, threads=threads, **options) as file:
        return file.read()


def check(files: Files) -> None:
    """Raise unless both files hold the same rows, and the encrypted one is verified."""
    with EncryptedOrcFile(files.encrypted, files.keys, strict=True) as file:
        if file.integrity != "verified":
            raise AssertionError(f"the encrypted file is {file.integrity}, not verified")
    if not read_plain(files).equals(read_encrypted(files)):
        raise AssertionError("the two files do not hold the same rows")


def point_lookup(files: Files, function: Callable[[Files], float]) -> None:
    """The metric `point_row_groups_share`: how many of the row groups a lookup of one value decodes."""
    emit(BENCH, files.metric("point_row_groups_share"), function(files), "share", None)
