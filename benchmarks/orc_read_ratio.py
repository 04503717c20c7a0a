"""What decryption costs: reading an encrypted ORC file against reading its plain twin with pyarrow."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
from harness import emit, interleaved, ratio

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table

ROWS = 1_500_000
RUNS = 9
ENCRYPT = "pii:ssn,email,born;fin:salary,score"


def measure(rows: int = ROWS, runs: int = RUNS) -> list[dict[str, Any]]:
    """The metric `orc_read_cpu_ratio`: CPU of an encrypted read over CPU of a plain one.

    Both files hold the same rows (8 columns, 5 of them encrypted), are warm in the page cache and are read in
    turns in this process; the value is the median of the ratios of the turns. Snappy, which decodes faster
    and so shows more of the decryption, has its own metric.
    """
    keys = MemoryKeyProvider({"pii@0": os.urandom(16), "fin@0": os.urandom(32)})
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for compression in ("zstd", "snappy"):
            plain, encrypted = Path(folder, "plain.orc"), Path(folder, "encrypted.orc")
            table = people(rows)
            write_table(table, plain, compression=compression)
            write_table(table, encrypted, encrypt=ENCRYPT, keys=keys, compression=compression)
            del table
            results.append(_compare(plain, encrypted, keys, compression, runs))
    return results


def people(rows: int) -> pa.Table:
    """Rows of the kind that is protected: numbers, names, dates and amounts."""
    rng = random.Random(1)
    numbers = [rng.randrange(10**9) for _ in range(rows)]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "ssn": pa.array([f"{number:09d}" for number in numbers]),
            "email": pa.array([f"person{number}@example.org" for number in numbers]),
            "born": pa.array([number % 30_000 for number in numbers], pa.int32()).cast(pa.date32()),
            "salary": pa.array(numbers, pa.int64()),
            "score": pa.array([number / 7.0 for number in numbers]),
            "city": pa.array([f"city {number % 500}" for number in numbers]),
            "hits": pa.array([number % 1000 for number in numbers], pa.int32()),
        }
    )


def _compare(
    plain: Path, encrypted: Path, keys: MemoryKeyProvider, compression: str, runs: int
) -> dict[str, Any]:
    def read_plain() -> pa.Table:
        return pyarrow.orc.ORCFile(pa.memory_map(str(plain))).read()

    def read_encrypted() -> pa.Table:
        with EncryptedOrcFile(encrypted, keys, strict=True) as file:
            return file.read()

    if not read_plain().equals(read_encrypted()):
        raise AssertionError("the two files do not hold the same rows")
    seconds = interleaved({"plain": read_plain, "encrypted": read_encrypted}, runs, clock=time.process_time)
    return {
        "bench": "main",
        "metric": "orc_read_cpu_ratio" if compression == "zstd" else f"orc_read_cpu_ratio_{compression}",
        "value": ratio(seconds["encrypted"], seconds["plain"]),
        "unit": "ratio",
        "baseline": f"pyarrow reads the plain twin in {statistics.median(seconds['plain']):.3f} s of CPU",
    }


def main() -> None:
    """Print the figures."""
    for figure in measure():
        emit(**figure)


if __name__ == "__main__":
    main()
