"""A driver killed in the middle of a micro-batch: the next one answers the batch from the same snapshot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockgate import lookup
from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

# Ends itself, as the kernel would, when its first batch has been answered but is not committed.
DRIVER = """
import json, os, signal, sys
import lockgate
from lockgate.lookup import lookup_join

warehouse, name, folder, options = sys.argv[1:4] + [json.loads(sys.argv[4])]
conf = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.driver.memory": "1g"}
lake = lockgate.connect(warehouse, master="local[1]", conf=conf)

def sink(frame, number):
    joined = lookup_join(frame, name, on="id", snapshot_column="snap", options=options)
    with open(f"{folder}/seen", "w") as seen:
        json.dump([number, *sorted(map(list, joined.collect()))], seen)
    os.kill(os.getpid(), signal.SIGKILL)

stream = lake.spark.readStream.schema("id BIGINT").parquet(f"{folder}/in")
stream.writeStream.foreachBatch(sink).option("checkpointLocation", f"{folder}/ck").start().awaitTermination()
"""


@pytest.fixture(autouse=True)
def lookups_end(lake: Lake) -> Iterator[None]:
    """Each test ends its lookups."""
    yield
    lookup.close_all()


@pytest.mark.cluster
def test_the_batch_of_a_killed_driver_is_answered_from_its_snapshot_again(
    spark: SparkSession, lake: Lake, table: Callable[[str], str], tmp_path: Path
) -> None:
    name = table("dim")
    short = name.removeprefix("lake.")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'one'), (2, 'two')")
    spark.range(4).coalesce(1).write.parquet(str(tmp_path / "in"))
    options = {"lookup.cache-dir": str(tmp_path / "cache"), "lookup.strategy": "lookup"}
    arguments = [str(lake.catalog.warehouse), name, str(tmp_path), json.dumps(options)]
    ended = subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]
    first = json.loads((tmp_path / "seen").read_text())
    assert first == [0, [0, None, 1], [1, "one", 1], [2, "two", 1], [3, None, 1]]

    # Concurrently the table moves on and its snapshots expire, as far as the dead driver's pin lets them.
    spark.sql(f"INSERT INTO {name} VALUES (1, 'uno'), (3, 'tres')")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    lake.call("expire_snapshots", table=short, retain_max=1, retain_min=1)
    assert [each.id for each in lake.catalog.load_table(short).snapshots()] == [1, 2, 3]

    batches: list[list[Any]] = []

    def sink(frame: DataFrame, number: int) -> None:
        joined = lookup_join(frame, name, on="id", snapshot_column="snap", options=options)
        batches.append([number, *sorted(map(list, joined.collect()))])

    def run() -> None:
        stream = spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "in"))
        writer = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "ck"))
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    assert batches == [first]
    for _ in range(2):
        spark.range(1, 4).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        run()
    newest = [[1, "uno", 3], [2, None, 3], [3, "tres", 3]]
    assert batches[1:] == [[1, *newest], [2, *newest]]
    lake.call("expire_snapshots", table=short, retain_max=1, retain_min=1)
    assert [each.id for each in lake.catalog.load_table(short).snapshots()] == [3]
