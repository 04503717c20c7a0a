"""Commits to a table from another process, as one of several writers or one that is killed.

    commit_worker.py race LOCATION NAME COUNT    commit COUNT files, one after the other
    commit_worker.py append LOCATION NAME COUNT  append a row COUNT times, with files that are real
    commit_worker.py kill WARM LOCATION...       commit to each, dying at its first, second, ... change

`kill` prints a line for each location: `killed`, or `done` when it came to the end. It commits to the table
WARM first, so that the processes that die need not import everything again.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pyarrow as pa

from lockgate.framework.io import LocalFileSystem, resolve
from lockgate.framework.store import CommitMessage, DataFileMeta, Identifier, Table
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.metadata.schema_files import SchemaFiles


def table_at(location: str) -> Table:
    schema = SchemaFiles(resolve(location)[0], location).latest()
    assert schema is not None
    return Table(Identifier("db", "t"), location, schema, TableContext(LocalFileSystem()))


def commit(table: Table, name: str, deleted: tuple[DataFileMeta, ...] = ()) -> None:
    added = DataFileMeta(name, 100, 10, creation_time_millis=1)
    table.commit([CommitMessage((), 0, -1, (added,), deleted)], kind="COMPACT" if deleted else "APPEND")


def race(location: str, name: str, count: str) -> None:
    table = table_at(location)
    for number in range(int(count)):
        commit(table, f"{name}-{number}")


def append(location: str, name: str, count: str) -> None:
    table = table_at(location)
    for number in range(int(count)):
        table.append(pa.table({"id": [number], "v": [name]}))


def kill(warm: str, *locations: str) -> None:
    commit(table_at(warm), "warm")
    for point, location in enumerate(locations):
        child = os.fork()
        if child == 0:
            die_at(point)
            commit(
                table_at(location),
                "killed",
                deleted=(DataFileMeta("first", 100, 10, creation_time_millis=1),),
            )
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print({0: "done", 9: "killed"}[status])


def die_at(point: int) -> None:
    left = point

    def dying(call: Any) -> Any:
        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                os._exit(9)
            left -= 1
            return call(*arguments, **options)

        return step

    # Every call by which the store changes the disk or makes it durable.
    for name in ("link", "replace", "unlink", "fsync"):
        setattr(os, name, dying(getattr(os, name)))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
