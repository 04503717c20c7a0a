"""Write values of an encrypted column to Kafka, refused and warned of; print what came of each as JSON.

What stands for a broker counts who asks it, and answers nobody.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lockgate
from lockgate.errors import PlaintextWarning
from lockgate.framework.keys import create_key_file


class NoBroker(threading.Thread):
    """Takes connections and closes them."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.asked = 0

    def run(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            self.asked += 1
            connection.close()


def options(broker: NoBroker) -> dict[str, str]:
    """What Spark's sink needs to know, and Kafka's patience."""
    quick = ("max.block.ms", "request.timeout.ms", "delivery.timeout.ms")
    return {
        "kafka.bootstrap.servers": broker.address,
        "topic": "people",
        "kafka.linger.ms": "0",
        **{f"kafka.{each}": "2000" for each in quick},
    }


def outcome(broker: NoBroker, write: Callable[[], None]) -> dict[str, Any]:
    """Say which error a write ended with, of what it warned, and how often the broker was asked."""
    before = broker.asked
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            write()
            error = ""
        except Exception as caught:
            error = str(caught)
    told = [str(each.message) for each in seen if issubclass(each.category, PlaintextWarning)]
    return {"error": error, "warnings": told, "asked": broker.asked - before}


def main(folder: Path, jars: str) -> None:
    create_key_file(str(folder / "keys.json"), ["pii"])
    conf = {"spark.jars": jars, "spark.ui.enabled": "false", "spark.log.level": "OFF"}
    conf |= {"spark.sql.warehouse.dir": str(folder / "spark"), "spark.task.maxFailures": "1"}
    lake = lockgate.connect(
        str(folder / "lake"), keys=f"file:{folder / 'keys.json'}", master="local[1]", conf=conf
    )
    spark, broker = lake.spark, NoBroker()
    broker.start()
    lake.sql("CREATE NAMESPACE lake.db")
    lake.sql("CREATE TABLE lake.db.people (id BIGINT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    lake.sql("INSERT INTO lake.db.people VALUES (0, 'secret'), (1, 'secret too')")
    people = spark.table("lake.db.people")
    ids = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    joined = ids.withColumnRenamed("value", "id").join(people, "id").selectExpr("ssn AS value")

    def batch() -> None:
        values = people.selectExpr("ssn AS value").write.format("kafka")
        values.options(**options(broker)).save()

    def stream(choice: str) -> None:
        writer = joined.writeStream.format("kafka").options(**options(broker))
        running = writer.option("checkpointLocation", str(folder / f"checkpoint_{choice}")).start()
        try:
            running.awaitTermination(120)
        finally:
            running.stop()

    found: dict[str, dict[str, Any]] = {"batch": {}, "stream": {}}
    for choice in ("refuse", "warn"):
        spark.conf.set("spark.lockgate.encryption.on-plaintext", choice)
        found["batch"][choice] = outcome(broker, batch)
        found["stream"][choice] = outcome(broker, lambda choice=choice: stream(choice))
    spark.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
