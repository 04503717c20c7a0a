"""Reads a file by batches and prints, as JSON, how much memory that took; started as a process of its own."""

from __future__ import annotations

import json
import resource
import sys
import time

from lockgate.framework.orc import EncryptedOrcFile


def main(path: str, keys: str) -> None:
    """Read all of the file at `path`."""
    started, rows = time.monotonic(), 0
    with EncryptedOrcFile(path, keys, strict=True) as file:
        for batch in file.iter_batches():
            rows += batch.num_rows
        found = {"rows": rows, "threads": file.threads, "integrity": file.integrity}
    found["seconds"] = time.monotonic() - started
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
