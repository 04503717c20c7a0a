"""Run in a JVM of one time zone: read timestamps of pyarrow, Spark and our own; print them as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
from plain_dispatcher import PlainDispatcher, PlainTable

from lockgate.framework.spark.bridge.connector_jars import jar

SCHEMA = "id BIGINT, ntz TIMESTAMP_NTZ, ltz TIMESTAMP"


def _session(zone: str, folder: Path) -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", str(jar()))
        .config("spark.driver.extraJavaOptions", f"-Duser.timezone={zone}")
        .config("spark.sql.extensions", "io.lockgate.spark.LockgateExtensions")
        .config("spark.sql.catalog.lake", "io.lockgate.spark.LockgateCatalog")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def _rows(spark: Any, name: str, where: str = "true") -> list[list[Any]]:
    text = f"SELECT id, CAST(ntz AS STRING), unix_micros(ltz) FROM lake.db.{name} WHERE {where} ORDER BY id"
    return [list(row) for row in spark.sql(text).collect()]


def main(zone: str, folder: Path, written_elsewhere: list[str]) -> None:
    values = json.loads((folder / "values.json").read_text())
    spark = _session(zone, folder)
    dispatcher = PlainDispatcher(spark)
    arrow = pa.table(
        {
            "id": pa.array(range(len(values)), pa.int64()),
            "ntz": pa.array([value[0] for value in values], pa.timestamp("us")),
            "ltz": pa.array([value[1] for value in values], pa.timestamp("us", "UTC")),
        }
    )
    frame = spark.createDataFrame(
        [(i, *value) for i, value in enumerate(values)], "id BIGINT, ntz BIGINT, ltz BIGINT"
    ).selectExpr(
        "id",
        "TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, ntz DIV 1000000)"
        " + make_dt_interval(0, 0, 0, (ntz % 1000000) / CAST(1000000 AS DECIMAL(10, 0))) AS ntz",
        "timestamp_micros(ltz) AS ltz",
    )
    schema = json.loads(spark.createDataFrame([], SCHEMA).schema.json())
    own = PlainTable(str(folder / f"own-{zone.replace('/', '-')}"), schema)
    dispatcher.tables["own"] = own
    frame.coalesce(1).writeTo("lake.db.own").append()
    own_file = f"{own.location}/bucket-0/{own.written[0]['file']['name']}"
    own.add(own_file)
    found: dict[str, Any] = {"own": _rows(spark, "own"), "stats": own.written[0]["file"]["stats"]}
    back = pa.orc.read_table(own_file)
    found["own in pyarrow"] = [
        [
            back["id"][i].as_py(),
            back["ntz"].cast(pa.timestamp("us")).cast(pa.int64())[i].as_py(),
            back["ltz"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())[i].as_py(),
        ]
        for i in range(back.num_rows)
    ]
    theirs = PlainTable(str(folder), schema)
    dispatcher.tables["arrow"] = theirs
    pa.orc.write_table(arrow, str(folder / f"arrow-{zone.replace('/', '-')}.orc"))
    theirs.add(str(folder / f"arrow-{zone.replace('/', '-')}.orc"))
    found["pyarrow's"] = _rows(spark, "arrow")
    native = folder / f"native-{zone.replace('/', '-')}"
    frame.coalesce(1).write.orc(str(native))
    for number, path in enumerate([str(native), *written_elsewhere]):
        table = PlainTable(path, schema)
        dispatcher.tables[f"native{number}"] = table
        table.add(*map(str, Path(path).glob("*.orc")))
        found[f"Spark's from {Path(path).name}"] = _rows(spark, f"native{number}")
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
