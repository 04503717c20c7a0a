"""Streaming queries of Spark that read tables, batch by batch, and what they found; streams of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Reader:
    """A query that reads a table into memory, batch by batch, as often as it is run."""

    def __init__(self, spark: SparkSession, checkpoint: Path) -> None:
        self._spark, self._checkpoint = spark, str(checkpoint)
        self.batches: list[list[tuple[Any, ...]]] = []

    def run(self, name: str, **options: str) -> Any:
        """Read all that there is now; return the query."""
        given = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}

        def collect(frame: Any, number: int) -> None:
            self.batches.append(sorted((tuple(row) for row in frame.collect()), key=repr))

        query = (
            self._spark.readStream.options(**given)
            .table(name)
            .writeStream.foreachBatch(collect)
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    def taken(self) -> list[list[tuple[Any, ...]]]:
        """Return the batches since the last call, without empty ones."""
        found, self.batches = [each for each in self.batches if each], []
        return found


def view_of(name: str, suffix: str) -> str:
    """Return the name of a system table, or of a branch, of `lake.db.t`."""
    database, _, table = name.rpartition(".")
    return f"{database}.`{table}${suffix}`"


def source_of_files(spark: SparkSession, folder: Path) -> Callable[[int, int], DataFrame]:
    """Return a function that adds the ids of a range as one file and returns the stream of all files."""

    def add(start: int, end: int) -> DataFrame:
        spark.range(start, end).coalesce(1).write.mode("append").parquet(str(folder))
        return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).parquet(str(folder))

    return add
