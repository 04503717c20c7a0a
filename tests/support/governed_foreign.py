"""Streams of others than tables of Lockgate, under policies: their tables and files, and a plugin."""

from __future__ import annotations

import ast
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
from governed_world import ROWS
from ranger_world import item

from lockgate.framework.access import AccessRequest, Action, Decision, SqlDecision
from lockgate.framework.plugins import hookimpl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


Made = Callable[..., str]

COLUMNS = "id BIGINT, name STRING, ssn STRING, dept STRING, salary BIGINT"
MORE = "(5, 'eve', '555-55-5555', 'x', 7), (6, 'fay', '6', 'y', 8)"
CHANGED = "was planned under policies that have changed"
RATES = "folders.rates.numbers"


def start(frame: DataFrame, seen: list[Any], mode: str = "append", **options: Path | str) -> StreamingQuery:
    writer = frame.writeStream.outputMode(mode).options(**{name: str(each) for name, each in options.items()})
    return writer.foreachBatch(lambda rows, _: seen.extend(map(tuple, rows.collect()))).start()


@contextmanager
def running(frame: DataFrame, seen: list[Any]) -> Iterator[StreamingQuery]:
    query = start(frame, seen)
    try:
        query.processAllAvailable()
        yield query
    finally:
        query.stop()


def streamed(
    frame: DataFrame, seen: list[Any] | None = None, mode: str = "append", **options: Path | str
) -> list[Any]:
    """Return the rows of a stream up to now, in order."""
    found: list[Any] = [] if seen is None else seen
    writer = frame.writeStream.outputMode(mode).options(**{name: str(each) for name, each in options.items()})
    writer = writer.foreachBatch(lambda rows, _: found.extend(map(tuple, rows.collect())))
    writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(found, key=repr)


def shown_by(query: StreamingQuery) -> str:
    """Return all that a stream says of itself."""
    jvm: Any = query
    plan = jvm._jsq.streamingQuery().lastExecution()
    return str(plan) + str(query.recentProgress) + str(query.exception())


def on(path: Path | str, *accesses: str, recursive: bool = True) -> dict[str, Any]:
    """Return a policy about a folder and all in it."""
    folder = {"path": {"values": [str(path)], "isRecursive": recursive}}
    return {
        "id": 2_000_000 + len(str(path)) + recursive,
        "resources": folder,
        "policyItems": [item(*accesses, users=["ann"])],
    }


class Hiding:
    """A plugin that decides about paths below a folder, for ann: no policy of Ranger hides rows of a path."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.decision, self.may_write = str(folder), SqlDecision(), True

    def hide(self, columns: str = "", row_filter: str | None = None, **masks: str) -> None:
        denied = {each: (f"column {each}",) for each in columns.split()}
        self.decision = SqlDecision(denied=denied, row_filter=row_filter, masks=masks)

    @hookimpl
    def lockgate_authorize(self, request: AccessRequest) -> Decision | None:
        """Return no opinion about anything but queries, unless ann may not write."""
        is_write = request.principal.user == "ann" and request.action is Action.INSERT
        return Decision.denied("the right to write") if is_write and not self.may_write else None

    @hookimpl
    def lockgate_authorize_sql(
        self, request: AccessRequest, types: dict[str, str], records: bool
    ) -> SqlDecision | None:
        """Return what is hidden of the folder's files and of sources."""
        del types, records
        if request.principal.user != "ann" or request.target.kind != "path":
            return None
        is_here = request.target.name.startswith(self._folder) or "/" not in request.target.name
        return self.decision if is_here else None


def put_files(folder: Path | str, rows: str = ROWS, using: str = "parquet") -> str:
    """Put a file of rows into a folder; return the folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    names = [column.split()[0] for column in COLUMNS.split(", ")]
    records = [dict(zip(names, row, strict=True)) for row in ast.literal_eval(f"[{rows}]")]
    file = Path(folder) / f"{uuid.uuid4()}.{using}"
    if using == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), file)
    else:
        lines = {"json": json.dumps, "csv": lambda each: ",".join(map(str, each.values()))}
        file.write_text("".join(f"{lines.get(using, str)(each)}\n" for each in records))
    return str(folder)
