"""Run on the first of several hosts: a stream with a lookup, while another host is killed and comes back.

MASTER ADDRESS FOLDER [HDFS]: Spark's master, this host's address, a folder of this host, and where the
warehouse is; without it, in a stand-in for S3 on this host. The test does the killing: this program prints a
line and waits for one.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lookup_job
from lookup_job import ROWS, create, rows, until
from s3_server import S3Server

OPTIONS = {"lookup.strategy": "lookup", "lookup.refresh.interval": "100 ms"}


def tell(what: str) -> None:
    """Ask the test to do something, and wait until it has."""
    print(what, flush=True)
    sys.stdin.readline()


@contextmanager
def warehouse(address: str, hdfs: str | None) -> Iterator[tuple[str, dict[str, str], Callable[[], int]]]:
    """Yield where the warehouse is, the confs that reach it, and how often it was asked, or what it has."""
    if hdfs is not None:
        yield f"{hdfs}/warehouse", {}, lambda: len(snapshots_in(f"{hdfs}/warehouse/db.db/dim/snapshot"))
        return
    store = S3Server(address)
    store.start()
    store.make_bucket("lake")
    try:
        confs = {f"spark.hadoop.{key}": value for key, value in store.options().items()}
        yield "s3a://lake/warehouse", confs, lambda: len(store.requests)
    finally:
        store.stop()


def snapshots_in(location: str) -> list[str]:
    from lockgate.framework.io import resolve

    files, folder = resolve(location)
    return [each.name for each in files.list(folder) if each.name.startswith("snapshot-")]


def main(master: str, address: str, folder: Path, hdfs: str | None = None) -> dict[str, Any]:
    with warehouse(address, hdfs) as (location, reach, count):
        return {**stream(master, address, folder, location, reach), "requests": count()}


def stream(master: str, address: str, folder: Path, location: str, reach: dict[str, str]) -> dict[str, Any]:
    import lockgate
    from lockgate import lookup

    warnings.simplefilter("ignore")
    place = {"spark.driver.host": address, "spark.driver.bindAddress": address}
    lake = lockgate.connect(
        location,
        master=master,
        conf={**lookup_job.confs(folder), **place, **reach, "spark.executor.memory": "600m"},
    )
    table = create(lake, "dim")
    batches: list[Any] = []

    def sink(frame: Any, number: int) -> None:
        from pyspark.sql import functions as f

        joined = lake.lookup_join(
            frame, "db.dim", on="id", select=["n"], options=OPTIONS, snapshot_column="snapshot"
        )
        seen = joined.groupBy("n", "snapshot").agg(f.count("*")).collect()
        batches.append([list(row) for row in seen])

    def serving(snapshot: int) -> list[str]:
        """Return the folders of the hosts that serve a snapshot."""
        hosts = lookup.status("db.dim").hosts
        return sorted(host.directory for host in hosts if host.served_snapshot == snapshot)

    def batch_of(snapshot: int) -> None:
        until(lambda: bool(batches) and batches[-1][0][1] == snapshot, f"a batch of snapshot {snapshot}", 120)

    rate = lake.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    ids = rate.option("numPartitions", 4).load().selectExpr(f"value % {ROWS} AS id")
    query = ids.writeStream.foreachBatch(sink).start()
    found: dict[str, Any] = {"rows": ROWS}
    batch_of(1)
    until(lambda: len(serving(1)) == 2, "both hosts", 120)
    found["both"] = serving(1)
    table.append(rows(2))
    batch_of(2)
    tell("kill")
    table.append(rows(3))
    batch_of(3)
    found["alone"] = serving(3)
    tell("start")
    until(lambda: len(serving(3)) == 2, "the host that came back", 120)
    table.append(rows(4))
    batch_of(4)
    until(lambda: len(serving(4)) == 2, "both hosts on the newest snapshot", 120)
    found["again"] = serving(4)
    found["error"] = str(query.exception()) if query.exception() else None
    query.stop()
    found["batches"] = batches
    lookup.close_all()
    lake.spark.stop()
    return found


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])), flush=True)
