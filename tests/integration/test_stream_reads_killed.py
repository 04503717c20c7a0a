"""A driver killed in the middle of a batch that it reads: the next one reads that batch again and goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stream_queries import Reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from lockgate import Lake

# Ends itself, as the kernel would, when its second batch has been read but is not committed.
DRIVER = """
import json, os, signal, sys
import lockgate

warehouse, name, folder = sys.argv[1:4]
conf = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.driver.memory": "1g"}
lake = lockgate.connect(warehouse, master="local[1]", conf=conf)

def sink(frame, number):
    with open(f"{folder}/seen", "a") as seen:
        seen.write(json.dumps([number, sorted(map(list, frame.collect()))]) + "\\n")
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)

stream = lake.spark.readStream.option("maxFilesPerTrigger", "1").table(name)
stream.writeStream.foreachBatch(sink).option("checkpointLocation", f"{folder}/ck").start().awaitTermination()
"""


@pytest.mark.cluster
def test_the_batch_of_a_killed_driver_is_read_again(
    spark: SparkSession, lake: Lake, table: Callable[[str], str], tmp_path: Path
) -> None:
    name = table("t")
    short = name.removeprefix("lake.")
    spark.sql(f"CREATE TABLE {name} (id BIGINT)")
    for number in range(3):
        spark.sql(f"INSERT INTO {name} VALUES ({number})")
    ended = subprocess.run(
        [sys.executable, "-c", DRIVER, str(lake.catalog.warehouse), name, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]
    first, second = map(json.loads, (tmp_path / "seen").read_text().splitlines())
    # The table moves on, and expires what nobody needs; the dead driver's consumer still does.
    spark.sql(f"INSERT INTO {name} VALUES (3)")
    lake.call("expire_snapshots", table=short, retain_max=1, retain_min=1)
    assert lake.catalog.load_table(short).snapshot_files.ids()[0] <= 3
    reader = Reader(spark, tmp_path / "ck")
    reader.run(name, maxFilesPerTrigger="1")
    found = reader.taken()
    assert found[0] == [tuple(row) for row in second[1]]
    assert sorted(row[0] for batch in [first[1], *found] for row in batch) == [0, 1, 2, 3]
