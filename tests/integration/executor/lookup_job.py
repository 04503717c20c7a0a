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
MASTER = "local-cluster[2,1,1024]"
ROWS = 2000
OPTIONS = {"lookup.strategy": "lookup", "lookup.refresh.interval": "100 ms"}


def confs(folder: Path) -> dict[str, str]:
    return {
        "spark.executor.memory": "1g",
        # Executors start as fast as the driver.
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.checkpointLocation": str(folder / "checkpoints"),
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }


def connect(folder: Path, **conf: str) -> Any:
    import lockgate

    warnings.simplefilter("ignore")
    return lockgate.connect(
        folder / "warehouse",
        keys=f"file:{folder / 'keys.json'}",
        master=MASTER,
        conf={**confs(folder), **conf},
    )


def rows(n: int) -> pa.Table:
    return pa.table(
        {"id": range(ROWS), "name": [f"name-{i}" for i in range(ROWS)], "n": [n] * ROWS}, schema=SCHEMA
    )


def create(lake: Any, name: str, **options: str) -> Any:
    from lockgate.framework.store.schema.schema import Schema

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
            if (
                "lockgate.lookup.server.standby" in process.cmdline()
                and process.status() != psutil.STATUS_ZOMBIE
            ):
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
    """The last values of the dimension's gauges that Spark's metric system wrote, of driver and executors."""
    found: dict[str, dict[str, float]] = {"driver": {}, "executor": {}}
    for path in sorted((folder / "metrics").glob("*LockgatePlugin.lookup.db.dim*.csv"), key=os.path.getmtime):
        line = path.read_text().splitlines()[-1].partition(",")[2]
        if line and line != "value":
            place = "driver" if ".driver." in path.name else "executor"
            found[place][path.name.split(".")[-2]] = float(line)
    return found


def metrics_into(folder: Path) -> dict[str, str]:
    """The confs of a sink that writes Spark's metrics every second."""
    folder.mkdir()
    sink = "spark.metrics.conf.*.sink.csv"
    return {
        f"{sink}.class": "org.apache.spark.metrics.sink.CsvSink",
        f"{sink}.directory": str(folder),
        f"{sink}.period": "1",
        f"{sink}.unit": "seconds",
    }


def owner_of(name: str) -> psutil.Process:
    from lockgate import lookup

    until(lambda: lookup.status(f"db.{name}").owner_pid is not None, "an owner")
    return psutil.Process(lookup.status(f"db.{name}").owner_pid)


def ended(processes: list[psutil.Process], seconds: float = 20.0) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def shared(folder: Path) -> dict[str, Any]:
    """Two executors share one cache: who owns it, and what happens when something is killed."""
    from lockgate import lookup

    lake = connect(folder, **metrics_into(folder / "metrics"))
    table = create(lake, "dim")
    options = {**OPTIONS, "lookup.cache-dir": str(folder / "cache")}
    found: dict[str, Any] = {"first": answers(lake, "dim", options)}

    def status() -> Any:
        return lookup.status("db.dim")

    until(lambda: len(status().hosts[0].executors) == 2, "both executors")
    first = owner_of("dim")
    found["hosts"] = [[len(host.executors), host.served_snapshot] for host in status().hosts]
    found["parent"] = first.parent().name() if first.parent() else ""
    found["nice"] = first.nice()
    found["processes"] = len(owners())
    found["caches"] = len(list((folder / "cache").glob("db.dim-*")))

    first.kill()
    until(lambda: status().owner_pid not in (None, first.pid), "another owner")
    table.append(rows(2))
    found["after_owner"] = [lookup.wait_for("db.dim", 2), answers(lake, "dim", options)]

    second = owner_of("dim")
    executor = second.parent()
    os.kill(executor.pid, signal.SIGKILL)
    table.append(rows(3))
    until(lambda: status().owner_pid not in (None, second.pid), "the other executor's owner")
    found["after_executor"] = [lookup.wait_for("db.dim", 3), answers(lake, "dim", options)]
    found["ended_with_executor"] = ended([second])
    found["restarts"] = status().owner_restarts >= 2
    found["failures"] = [status().failures, status().last_error]

    asked = 3 * (ROWS + 10)
    until(lambda: gauges(folder)["driver"].get("snapshot") == 3.0, "the driver's gauges")
    until(lambda: gauges(folder)["driver"].get("askedRows") == asked, "the driver's counts")
    until(lambda: gauges(folder)["executor"].get("snapshot") == 3.0, "an executor's gauges")
    found["gauges"] = gauges(folder)
    found["shown"] = status().to_dict()

    remaining = owners()
    lake.spark.stop()
    found["nothing_left"] = len(remaining) >= 1 and ended(remaining)
    return found


def detached(folder: Path) -> dict[str, Any]:
    """The session was made without the plugin: a process of the driver's keeps the cache."""
    from pyspark.sql import SparkSession

    import lockgate
    from lockgate import lookup
    from lockgate.framework.spark.bridge.connector_jars import jar

    lookup.close_all()
    # The JVM remembers what it was started with.
    builder = SparkSession.builder.master(MASTER).config("spark.jars", str(jar())).config("spark.plugins", "")
    builder = builder.config("spark.sql.extensions", "io.lockgate.spark.LockgateExtensions")
    for key, value in confs(folder).items():
        builder = builder.config(key, value)
    keys = f"file:{folder / 'keys.json'}"
    lake = lockgate.connect(folder / "warehouse", keys=keys, spark=builder.getOrCreate())
    options = {**OPTIONS, "lookup.cache-dir": str(folder / "detached")}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        create(lake, "alone")
        found = {"answers": [answers(lake, "alone", options) for _ in range(2)]}
    said = [str(each.message) for each in caught if each.category is lockgate.errors.LookupOwnerWarning]
    owner = psutil.Process(lookup.status("db.alone").owner_pid)
    found["warnings"] = said
    found["parent"] = owner.ppid() == os.getpid()
    lookup.close_all()
    lake.spark.stop()
    found["nothing_left"] = ended([owner])
    return found


def together(folder: Path) -> dict[str, Any]:
    """Both of these, one after the other, in one JVM."""
    return {"shared": shared(folder), "detached": detached(folder)}


def apart(folder: Path) -> None:
    """Two folders of caches, as on two hosts, of an encrypted dimension; ends as if killed by the kernel.

    What was found is written to `found.json` before.
    """
    from lockgate import lookup

    extra = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
    }
    (folder / "events").mkdir()
    lake = connect(folder, **extra)
    table = create(lake, "dim", **{"orc.encrypt": "pii:n", "orc.mask": "nullify:n"})
    # A relative folder is one of each executor's own.
    options = {**OPTIONS, "lookup.cache-dir": "caches"}
    batches: list[Any] = []

    def sink(frame: Any, number: int) -> None:
        from pyspark.sql import functions as f

        joined = lake.lookup_join(
            frame, "db.dim", on="id", select=["n"], options=options, snapshot_column="snapshot"
        )
        seen = joined.where("n IS NOT NULL").groupBy("n", "snapshot").agg(f.count("*")).collect()
        batches.append([list(row) for row in seen])

    stream = lake.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    stream = stream.option("numPartitions", 4).load().selectExpr(f"value % {ROWS} AS id")
    query = stream.writeStream.foreachBatch(sink).start()
    until(lambda: len(batches) >= 1, "the first batch")
    until(lambda: len([h for h in lookup.status("db.dim").hosts if h.served_snapshot]) == 2, "both hosts")
    for n in range(2, 7):
        table.append(rows(n))
        if n == 4:
            owner_of("dim").kill()
        count = len(batches)
        until(lambda count=count: len(batches) > count, "a batch")  # type: ignore[misc]  # mypy knows no defaults
    until(lambda: batches[-1][0][1] == 6, "the newest snapshot")
    hosts = lookup.status("db.dim").hosts
    processes = owners()
    seen = [" ".join(process.cmdline()) for process in processes]
    seen += [" ".join(f"{key}={value}" for key, value in process.environ().items()) for process in processes]
    # An executor's own folder has its log as well: .../<application>/<executor>/caches/<cache>.
    application = Path(hosts[0].directory).parents[2]
    logs = [*(folder / "events").rglob("*"), *application.glob("*/std*"), *application.rglob("owner.log")]
    seen += [path.read_text(errors="replace") for path in logs if path.is_file()]
    found = {
        "batches": batches,
        "folders": [host.directory for host in hosts],
        "application": str(application),
        "error": str(query.exception()) if query.exception() else None,
        "leaks": [name for name, secret in secrets(folder).items() if any(secret in text for text in seen)],
        "looked_at": len(seen),
        "owners": [process.pid for process in processes],
        "executors": [process.ppid() for process in processes],
    }
    (folder / "found.json").write_text(json.dumps(found))
    jvm = next(child for child in psutil.Process().children() if child.name() == "java")
    os.kill(jvm.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def hunted(folder: Path, seconds: float = 60.0) -> dict[str, Any]:  # noqa: PLR0915 - one job, step by step
    """Owners are killed all the time, an executor now and then, while a writer commits and a stream joins."""
    import random
    import threading

    from lockgate import lookup

    chance = random.Random(7)
    lake = connect(folder)
    table = create(lake, "dim")
    options = {**OPTIONS, "lookup.cache-dir": str(folder / "cache")}
    batches: list[Any] = []

    def sink(frame: Any, number: int) -> None:
        from pyspark.sql import functions as f

        joined = lake.lookup_join(
            frame, "db.dim", on="id", select=["n"], options=options, snapshot_column="snapshot"
        )
        seen = joined.groupBy("n", "snapshot").agg(f.count("*")).collect()
        batches.append([list(row) for row in seen])

    stream = lake.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    stream = stream.option("numPartitions", 4).load().selectExpr(f"value % {ROWS} AS id")
    query = stream.writeStream.foreachBatch(sink).start()
    until(lambda: len(batches) >= 1, "the first batch")
    over = threading.Event()
    written = [1]

    def write() -> None:
        while not over.wait(0.3):
            table.append(rows(written[0] + 1))
            written[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    killed = {"owners": 0, "executors": 0}
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        time.sleep(chance.uniform(0.5, 6.0))
        pid = lookup.status("db.dim").owner_pid
        if pid is None or not psutil.pid_exists(pid):
            continue
        parent = psutil.Process(pid).ppid()
        if killed["owners"] % 5 == 4:
            killed["executors"] += 1
            os.kill(parent, signal.SIGKILL)
        killed["owners"] += 1
        os.kill(pid, signal.SIGKILL)
    over.set()
    writer.join()
    newest = lookup.wait_for("db.dim", written[0])
    count = len(batches)
    until(lambda: len(batches) > count + 1, "one more batch")
    found = {
        "wrong": [batch for batch in batches if batch != [[batch[0][1], batch[0][1], ROWS]]],
        "snapshots": [batch[0][1] for batch in batches],
        "written": written[0],
        "newest": newest,
        "killed": killed,
        "error": str(query.exception()) if query.exception() else None,
        "generations": len(list((folder / "cache").glob("db.dim-*/generations/*"))),
        "failures": lookup.status("db.dim").failures,
    }
    query.stop()
    # A cache for each group of buckets.
    create(lake, "spread", bucket="4")
    found["shuffled"] = answers(lake, "spread", {**options, "lookup.shuffle": "true"})
    found["caches_of_groups"] = len(list((folder / "cache").glob("db.spread-*")))
    remaining = owners()
    lake.spark.stop()
    found["nothing_left"] = ended(remaining)
    return found


def secrets(folder: Path) -> dict[str, str]:
    """What must not be seen anywhere: the keys, as they are written and in hexadecimal."""
    import base64

    found = {}
    for key in json.loads((folder / "keys.json").read_text())["keys"]:
        found[key["name"]] = key["material"]
        found[f"{key['name']} in hexadecimal"] = base64.b64decode(key["material"]).hex()
    return found


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    job: Callable[[Path], Any] = {"together": together, "apart": apart, "hunted": hunted}[sys.argv[1]]
    print(json.dumps(job(Path(sys.argv[2]))))
