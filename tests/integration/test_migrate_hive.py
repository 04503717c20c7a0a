"""`migrate_database` of Hive's own tables, by Spark's embedded metastore, in a session of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster

PROGRAM = """
import json, sys
import lockgate
folder = sys.argv[1]
lake = lockgate.connect(f"{folder}/lake", master="local[1]", conf={
    "spark.sql.catalogImplementation": "hive", "spark.ui.enabled": "false",
    "spark.sql.warehouse.dir": f"{folder}/hive", "spark.sql.session.timeZone": "UTC",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:migrating;create=true",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
})
lake.sql("CREATE DATABASE spark_catalog.old")
columns = "id BIGINT, name STRING, price DECIMAL(9,2), born DATE, tags ARRAY<STRING>"
for kind in ("ORC", "PARQUET", "AVRO", "TEXTFILE"):
    name = f"spark_catalog.old.{kind.lower()}_t"
    lake.sql(f"CREATE TABLE {name} ({columns}) PARTITIONED BY (day STRING) STORED AS {kind}")
    lake.sql(
        f"INSERT INTO {name} SELECT id, concat('n', id), id / 4, date_add(DATE'2024-01-01', int(id)), "
        "array('a', NULL), nullif(CAST(id % 3 AS STRING), '2') FROM range(8)"
    )
lake.sql("CREATE VIEW spark_catalog.old.seen AS SELECT id FROM spark_catalog.old.orc_t")
(row,) = lake.call("migrate_database", source_type="hive", database="old", target_database="new")
found = {}
# Of Avro, Spark shows a null partition by the name of its folder, as Hive's classes hand it on.
before = lake.spark.table("spark_catalog.old.orc_t").orderBy("id").collect()
assert [row.day for row in before] == ["0", "1", None, "0", "1", None, "0", "1"]
for kind in ("orc", "parquet", "avro"):
    after = lake.spark.table(f"lake.new.{kind}_t").orderBy("id").collect()
    found[kind] = [len(after), before == after]
(added,) = lake.call("migrate_file", source_type="hive", source_table="old.avro_t", target_table="new.orc_t",
                     delete_origin=True)
# Classes of Hive read ORC too, if Spark's own are switched off: then Spark names the folder alone.
lake.sql("SET spark.sql.hive.convertMetastoreOrc = false")
(plain,) = lake.call("migrate_table", source_type="hive", table="old.orc_t", target_table="new.again")
lake.sql(f"ALTER TABLE spark_catalog.old.parquet_t ADD PARTITION (day = '9') LOCATION '{folder}/elsewhere'")
lake.sql("INSERT INTO spark_catalog.old.parquet_t PARTITION (day = '9') SELECT 9, 'n', 1, NULL, NULL")
try:
    lake.call("migrate_table", source_type="hive", table="old.parquet_t", target_table="new.moved")
    refused = ""
except Exception as error:
    refused = str(error)
gone = not lake.spark.catalog.tableExists("spark_catalog.old.avro_t")
total = lake.spark.table("lake.new.orc_t").count()
print("found", json.dumps([row.asDict(), found, added.rows, gone, total, plain.rows, refused]))
"""


def test_tables_of_hive_are_migrated(tmp_path: Path) -> None:
    environment = {**os.environ, "LOCKGATE_LINEAGE_DIR": str(tmp_path / "index")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True, text=True, env=environment, cwd=tmp_path, check=False, timeout=300,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    assert lines, done.stderr[-3000:]
    counts, found, added, gone, total, plain, refused = json.loads(lines[0].removeprefix("found "))
    assert found == {"orc": [8, True], "parquet": [8, True], "avro": [8, True]}
    assert (counts["tables"], counts["migrated_tables"], counts["failed_tables"]) == (4, 3, 1)
    assert (counts["rows"], counts["failures"].count("textfile_t")) == (24, 2)
    assert (added, gone, total) == (8, True, 16)
    assert plain == 8
    assert "lies outside" in refused
