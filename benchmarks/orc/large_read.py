"""Reads a file by batches and prints, as JSON, how much memory that took; started as a process of its own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from lockgate.framework.orc import EncryptedOrcFile


def main(path: str, keys: str) -> None:
    """Read all of the file at `path`."""
    started, rows = time.monotonic(), 0
    with EncryptedOrcFile(path, keys, strict=True) as file:
        for batch in file.iter_batches():
            rows += batch.num_rows
        found = {"rows": rows, "threads": file.threads, "integrity": file.integrity}
    found["seconds"] = time.monotonic() - started
    found["peak"] = peak_bytes()
    print(json.dumps(found))


def peak_bytes() -> int:
    """The most memory that this process had resident."""
    # Not resource.getrusage, which starts from what the parent had when it forked.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not tell the peak of a process's memory in /proc/self/status")


if __name__ == "__main__":
    main(*sys.argv[1:])
