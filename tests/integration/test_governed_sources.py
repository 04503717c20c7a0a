"""Holes tried on tables of Hive, on those of a database by JDBC, and on unknown sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from child_paths import python_path

# Hive's own files, its columns in Parquet, which Spark reads itself, and Derby, which takes whole queries.
PROGRAM = """
import json, sys
from pathlib import Path

import lockgate
from governed_hole_cases import HOLES
from governed_holes import (
    COLUMNS, KINDS, ROWS, USERS, limits, names, outcome, own_table, statements, wrong
)
from governed_world import governed
from pyspark.sql.datasource import DataSource
from ranger_world import allow

folder, step = Path(sys.argv[1]), int(sys.argv[2])
jdbc, url = "spark.sql.catalog.derby", "jdbc:derby:memory:holes"
TABLES = {
    "hive": "spark_catalog.default.hived",
    "hive, read by Spark": "spark_catalog.default.hived_parquet",
    "jdbc": "derby.APP.holes",
}
lake = lockgate.connect(str(folder / "lake"), master="local[2]", conf={
    "spark.sql.catalogImplementation": "hive", "spark.ui.enabled": "false",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.warehouse.dir": str(folder / "hive"),
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    jdbc: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    f"{jdbc}.url": url, f"{jdbc}.driver": "org.apache.derby.jdbc.EmbeddedDriver",
    f"{jdbc}.pushDownAggregate": "true", f"{jdbc}.pushDownLimit": "true", f"{jdbc}.pushDownOffset": "true",
})
jvm = lake.spark._jvm
connection = jvm.java.sql.DriverManager.getConnection(url + ";create=true")
kinds = {"STRING": "VARCHAR(20)"}
named = [(words[0], " ".join(kinds.get(word, word) for word in words[1:]))
         for words in (column.split() for column in COLUMNS.split(", "))]
columns = ", ".join(f'"{name}" {kind}' for name, kind in named)
values = ", ".join(f"({key}, '{name}', {n}, '{dept}', {pay})" for key, name, n, dept, pay in ROWS)
connection.createStatement().execute(f'CREATE TABLE "holes" ({columns})')
connection.createStatement().execute(f'INSERT INTO "holes" VALUES {values}')
connection.createStatement().execute('CREATE TABLE "open" ("id" BIGINT)')
named = "spark_catalog.default.open"
lake.sql(f"CREATE TABLE {named} USING jdbc OPTIONS (url '{url}', dbtable 'APP.\\"open\\"')")
lake.sql("CREATE NAMESPACE lake.holes")
plain = COLUMNS.replace(" NOT NULL", "")
lake.sql(f"CREATE TABLE {TABLES['hive']} (id BIGINT, name STRING, n INT, pay INT)"
         " PARTITIONED BY (dept STRING) STORED AS TEXTFILE")
for dept in USERS:
    rows = ", ".join(f"({key}, '{name}', {n}, {pay})" for key, name, n, of, pay in ROWS if of == dept)
    lake.sql(f"INSERT INTO {TABLES['hive']} PARTITION (dept='{dept}') VALUES {rows}")
lake.sql(f"CREATE TABLE {TABLES['hive, read by Spark']} ({plain}) STORED AS PARQUET")
lake.sql(f"INSERT INTO {TABLES['hive, read by Spark']} VALUES {values}")


class Own(DataSource):
    @classmethod
    def name(cls):
        return "somebody"

    def schema(self):
        return "id INT"


wrongs = []
with governed(lake, folder / "policies.json") as world:
    world.put(*limits(TABLES))
    for kind, table in TABLES.items():
        # Spark deletes no rows of tables of its session's catalog.
        unknown = "DELETE" if table.startswith("spark_catalog") else "!"
        holes = [each for each in HOLES
                 if set(KINDS) <= set(each.kinds) and not each.text.startswith(unknown)]
        tried = [(hole, user) for hole in holes for user in USERS]
        for hole, user in tried[list(TABLES).index(kind) :: step]:
            texts = statements(hole, names(table, user, str(folder / "hive" / "hived_parquet")))
            found = outcome(world.session(user), texts, frame_of=table if hole.frame else None)
            if text := wrong(hole, user, found):
                wrongs.append(f"{kind}, {user}: {hole.text} {text[:400]}")
        stored = world.sql(f"SELECT id, name, n, dept, pay FROM {table}", "root")
        if stored != ROWS:
            wrongs.append(f"{kind} holds {stored}")
    ann = world.session("ann")
    ann.dataSource.register(Own)
    for name, called, options in (
        ("jdbc", "JDBCRelation", {"url": url, "dbtable": "APP.\\"holes\\""}),
        ("somebody", "PythonTable", {}),
    ):
        try:
            ann.read.format(name).options(**options).load().collect()
            wrongs.append(f"{name} is read")
        except Exception as error:
            if f"SELECT on path {called} is denied to user 'ann'" not in str(error):
                wrongs.append(f"{name}: {error}"[:400])
    # Options of a read may name another table to a database.
    world.put(*(allow(f"{table}.*", users=["ann"]) for table in ("derby.APP.open", named)))
    for options in ({"dbtable": 'APP."holes"'}, {"sessionInitStatement": 'INSERT INTO "open" VALUES 8'}):
        for table in ("derby.APP.open", named):
            try:
                rows = ann.read.options(**options).table(table).collect()
                wrongs.append(f"{options} give {rows}")
            except Exception as error:
                # What the table says itself, Spark lets no reader say.
                if f"may not read table {table} with the options" not in str(error) and (
                    table != named or "has the duplicated key" not in str(error)
                ):
                    wrongs.append(f"{options}: {error}"[:400])
    if world.sql("SELECT * FROM derby.APP.open"):
        wrongs.append("an option has written")
    print("wrongs", json.dumps([len(tried), *wrongs]))
lake.spark.stop()
"""


def wrongs(folder: Path, step: int) -> tuple[int, list[str]]:
    """Return how many holes were tried on the last kind of table, and what is wrong."""
    support = Path(__file__).parents[1] / "support"
    index = str(folder / "index")
    environment = {**os.environ, "LOCKGATE_LINEAGE_DIR": index, "PYTHONPATH": python_path(support)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(step)],
        capture_output=True, text=True, env=environment, cwd=folder, check=False, timeout=550,
    )  # fmt: skip
    [line] = [line for line in done.stdout.splitlines() if line.startswith("wrongs ")] or [
        done.stderr[-3000:]
    ]
    tried, *found = json.loads(line.removeprefix("wrongs "))
    return tried, found


@pytest.mark.slow
def test_no_hole_of_other_sources_shows_what_is_hidden(tmp_path: Path) -> None:
    tried, found = wrongs(tmp_path, 1)
    assert tried > 250
    assert not found, "\n".join(found)


@pytest.mark.cluster
@pytest.mark.long
def test_some_holes_of_other_sources_show_nothing_that_is_hidden(tmp_path: Path) -> None:
    _, found = wrongs(tmp_path, 17)
    assert not found, "\n".join(found)
