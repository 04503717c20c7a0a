"""Lineage of Hive's tables, in a session of its own: its commands are not known by their classes."""

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
    "spark.sql.warehouse.dir": f"{folder}/hive",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:lineage;create=true",
})
lake.sql("CREATE DATABASE lake.db")
lake.sql("CREATE TABLE lake.db.p (id INT, name STRING)")
for sql in (
    "CREATE TABLE default.h (id INT, name STRING) STORED AS TEXTFILE",
    "INSERT INTO default.h SELECT id, name FROM lake.db.p",
    "INSERT OVERWRITE default.h SELECT id, upper(name) FROM lake.db.p",
    "CREATE TABLE default.made STORED AS TEXTFILE AS SELECT name FROM lake.db.p",
    f"INSERT OVERWRITE LOCAL DIRECTORY '{folder}/out' STORED AS TEXTFILE SELECT name FROM lake.db.p",
    f"INSERT OVERWRITE DIRECTORY '{folder}/files' USING csv SELECT id, name FROM lake.db.p",
    f"LOAD DATA INPATH '{folder}/files' INTO TABLE default.h",
    "CREATE TABLE lake.db.back AS SELECT name FROM default.h",
):
    lake.sql(sql)
forward = lake.lineage("db.p.name", "forward").found
edges = {(each.process["kind"], each.source.qualified, each.target.qualified) for each in forward}
print("edges", json.dumps(sorted(edges)))
"""


def test_hives_commands_are_processes(tmp_path: Path) -> None:
    environment = {**os.environ, "LOCKGATE_LINEAGE_DIR": str(tmp_path / "index")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True, text=True, env=environment, cwd=tmp_path, check=False, timeout=300,
    )  # fmt: skip
    [line] = [line for line in done.stdout.splitlines() if line.startswith("edges ")] or [done.stderr]
    found = {tuple(each) for each in json.loads(line.removeprefix("edges "))}
    hive, files = "spark_catalog/default", f"file:{tmp_path}/files"
    assert found == {
        ("INSERT", "db.p.name", f"{hive}.h.name"),
        ("INSERT_OVERWRITE", "db.p.name", f"{hive}.h.name"),
        ("CREATE_TABLE_AS_SELECT", "db.p.name", f"{hive}.made.name"),
        ("EXPORT", "db.p.name", f"file:{tmp_path}/out#name"),
        ("EXPORT", "db.p.name", f"{files}#name"),
        ("LOAD", f"{files}#name", f"{hive}.h.name"),
        ("CREATE_TABLE_AS_SELECT", f"{hive}.h.name", "db.back.name"),
    }
