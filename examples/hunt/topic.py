"""A topic of events as Kafka has them, in files: partitions that only grow, and offsets in each of them.

`TopicSource` is a source of Spark's streams (`readStream.format("topic")`). From Kafka the same query reads
`readStream.format("kafka")`, and takes the columns out of `value` by `from_json`.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

COLUMNS = "at TIMESTAMP, host STRING, user STRING, command STRING, md5 STRING"
ARROW = pa.schema(
    [("at", pa.timestamp("us", "UTC")), *((name, pa.string()) for name in ("host", "user", "command", "md5"))]
)


class Topic:
    """The files of a topic; an event goes to the partition of its host."""

    def __init__(self, folder: Path, partitions: int = 2) -> None:
        self.folder = folder
        self.paths = [folder / f"{number}.log" for number in range(partitions)]

    def create(self) -> None:
        """Make empty partitions."""
        self.folder.mkdir(parents=True)
        for path in self.paths:
            path.touch()

    def send(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Append events, each whole or not at all."""
        lines: dict[Path, list[bytes]] = {path: [] for path in self.paths}
        for event in events:
            path = self.paths[sum(event["host"].encode()) % len(self.paths)]
            lines[path].append(json.dumps(event).encode() + b"\n")
        for path, added in lines.items():
            with path.open("ab", buffering=0) as file:
                file.write(b"".join(added))

    @staticmethod
    def offsets(folder: Path) -> dict[str, int]:
        """Return the bytes of whole events in each partition."""
        return {path.stem: _whole(path) for path in sorted(folder.glob("*.log"))}


def _whole(path: Path) -> int:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        while size:
            start = max(0, size - 4096)
            file.seek(start)
            end = file.read(size - start).rfind(b"\n")
            if end >= 0:
                return start + end + 1
            size = start
    return 0


class TopicSource(DataSource):
    """Spark's source of a topic; the option `path` is its folder."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "topic"

    def schema(self) -> str:
        """Return the columns of events."""
        return COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader of the topic."""
        return _Reader(Path(self.options["path"]))


@dataclass
class _Range(InputPartition):
    path: str
    start: int
    end: int


class _Reader(DataSourceStreamReader):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return dict.fromkeys(Topic.offsets(self._folder), 0)

    # Spark 4.1 gives neither argument.
    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802 - Spark's name
        return Topic.offsets(self._folder)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [
            _Range(str(self._folder / f"{name}.log"), start.get(name, 0), last)
            for name, last in end.items()
            if last > start.get(name, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        with Path(partition.path).open("rb") as file:
            file.seek(partition.start)
            lines = file.read(partition.end - partition.start)
        options = pa.json.ParseOptions(explicit_schema=ARROW)
        yield from pa.json.read_json(io.BytesIO(lines), parse_options=options).to_batches()
