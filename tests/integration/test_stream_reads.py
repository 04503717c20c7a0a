"""Streams that read tables: the rows of each kind of table, over batches and restarts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


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


@pytest.fixture
def reader(spark: SparkSession, tmp_path: Path) -> Reader:
    return Reader(spark, tmp_path / "checkpoint")


def test_an_append_table(spark: SparkSession, table: Named, reader: Reader, lake: Lake) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    reader.run(name)
    assert reader.taken() == [[(1, "a"), (2, "b")]]
    for number in (3, 4):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, 'c')")
    reader.run(name, maxFilesPerTrigger="1")
    assert reader.taken() == [[(3, "c")], [(4, "c")]]
    query = reader.run(name)
    assert reader.taken() == []
    (consumer,) = lake.catalog.load_table(name.removeprefix("lake.")).consumers().items()
    assert consumer == (f"stream-{query.id}-0", 4)


def test_a_key_table_with_kinds_and_without(
    spark: SparkSession, table: Named, reader: Reader, tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    kinds = Reader(spark, tmp_path / "kinds")
    log = f"{name[: name.rindex('.')]}.`{name[name.rindex('.') + 1 :]}$audit_log`"
    reader.run(name)
    kinds.run(log)
    spark.sql(f"INSERT INTO {name} VALUES (1, 'c')")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    query = reader.run(name)
    kinds.run(log)
    assert reader.taken() == [[(1, "a"), (2, "b")], [(1, "c")]]
    assert kinds.taken() == [[("+I", 1, "a"), ("+I", 2, "b")], [("+I", 1, "c"), ("-D", 2, "b")]]
    assert query.lastProgress["sources"][0]["metrics"]["retractsLeftOut"] == "1"
