"""Runs a little of what tests do in Spark, so that the JVM keeps the classes it has loaded as it ends."""

from __future__ import annotations

import tempfile
from pathlib import Path

import lockgate
from lockgate.keys import create_key_file

CONFS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys.json"
        create_key_file(str(keys), ["pii"])
        spark = lockgate.connect(f"{folder}/lake", keys=f"file:{keys}", master="local[2]", conf=CONFS).spark
        spark.sql("CREATE DATABASE lake.db")
        spark.sql("CREATE TABLE lake.db.t (id INT, s STRING)")
        spark.sql("INSERT INTO lake.db.t SELECT id, concat('s', id) FROM range(100)")
        spark.sql("DELETE FROM lake.db.t WHERE id = 3")
        spark.sql(
            "SELECT s, count(*), sum(id) FROM lake.db.t JOIN range(9) USING (id) GROUP BY s ORDER BY s"
        ).collect()
        stream = spark.readStream.format("rate").load().writeStream.format("memory").queryName("rates")
        stream.trigger(availableNow=True).start().awaitTermination()
        spark.createDataFrame([(1, "a")], "n INT, s STRING").write.parquet(f"{folder}/rows")
        spark.read.parquet(f"{folder}/rows").selectExpr("n + 1", "upper(s)").collect()
        # The JVM writes the archive as it ends, and it ends when nobody talks to it any more.
        java = spark.sparkContext._gateway.proc
        spark.stop()
        java.stdin.close()
        java.wait(timeout=120)


if __name__ == "__main__":
    main()
