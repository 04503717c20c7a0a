"""Commits to a table in an S3-compatible store, as one of several writers.

s3_commit_worker.py ENDPOINT WAREHOUSE NAME COUNT    append COUNT files to db.t, one after the other
"""

from __future__ import annotations

import sys

from s3_server import options_for

from lockgate.framework.store import Catalog, CommitMessage, DataFileMeta


def main(endpoint: str, warehouse: str, name: str, count: str) -> None:
    table = Catalog(warehouse, options=options_for(endpoint)).load_table("db.t")
    for number in range(int(count)):
        added = DataFileMeta(f"{name}-{number}", 100, 10, creation_time_millis=1)
        table.commit([CommitMessage((), 0, -1, (added,), ())])


if __name__ == "__main__":
    main(*sys.argv[1:])
