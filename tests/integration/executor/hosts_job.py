"""Run on the first of several hosts: a stream with a lookup, while another host is killed and comes back.

MASTER ADDRESS FOLDER: Spark's master, this host's address, and a folder of this host. The test does the
killing: this program prints a line and waits for one.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
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


def main(master: str, address: str, folder: Path) -> dict[str, Any]:
    import lockgate
    from lockgate import lookup

    warnings.simplefilter("ignore")
    store = S3Server(address)
    store.start()
    store.make_bucket("lake")
    place = {"spark.driver.host": address, "spark.driver.bindAddress": address}
    reach = {f"spark.hadoop.{key}": value for key, value in store.options().items()}
    lake = lockgate.connect(
        "s3a://lake/warehouse",
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

    stream = lake.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    stream = stream.option("numPartitions", 4).load().selectExpr(f"value % {ROWS} AS id")
    query = stream.writeStream.foreachBatch(sink).start()
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
    found["requests"] = len(store.requests)
    lookup.close_all()
    lake.spark.stop()
    store.stop()
    return found


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))), flush=True)
