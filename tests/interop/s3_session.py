"""A Spark session of its own that writes and reads a table in S3: JARS ENDPOINT WAREHOUSE."""

from __future__ import annotations

import sys
from pathlib import Path

from s3_server import options_for

import lockgate

jars, endpoint, warehouse = sys.argv[1:]
conf = {f"spark.hadoop.{key}": value for key, value in options_for(endpoint).items()} | {
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.jars": ",".join(str(path) for path in Path(jars).glob("*.jar")),
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
}
lake = lockgate.connect(warehouse, master="local[2]", conf=conf)
lake.sql("CREATE NAMESPACE lake.db")
lake.sql("CREATE TABLE lake.db.t (id BIGINT, v STRING)")
lake.sql("INSERT INTO lake.db.t VALUES (1, 'a'), (2, 'b')")
table = lake.catalog.load_table("db.t")
table.append(table.read())
rows = [tuple(row) for row in lake.sql("SELECT id, v FROM lake.db.t ORDER BY id").collect()]
assert rows == [(1, "a"), (1, "a"), (2, "b"), (2, "b")], rows
lake.spark.stop()
