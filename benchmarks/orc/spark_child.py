"""Scans of ORC files by Spark, in a JVM of their own; `spark_scan` starts this and reads its last line."""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import lockgate
from lockgate.framework.keys import MemoryKeyProvider

CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
}
MASTER = "local[2]"
# The JVM compiles what decrypts and verifies during the first scans.
_WARM_UP = 5


def connector(task: dict[str, Any]) -> dict[str, Any]:
    """Seconds that scans of a plain and of an encrypted table take in turns, by the clock and by the CPU's.

    The tables hold the rows of the plain file, and are written by Spark through the connector.
    """
    keys = MemoryKeyProvider({name: base64.b64decode(key) for name, key in task["keys"].items()})
    lake = lockgate.connect(Path(task["folder"]) / "warehouse", keys=keys, master=MASTER, conf=CONF)
    lake.sql("CREATE DATABASE lake.bench")
    source = lake.spark.read.orc(task["plain"])
    columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in source.schema)
    codec = f"'orc.compress' = '{task['codec']}'"
    options = {"plain": codec, "encrypted": f"{codec}, 'orc.encrypt' = '{task['encrypt']}'"}
    for kind, properties in options.items():
        lake.sql(f"CREATE TABLE lake.bench.{kind} ({columns}) TBLPROPERTIES ({properties})")
        source.writeTo(f"lake.bench.{kind}").append()
    _same(lake.table("bench.plain"), lake.table("bench.encrypted"))
    return _timed(
        lake.spark, {kind: lambda kind=kind: _scan(lake.table(f"bench.{kind}")) for kind in options}, task
    )


def native(task: dict[str, Any]) -> dict[str, Any]:
    """Seconds that scans of the encrypted file by Spark's own ORC source take."""
    builder = SparkSession.builder.master(MASTER)
    for key, value in CONF.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    jvm: Any = spark.sparkContext._jvm
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("orc.key.provider", "memory")
    keystore = jvm.org.apache.orc.impl.CryptoUtils.getKeyProvider(conf, jvm.java.security.SecureRandom())
    for name, key in task["keys"].items():
        plain = base64.b64decode(key)
        algorithm = getattr(jvm.org.apache.orc.EncryptionAlgorithm, f"AES_CTR_{8 * len(plain)}")
        keystore.addKey(name.partition("@")[0], algorithm, bytearray(plain))
    encrypted = spark.read.option("orc.key.provider", "memory").orc(task["encrypted"])
    _same(spark.read.orc(task["plain"]), encrypted)
    return _timed(spark, {"native": lambda: _scan(encrypted)}, task)


def _scan(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _same(plain: DataFrame, encrypted: DataFrame) -> None:
    """Raise unless both hold the same rows, as far as numbers of them tell."""
    query = "count(*)", "sum(id)", "max(ssn)", "sum(length(email))", "max(born)", "sum(salary)", "max(score)"
    if plain.selectExpr(*query).first() != encrypted.selectExpr(*query).first():
        raise AssertionError("the plain and the encrypted rows differ")


def _timed(spark: SparkSession, scans: dict[str, Callable[[], None]], task: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {name: {"wall": [], "cpu": []} for name in scans}
    for repetition in range(-_WARM_UP, task["repetitions"]):
        names = list(scans) if repetition % 2 == 0 else list(reversed(scans))
        for name in names:
            wall, cpu = time.perf_counter(), _cpu(spark)
            scans[name]()
            if repetition >= 0:
                found[name]["wall"].append(time.perf_counter() - wall)
                found[name]["cpu"].append(_cpu(spark) - cpu)
    spark.stop()
    return found


def _cpu(spark: SparkSession) -> float:
    """Seconds of CPU that the JVM has used, its compiler and collector included."""
    pid = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # there: not Connect
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({"connector": connector, "native": native}[asked["scan"]](asked)))
