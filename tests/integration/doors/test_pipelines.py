"""Declarative pipelines with lookup joins, by `spark-pipelines` and by clients of a server."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest
from doors import SPARK_HOME, Server, client, confs, environment

pytestmark = pytest.mark.cluster

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
CONFS = {"spark.connect.grpc.binding.port": "{port}", "spark.connect.grpc.binding.address": "127.0.0.1"}
KEYED = "(id BIGINT NOT NULL, name STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')"
TABLES = f"""
CREATE NAMESPACE lake.db;
CREATE TABLE lake.db.people {KEYED};
CREATE TABLE lake.db.salaries {KEYED};
INSERT INTO lake.db.people VALUES (1, 'a'), (2, 'b');
INSERT INTO lake.db.salaries VALUES (1, '1000'), (2, '2000')
"""
SQL = """
from pyspark.sql import SparkSession

session = SparkSession.builder.remote(f"sc://127.0.0.1:{sys.argv[1]}/;user_id={sys.argv[2]}").create()
for statement in sys.argv[3].split(";"):
    rows = session.sql(statement).collect()
print([tuple(row) for row in rows])
"""
SPEC = """
name: orders
storage: file://{folder}/storage
catalog: lake
database: db
libraries:
  - glob:
      include: transformations/**
"""
COMING = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()


@dp.temporary_view
def coming():
    return spark.readStream.schema("id BIGINT, person BIGINT, proc_time TIMESTAMP").json({source!r})
"""
ENRICHED = """
CREATE STREAMING TABLE {name} TBLPROPERTIES ('bucket' = '-1') AS
SELECT o.id, d.name FROM STREAM(coming) AS o
LEFT JOIN lake.db.{table} FOR SYSTEM_TIME AS OF o.proc_time AS d ON o.person = d.id;
CREATE MATERIALIZED VIEW {name}_names AS
SELECT d.name, count(*) AS n FROM (SELECT explode(array(1L, 2L, 2L)) AS k) AS o
JOIN lake.db.{table} FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.k = d.id GROUP BY d.name;
"""


class Pipeline:
    """A pipeline in a folder: orders that come as files, joined with a table."""

    def __init__(self, folder: Path, name: str, table: str) -> None:
        self.folder, self._source = folder, folder / "coming"
        (folder / "transformations").mkdir(parents=True)
        self._source.mkdir()
        (folder / "spark-pipeline.yml").write_text(SPEC.format(folder=folder))
        (folder / "transformations" / "coming.py").write_text(COMING.format(source=str(self._source)))
        (folder / "transformations" / "made.sql").write_text(ENRICHED.format(name=name, table=table))

    def order(self, number: int, person: int) -> None:
        """Let one order come."""
        row = {"id": number, "person": person, "proc_time": "2024-01-01T00:00:00Z"}
        (self._source / f"{number}.json").write_text(json.dumps(row))

    def run(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Run it once, until all that has come is done."""
        return subprocess.run(
            [*command, "run", "--spec", str(self.folder / "spark-pipeline.yml")],
            env=environment(**more),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )


def run_on(server: Server, user: str, pipeline: Pipeline) -> subprocess.CompletedProcess[str]:
    """Run a pipeline by Connect's own client, which has neither Spark nor Lockgate."""
    python = Path(os.environ["LOCKGATE_CLIENT_PYTHON"])
    (program,) = python.parent.parent.glob("lib/*/site-packages/pyspark/pipelines/cli.py")
    # What `spark-pipelines --remote` does before it runs this file; the program itself needs Spark's JVM.
    remote = f"sc://127.0.0.1:{server.port}/;user_id={user}"
    return pipeline.run([str(python), str(program)], SPARK_REMOTE=remote, SPARK_CONNECT_MODE_ENABLED="1")


def test_users_of_a_server_have_pipelines_of_their_own(start: Callable[..., Server], tmp_path: Path) -> None:
    """Flows look up with the rights of anyone who runs the pipeline, though Spark runs them in a clone."""
    server = start(CLASS, CONFS)
    client(SQL, server.port, "alice", TABLES)
    orders = Pipeline(tmp_path / "orders", "enriched", "people")
    orders.order(10, 1)
    orders.order(11, 3)
    done = run_on(server, "alice", orders)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    client(SQL, server.port, "alice", "INSERT INTO lake.db.people VALUES (1, 'z'), (3, 'c')")
    orders.order(12, 1)
    done = run_on(server, "alice", orders)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    rows = client(SQL, server.port, "alice", "SELECT * FROM lake.db.enriched ORDER BY id")
    assert rows == "[(10, 'a'), (11, None), (12, 'z')]\n", "a second run takes what is new, by a new snapshot"
    rows = client(SQL, server.port, "alice", "SELECT * FROM lake.db.enriched_names ORDER BY name")
    assert rows == "[('b', 2), ('z', 1)]\n"

    stolen = Pipeline(tmp_path / "stolen", "stolen", "salaries")
    stolen.order(10, 1)
    denied = run_on(server, "bob", stolen)
    assert denied.returncode != 0
    assert "bob may not read salaries" in denied.stdout + denied.stderr
    assert "1000" not in denied.stdout + denied.stderr
    tables = client(SQL, server.port, "alice", "SHOW TABLES IN lake.db")
    assert "stolen" not in tables
    users = {line.split()[0] for line in server.asked.read_text().splitlines()}
    # The process that fills a cache reads as the account of the server.
    assert users - {getpass.getuser()} == {"alice", "bob"}
    reads = [line for line in server.asked.read_text().splitlines() if "enriched" in line]
    assert {line.split()[0] for line in reads} == {"alice"}


def test_a_client_without_a_name_is_refused(start: Callable[..., Server]) -> None:
    server = start(CLASS, CONFS, free=True)
    printed = client(
        """
    from pyspark.sql import SparkSession
    import os

    os.environ.pop("USER", None)
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{sys.argv[1]}").create()
    try:
        print(session.sql("SHOW NAMESPACES IN lake").collect())
    except Exception as error:
        print(error)
    """,
        server.port,
    )
    assert "names no user: give one in its address" in printed


def test_spark_pipelines_in_a_process_of_its_own(tmp_path: Path) -> None:
    """It starts Connect's server in the JVM of a Python program, whose session cannot attach."""
    python = os.environ.get("LOCKGATE_CLIENT_PYTHON")
    if python is None:
        pytest.skip("needs the packages of Spark's remote client: ./dev test --cluster installs them")
    (packages,) = Path(python).parent.parent.glob("lib/*/site-packages")
    lake = tmp_path / "lake"
    made = subprocess.run(
        [str(SPARK_HOME / "bin" / "spark-sql"), *confs(lake), "-e", TABLES],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert made.returncode == 0, made.stderr[-3000:]
    # A start in local mode hands on no --conf but the last.
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    values = [each.partition("=") for each in confs(lake) if "=" in each]
    defaults.write_text("".join(f"{key} {value}\n" for key, _, value in values))
    orders = Pipeline(tmp_path / "orders", "enriched", "people")
    orders.order(10, 1)
    orders.order(11, 3)
    # The packages of Spark first: the client's are those of Spark without the JVM.
    paths = [Path(pyspark.__file__).parent.parent, packages]
    done = subprocess.run(
        [str(SPARK_HOME / "bin" / "spark-pipelines"), "run", "--remote", "local[1]"],
        env=environment(
            USER="alice",
            SPARK_CONF_DIR=str(defaults.parent),
            PYSPARK_PYTHON=sys.executable,
            PYTHONPATH=os.pathsep.join(map(str, paths)),
        ),
        cwd=orders.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Run is COMPLETED" in done.stdout + done.stderr
    read = subprocess.run(
        [
            str(SPARK_HOME / "bin" / "spark-sql"),
            *confs(lake),
            "-e",
            "SELECT * FROM lake.db.enriched ORDER BY id",
        ],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert read.stdout.splitlines()[-2:] == ["10\ta", "11\tNULL"], read.stderr[-3000:]
