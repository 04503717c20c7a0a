"""Lookup joins by partial caches: the rows of Spark's own join, while the table changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from same_frames import same

from lockgate import lookup
from lockgate.errors import UnsupportedError
from lockgate.lookup import lookup_join
from lockgate.lookup.cache.directory import CacheDirectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MakeName = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("lookups_end")


def test_a_partial_cache_answers_as_the_table_while_it_changes(
    spark: SparkSession, table: MakeName, options: dict[str, str]
) -> None:
    name, given = table("partial"), {**options, "lookup.cache": "partial"}
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING, n INT) "
        "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, concat('name ', id), cast(id AS INT) FROM range(400)")
    stream = spark.range(-20, 460, 3, numPartitions=2).selectExpr("id", "id * 2 AS twice")

    def compare() -> None:
        joined = lookup_join(stream, name, on="id", select=["name", "n"], options=given)
        same(joined, stream.join(spark.table(name), "id", "left").select(*joined.columns))

    compare()
    for change in (
        f"DELETE FROM {name} WHERE id % 9 = 0",
        f"INSERT INTO {name} SELECT id + 390, 'new', 7 FROM range(50)",
    ):
        spark.sql(change)
        lookup.wait_for(name)
        for _ in range(2):  # read, then known
            compare()
    status = lookup.status(name)
    state = CacheDirectory(Path(status.directory)).generation(status.served_snapshot or 0)
    assert state is not None
    assert (state.storage, state.full_load) == ("partial", False)
    assert not list(Path(status.directory).rglob("*.sst"))
    with pytest.raises(UnsupportedError, match="joined by name, and its key is id"):
        lookup_join(
            stream.selectExpr("cast(id AS STRING) AS name"), name, on="name", select=["n"], options=given
        ).collect()
