"""Run on a small cluster: lookups whose caches the executors keep, whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("n", pa.int64())])
ROWS = 2000
OPTIONS = {"lookup.strategy": "lookup", "lookup.refresh.interval": "100 ms"}


def connect(folder: Path, **conf: str) -> Any:
    import lockgate

    warnings.simplefilter("ignore")
    return lockgate.connect(
        folder / "warehouse",
        keys=f"file:{folder / 'keys.json'}",
        master="local-cluster[2,1,1024]",
        conf={
            "spark.executor.memory": "1g",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.streaming.checkpointLocation": str(folder / "checkpoints"),
            "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
            **conf,
        },
    )


def rows(n: int) -> pa.Table:
    return pa.table(
        {"id": range(ROWS), "name": [f"name-{i}" for i in range(ROWS)], "n": [n] * ROWS}, schema=SCHEMA
    )


def create(lake: Any, name: str, **options: str) -> Any:
    from lockgate.framework.store.schema import Schema

    lake.catalog.create_namespace("db", ignore_if_exists=True)
    schema = Schema.from_arrow(SCHEMA, primary_keys=("id",), options={"bucket": "1", **options})
    table = lake.catalog.create_table(f"db.{name}", schema)
    table.append(rows(1))
    return table


def owners() -> list[psutil.Process]:
    """The processes of lookups below this one, in the order in which they started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "lockgate.lookup.standby" in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return sorted(found, key=lambda process: process.create_time())


def until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.05)


def answers(lake: Any, name: str, options: dict[str, str]) -> list[Any]:
    """The distinct answers of one batch over both executors: values, snapshots, ids of executors."""
    from pyspark.sql import functions as f

    stream = lake.spark.range(0, ROWS + 10, 1, 4)
    joined = lake.lookup_join(
        stream, f"db.{name}", on="id", select=["n"], options=options, snapshot_column="snapshot"
    )
    found = joined.groupBy("n", "snapshot").agg(f.count("*")).collect()
    return sorted([list(row) for row in found], key=repr)


def gauges(folder: Path) -> dict[str, dict[str, float]]:
    """The last values of the gauges on the dimension that Spark's metric system wrote, of driver and executors."""
    found: dict[str, dict[str, float]] = {"driver": {}, "executor": {}}
    for path in sorted((folder / "metrics").glob("*LockgatePlugin.lookup.db.dim*.csv"), key=os.path.getmtime):
        line = path.read_text().splitlines()[-1].partition(",")[2]
        if line and line != "value":
            place = "driver" if ".driver." in path.name else "executor"
            found[place][path.name.split(".")[-2]] = float(line)
    return found


def shared(folder: Path) -> dict[str, Any]:
    """Two executors share one cache: who owns it, and what happens when something is killed."""
    from lockgate import lookup

    (folder / "metrics").mkdir()
    sink = "spark.metrics.conf.*.sink.csv"
    lake = connect(
        folder,
        **{
            f"{sink}.class": "org.apache.spark.metrics.sink.CsvSink",
            f"{sink}.directory": str(folder / "metrics"),
            f"{sink}.period": "1",
            f"{sink}.unit": "seconds",
        },
    )
    table = create(lake, "dim")
    options = {**OPTIONS, "lookup.cache-dir": str(folder / "cache")}
    found: dict[str, Any] = {"first": answers(lake, "dim", options)}

    def status() -> Any:
        return lookup.status("db.dim")

    def owner() -> psutil.Process:
        until(lambda: status().owner_pid is not None, "an owner")
        return psutil.Process(status().owner_pid)

    until(lambda: len(status().hosts[0].executors) == 2, "both executors")
    first = owner()
    found["hosts"] = [[len(host.executors), host.served_snapshot] for host in status().hosts]
    found["parent"] = first.parent().name() if first.parent() else ""
    found["nice"] = first.nice()
    found["processes"] = len(owners())

    first.kill()
    until(lambda: status().owner_pid not in (None, first.pid), "another owner")
    table.append(rows(2))
    found["after_owner"] = [lookup.wait_for("db.dim", 2), answers(lake, "dim", options)]

    second = owner()
    executor = second.parent()
    os.kill(executor.pid, signal.SIGKILL)
    table.append(rows(3))
    until(lambda: status().owner_pid not in (None, second.pid), "the other executor's owner")
    found["after_executor"] = [lookup.wait_for("db.dim", 3), answers(lake, "dim", options)]
    until(lambda: not psutil.pid_exists(second.pid) or second.status() == psutil.STATUS_ZOMBIE, "its end")

    # A file of the newest snapshot is broken: shown at once, the state before it served on.
    third = owner()
    third.suspend()
    before = set(Path(table.location).glob("bucket-0/*"))
    table.append(rows(4))
    (added,) = set(Path(table.location).glob("bucket-0/*")) - before
    content = added.read_bytes()
    added.write_bytes(b"broken")
    third.resume()
    until(lambda: status().failures >= 2, "two failures")
    found["failed"] = [
        added.name in status().last_error,
        status().served_snapshot,
        answers(lake, "dim", options),
    ]
    found["shown"] = "refresh failed" in str(status())
    added.write_bytes(content)
    found["healed"] = [lookup.wait_for("db.dim", 4), status().failures, status().last_error]
    found["restarts"] = status().owner_restarts >= 2

    until(lambda: gauges(folder)["driver"].get("snapshot") == 4.0, "the driver's gauges")
    until(lambda: gauges(folder)["executor"].get("snapshot") == 4.0, "an executor's gauges")
    found["gauges"] = gauges(folder)
    found["built_millis"] = status().built_millis

    remaining = owners()
    lake.spark.stop()
    psutil.wait_procs(remaining, timeout=20)
    found["left"] = len(
        [process for process in remaining if process.is_running() and process.status() != "zombie"]
    )
    return found


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    job = {"shared": shared}[sys.argv[1]]
    print(json.dumps(job(Path(sys.argv[2]))))
