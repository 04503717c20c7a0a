"""The kinds of queries that are repeated, each with tables of its own in a lake."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate import Lake

Work = Callable[[int], object]
# A table that gets a file with each statement is made again after so many: statements take longer with each.
_FRESH_AFTER = 10
_ENCRYPTED = "'orc.encrypt' = 'pii:v', 'orc.mask' = 'nullify:v'"


class Kinds:
    """What can be repeated in a lake with the key `pii`, below `folder`."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake = lake
        self.folder = folder
        self.spark = lake.spark
        lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.leaks")
        self._make("keyed", "'primary-key' = 'id', 'bucket' = '2'")
        self.spark.range(2000).selectExpr("id", "concat('v', id) AS v").writeTo("lake.leaks.keyed").append()
        self.options = {"lookup.cache-dir": str(folder / "cache"), "lookup.strategy": "lookup"}

    @staticmethod
    def bridge_threads() -> list[str]:
        """The names of the threads of this process that answer the JVM."""
        return [each.name for each in threading.enumerate() if each.name.startswith("lockgate-bridge-")]

    def _make(self, name: str, properties: str = "") -> str:
        self.lake.sql(f"DROP TABLE IF EXISTS lake.leaks.{name}")
        tail = f" TBLPROPERTIES ({properties})" if properties else ""
        self.lake.sql(f"CREATE TABLE lake.leaks.{name} (id BIGINT, v STRING){tail}")
        return f"lake.leaks.{name}"

    def point(self, number: int) -> None:
        """Read one row by its key."""
        assert self.lake.sql(f"SELECT v FROM lake.leaks.keyed WHERE id = {number % 2000}").count() == 1

    def scan(self, number: int) -> None:
        """Read all rows in tasks."""
        self.lake.sql(f"SELECT sum(id) FROM lake.leaks.keyed WHERE v > 'v{number % 9}'").collect()

    def insert(self, number: int) -> None:
        """Add a row."""
        if number % _FRESH_AFTER == 0:
            self._make("inserted")
        self.lake.sql(f"INSERT INTO lake.leaks.inserted VALUES ({number}, 'x')")

    def merge(self, number: int) -> None:
        """Change rows by MERGE."""
        if number % _FRESH_AFTER == 0:
            self._make("merged", "'primary-key' = 'id', 'bucket' = '1'")
        self.lake.sql(
            f"MERGE INTO lake.leaks.merged t USING (SELECT {number}L AS id, 'y' AS v) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
        )

    def call(self, number: int) -> None:
        """Run a procedure."""
        self.lake.sql("CALL lake.sys.expire_snapshots(table => 'leaks.keyed', retain_max => 5)").collect()

    def explain(self, number: int) -> None:
        """Plan a write that never runs."""
        self.lake.sql("EXPLAIN INSERT INTO lake.leaks.keyed SELECT id, 'z' FROM range(3)").collect()

    def unwrap(self, number: int) -> None:
        """Read a file that this process wrote: the task has to ask for its local key."""
        name = "leaks.unwrapped"
        if number % _FRESH_AFTER == 0:
            self._make("unwrapped", _ENCRYPTED)
        self.lake.catalog.load_table(name).append(pa.table({"id": [number], "v": ["secret"]}))
        [row] = self.lake.sql(f"SELECT v FROM lake.{name} WHERE id = {number}").collect()
        assert row[0] == "secret"

    def keys(self, number: int) -> None:
        """Write and read a file with a local key of its own, for which tasks ask."""
        if number % _FRESH_AFTER == 0:
            self._make("sealed", _ENCRYPTED)
        self.lake.sql(f"INSERT INTO lake.leaks.sealed VALUES ({number}, 'secret')")
        assert self.lake.sql(f"SELECT v FROM lake.leaks.sealed WHERE id = {number}").count() == 1

    def lookup(self, number: int) -> None:
        """Join a batch with a cache."""
        frame = self.spark.range(number, number + 3).selectExpr("id % 2000 AS id")
        assert self._joined(frame).count() == 3

    def _joined(self, frame: Any) -> Any:
        return self.lake.lookup_join(frame, "leaks.keyed", on="id", select=["v"], options=self.options)

    @contextmanager
    def lookup_stream(self) -> Iterator[Work]:
        """Join each micro-batch of a stream with a cache."""
        joined = self._joined(self._source())
        with self._stream(joined.writeStream.format("noop"), "lookup") as work:
            yield work

    @contextmanager
    def foreach_batch(self) -> Iterator[Work]:
        """Look at each joined micro-batch from Python."""

        def look(batch: Any, number: int) -> None:
            batch.count()

        joined = self._joined(self._source())
        with self._stream(joined.writeStream.foreachBatch(look), "foreach") as work:
            yield work

    def _source(self) -> Any:
        rows = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
        return rows.selectExpr("value % 2000 AS id")

    @contextmanager
    def _stream(self, writer: Any, name: str) -> Iterator[Work]:
        checkpoint = self.folder / f"checkpoint-{name}-{time.time_ns()}"
        query = writer.option("checkpointLocation", str(checkpoint)).start()

        def wait(number: int) -> None:
            """Wait until one more micro-batch is done."""
            seen = _batch(query)
            while _batch(query) <= seen:
                if query.exception() is not None:
                    raise RuntimeError(f"the stream ended: {query.exception()}")
                time.sleep(0.002)

        try:
            yield wait
        finally:
            query.stop()


def _batch(query: Any) -> int:
    progress = query._jsq.lastProgress()
    return -1 if progress is None else int(progress.batchId())


ONCE = ("point", "scan", "insert", "merge", "call", "explain", "keys", "unwrap", "lookup")
STREAMS = ("lookup_stream", "foreach_batch")
EVERY = (*ONCE, *STREAMS)


@contextmanager
def working(kinds: Kinds, name: str) -> Iterator[Work]:
    """The work of a kind, while its stream runs if it has one."""
    if name in STREAMS:
        with getattr(kinds, name)() as work:
            yield work
    else:
        yield getattr(kinds, name)
