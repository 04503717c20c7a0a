"""Run on a small cluster: executors in JVMs of their own write, change and read an encrypted key table."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any


def _confs(folder: Path) -> dict[str, str]:
    return {
        "spark.executor.memory": "1g",
        # Executors start as fast as the driver.
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }


def with_plugin(folder: Path) -> dict[str, Any]:
    import lockgate
    from lockgate.framework.keys import create_key_file

    create_key_file(str(folder / "keys.json"), ["pii"])
    warnings.simplefilter("ignore")
    lake = lockgate.connect(
        folder / "warehouse",
        keys=f"file:{folder / 'keys.json'}",
        master="local-cluster[2,1,1024]",
        conf=_confs(folder),
    )
    spark = lake.spark
    spark.sql("CREATE DATABASE lake.db")
    spark.sql(
        "CREATE TABLE lake.db.people (id BIGINT NOT NULL, ssn STRING, n INT) TBLPROPERTIES ("
        "'primary-key' = 'id', 'bucket' = '2', 'orc.encrypt' = 'pii:ssn', 'orc.mask' = 'nullify:ssn')"
    )
    spark.sql("INSERT INTO lake.db.people SELECT id, concat('s', id), 1 FROM range(0, 1000, 1, 4)")
    spark.sql("INSERT INTO lake.db.people SELECT id, concat('t', id), 2 FROM range(0, 100, 1, 4)")
    spark.sql("DELETE FROM lake.db.people WHERE id >= 900")
    found = spark.sql("SELECT substr(ssn, 1, 1) kind, count(*) n, sum(id) ids FROM lake.db.people GROUP BY 1")
    spark.conf.set("spark.sql.catalog.public", "io.lockgate.spark.LockgateCatalog")
    spark.conf.set("spark.sql.catalog.public.warehouse", str(folder / "warehouse"))
    masked = spark.sql("SELECT count(*), count(ssn), sum(n) FROM public.db.people").first()
    return {
        "rows": sorted(list(row) for row in found.collect()),
        "masked": list(masked or ()),
        "executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size(),
    }


def without_plugin(folder: Path) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    import lockgate
    from lockgate.framework.spark.bridge.connector_jars import jar

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.jars", str(jar()))
    builder = builder.config("spark.sql.extensions", "io.lockgate.spark.LockgateExtensions")
    for key, value in _confs(folder).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    warnings.simplefilter("ignore")
    lake = lockgate.connect(folder / "warehouse", keys=f"file:{folder / 'keys.json'}", spark=spark)
    try:
        lake.spark.sql("SELECT max(ssn) FROM lake.db.people").collect()
    except Exception as error:
        return {"error": str(error)}
    return {"error": ""}


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    job = {"with": with_plugin, "without": without_plugin}[sys.argv[1]]
    print(json.dumps(job(Path(sys.argv[2]))))
