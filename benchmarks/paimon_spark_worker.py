"""Statements of Spark, run in a process of their own and timed there.

paimon_spark_worker.py FOLDER CONF   reads JSON lines {"sql", "out"} and answers each by one of
                                     {"seconds"} or {"error"}

FOLDER is the warehouse, CONF a JSON object of Spark's settings; `lockgate` in the place of a catalog's class
stands for Lockgate's. It runs in two environments, so it imports at the top only what both have.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def start(folder: str, conf: dict[str, str]) -> Any:
    """Open a session; the catalog is called `lake` under both engines."""
    if conf.get("spark.sql.catalog.lake") == "lockgate":
        import lockgate

        del conf["spark.sql.catalog.lake"]
        return lockgate.connect(folder, master=conf.pop("spark.master"), conf=conf).spark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.sql.catalog.lake.warehouse", folder)
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def answer(spark: Any, asked: dict[str, str]) -> dict[str, Any]:
    """Run one statement; its rows go into the Arrow file `out`, if one is named."""
    started = time.perf_counter()
    frame = spark.sql(asked["sql"])
    if "out" not in asked:
        frame.collect()
        return {"seconds": time.perf_counter() - started}
    import pyarrow as pa

    rows = frame.toArrow()
    took = time.perf_counter() - started
    with pa.ipc.new_file(asked["out"], rows.schema) as file:
        file.write_table(rows)
    return {"seconds": took}


def main() -> None:
    """Answer until standard input ends."""
    answers = sys.stdout
    # Spark's own output must not come between the answers.
    sys.stdout = sys.stderr
    spark = start(sys.argv[1], json.loads(sys.argv[2]))
    for line in sys.stdin:
        try:
            found = answer(spark, json.loads(line))
        except Exception as error:
            # Without the stack of the JVM that Py4J's and Spark's texts go on with.
            found = {"error": f"{type(error).__name__}: {error}".split("\n\tat ")[0]}
        print(json.dumps(found), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
