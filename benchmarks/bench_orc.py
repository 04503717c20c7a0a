#!/usr/bin/env python3
"""The figures for ORC files: reading, writing, lookups, changing keys, memory, and Spark on the same files.

Each is one JSON line on standard output. `--rows` makes the files smaller, `--only` measures some parts only,
`--gigabytes` sets the size of the file whose reading is watched for memory. Takes about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness import describe_machine, note
from orc import memory, point, reads, spark_scan, writes
from orc.data import CODECS, Files, make_files

ROWS = 8_000_000
REPETITIONS = 7
GIGABYTES = 5.0


def main() -> int:
    """Measure everything, or what is asked for."""
    arguments = _arguments()
    describe_machine()
    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-orc-"))
    try:
        for codec in CODECS:
            if set(arguments.only) & set(PARTS):
                note(f"writing {arguments.rows:,} rows with {codec}")
                files = make_files(folder, arguments.rows, codec)
                for name, part in PARTS.items():
                    if name in arguments.only:
                        part(files, arguments.repetitions)
                files.delete()
        if "point" in arguments.only:
            point.point_row_groups(folder, arguments.rows)
        if "memory" in arguments.only:
            memory.peak(folder, arguments.gigabytes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


PARTS: dict[str, Callable[[Files, int], None]] = {
    "cpu": reads.cpu_ratios,
    "threads": reads.two_threads,
    "write": writes.write_cpu_ratio,
    "rekey": writes.rekey_gb_per_s,
    "spark": spark_scan.scan_ratio,
    "native": spark_scan.rows_per_core,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench orc", description=__doc__)
    names = [*PARTS, "point", "memory"]
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of each file (default {ROWS:,})")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="runs behind each median")
    parser.add_argument("--gigabytes", type=float, default=GIGABYTES, help="size of the large file")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="parts to measure")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
