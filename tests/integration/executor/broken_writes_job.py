"""Writes while drivers, executors and tasks die, or run twice.

broken_writes_job.py die FOLDER         a stream whose driver is killed between its second commit and Spark's
broken_writes_job.py again FOLDER       that stream again
broken_writes_job.py retry FOLDER       tasks fail, and run again
broken_writes_job.py lose FOLDER        on a cluster: an executor dies
broken_writes_job.py speculate FOLDER MASTER    a task is slow, so that another copy of it runs
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

CONFS = {
    "spark.executor.memory": "600m",
    # Executors start as fast as the driver.
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    "spark.driver.memory": "800m",
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
}


def connect(folder: Path, master: str, **confs: str) -> Any:
    import lockgate

    more = {key.replace("_", "."): value for key, value in confs.items()}
    place = {"spark.sql.warehouse.dir": str(folder / "spark-warehouse")}
    return lockgate.connect(folder / "warehouse", master=master, conf={**CONFS, **place, **more})


def stream(spark: SparkSession, folder: Path, table: str) -> Any:
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    return (
        rows.writeStream.option("checkpointLocation", str(folder / f"checkpoint-{table}"))
        .trigger(availableNow=True)
        .toTable(f"lake.db.{table}")
    )


def die(folder: Path) -> dict[str, Any]:
    from lockgate.framework.spark.bridge import dispatcher
    from lockgate.framework.spark.operations import write_operations

    lake = connect(folder, "local[2]")
    spark = lake.spark
    spark.sql("CREATE DATABASE lake.db")
    spark.sql("CREATE TABLE lake.db.plain (id BIGINT)")
    for number in range(4):
        spark.range(number * 10, number * 10 + 10).coalesce(1).write.mode("append").parquet(
            str(folder / "in")
        )

    def commit_and_die(context: Any, request: dict[str, Any]) -> Any:
        reply = write_operations.commit(context, request)
        if request["epoch"] == 1:
            os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return reply

    dispatcher._OWN["write.commit"] = commit_and_die
    stream(spark, folder, "plain").awaitTermination()
    return {}


def again(folder: Path) -> dict[str, Any]:
    lake = connect(folder, "local[2]")
    spark = lake.spark
    before = lake.catalog.load_table("db.plain")
    committed = [each.commit_identifier for each in before.snapshots()]
    stream(spark, folder, "plain").awaitTermination()
    return {
        "committed": committed,
        "stream": state(lake, "plain"),
        "epochs": [each.commit_identifier for each in before.snapshots()],
    }


def retry(folder: Path) -> dict[str, Any]:
    lake = connect(folder, "local[2,4]")
    lake.spark.sql("CREATE DATABASE lake.db")
    return {
        "retried": failing(lake, folder, "retried", fails_once),
        "retried with a key": failing(lake, folder, "keyed", fails_once, key=True),
        "retried stream": failing_stream(lake, folder),
        "retried with keys that move": failing_answers(lake),
    }


def lose(folder: Path) -> dict[str, Any]:
    lake = connect(folder, "local-cluster[2,1,600]")
    lake.spark.sql("CREATE DATABASE lake.db")
    return failing(lake, folder, "lost", kills_its_executor)


def fails_once(number: int) -> int:
    context = TaskContext.get()
    # Late, so that the task has opened its file and written rows.
    if context.attemptNumber() == 0 and number % 5000 == 4999:
        raise RuntimeError("the first attempt")
    return number


def kills_its_executor(number: int) -> int:
    context = TaskContext.get()
    if context.attemptNumber() == 0 and number == 14_999:
        daemon = os.getppid()
        status = Path(f"/proc/{daemon}/status").read_text()
        os.kill(int(status.split("PPid:")[1].split()[0]), signal.SIGKILL)
        time.sleep(60)
    return number


def failing(lake: Any, folder: Path, name: str, call: Any, *, key: bool = False) -> dict[str, Any]:
    from lockgate.framework.store.write import write_session

    spark = lake.spark
    # Keys of an index come in files of their own, which nobody is to leave behind either.
    write_session.INLINE_BYTES = 0
    properties = "'index.values.columns' = 'id'" + (", 'primary-key' = 'id', 'bucket' = '2'" if key else "")
    spark.sql(f"CREATE TABLE lake.db.{name} (id BIGINT) TBLPROPERTIES ({properties})")
    through = f.udf(call, "long", useArrow=False)
    frame = spark.range(0, 20_000, 1, 4).select(through("id").alias("id"))
    frame.writeTo(f"lake.db.{name}").append()
    return state(lake, name)


def failing_stream(lake: Any, folder: Path) -> dict[str, Any]:
    spark = lake.spark
    spark.sql("CREATE TABLE lake.db.streamed (id BIGINT)")
    spark.range(0, 20_000, 1, 2).write.parquet(str(folder / "more"))
    through = f.udf(fails_once, "long", useArrow=False)
    rows = spark.readStream.schema("id LONG").parquet(str(folder / "more")).select(through("id").alias("id"))
    query = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint-streamed"))
    query.trigger(availableNow=True).toTable("lake.db.streamed").awaitTermination()
    return state(lake, "streamed")


def failing_answers(lake: Any) -> dict[str, Any]:
    """Every task that writes learns where its keys lie, fails, and asks again in its second try."""
    from lockgate.framework.spark.bridge import dispatcher
    from lockgate.framework.spark.operations import assignments

    spark = lake.spark
    spark.sql(
        "CREATE TABLE lake.db.moving (id BIGINT, p BIGINT) PARTITIONED BY (p) TBLPROPERTIES ("
        "'primary-key' = 'id', 'bucket' = '-1', 'dynamic-bucket.target-row-num' = '3000')"
    )
    rows = spark.range(0, 20_000, 1, 4)
    rows.select("id", (f.col("id") % 3).alias("p")).writeTo("lake.db.moving").append()
    failed: set[str] = set()

    def locate_and_fail(context: Any, request: dict[str, Any]) -> Any:
        reply = assignments.locate(context, request)
        task = request["attempt"].rsplit("-", 1)[0]
        if task not in failed:
            failed.add(task)
            raise RuntimeError("the answer is lost")
        return reply

    dispatcher._OWN["write.locate"] = locate_and_fail
    try:
        moved = rows.select("id", ((f.col("id") + 1) % 3).alias("p"))
        moved.writeTo("lake.db.moving").append()
    finally:
        dispatcher._OWN["write.locate"] = assignments.locate
    found = state(lake, "moving")
    wrong = lake.spark.sql("SELECT count(*) FROM lake.db.moving WHERE p != (id + 1) % 3").first()[0]
    return {**found, "others": found["others"] + wrong} if failed else {"failed": 0}


def speculate(folder: Path, master: str) -> dict[str, Any]:
    lake = connect(
        folder,
        master,
        spark_speculation="true",
        spark_speculation_interval="100ms",
        spark_speculation_minTaskRuntime="100ms",
        spark_speculation_quantile="0.5",
        spark_speculation_multiplier="1.1",
    )
    lake.spark.sql("CREATE DATABASE lake.db")
    written = failing(lake, folder, "speculated", waits_at_first)
    # The copy that lost is killed, and deletes what it wrote.
    deadline = time.monotonic() + 30
    while (written := state(lake, "speculated"))["others"] and time.monotonic() < deadline:
        time.sleep(0.1)
    copies = [path.name for path in folder.glob("copy-*")]
    return {**written, "copies": len(copies)}


def waits_at_first(number: int) -> int:
    context = TaskContext.get()
    if number == 14_999:
        folder = Path(os.environ["COPIES"])
        (folder / f"copy-{context.attemptNumber()}").touch()
        if context.attemptNumber() == 0:
            time.sleep(60)
    return number


def state(lake: Any, name: str) -> dict[str, Any]:
    """Rows, distinct rows and their sum, the data files that no snapshot names and the files of keys."""
    table = lake.catalog.load_table(f"db.{name}")
    ids = table.read(columns=["id"])["id"].to_pylist()
    live = {each.file.file_name for each in table.manifests.live_files(table.latest_snapshot())}
    files = {path.name for path in Path(table.location).rglob("data-*")}
    keys = list(Path(table.location).rglob("keys-*"))
    return {"rows": [len(ids), len(set(ids)), sum(ids)], "others": len(files - live) + len(keys)}


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    job: Any = {"die": die, "again": again, "retry": retry, "lose": lose, "speculate": speculate}[sys.argv[1]]
    print(json.dumps(job(Path(sys.argv[2]), *sys.argv[3:])))
