"""Programs that know Lockgate by their confs alone: an application in Java, and one in PySpark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from doors import SPARK_HOME, confs, environment

from lockgate.framework.keys import create_key_file

pytestmark = pytest.mark.cluster

APPLICATION = """
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.Trigger;

public final class Orders {
  public static void main(String[] arguments) throws Exception {
    SparkSession spark = SparkSession.builder().getOrCreate();
    Path folder = Path.of(arguments[0]);
    if (arguments.length > 1) {
      System.out.println("namespaces " + spark.sql("SHOW NAMESPACES IN lake").count());
      throw new IllegalStateException("the program fails, and stops nothing");
    }
    spark.sql("CREATE NAMESPACE lake.db");
    spark.sql(
        "CREATE TABLE lake.db.people (id BIGINT NOT NULL, name STRING, ssn STRING)"
            + " TBLPROPERTIES ('primary-key'='id', 'bucket'='1', 'orc.encrypt'='pii:ssn')");
    spark.sql("CREATE TABLE lake.db.enriched (id BIGINT, name STRING)");
    spark.sql("SELECT 1L AS id, 'a' AS name, '123' AS ssn UNION ALL SELECT 2L, 'b', '456-78-9012'")
        .writeTo("lake.db.people")
        .append();
    spark.range(1, 4).write().parquet(folder.resolve("orders").toString());
    spark
        .readStream()
        .schema("id BIGINT")
        .parquet(folder.resolve("orders").toString())
        .createOrReplaceTempView("orders");
    Dataset<Row> enriched =
        spark.sql(
            "SELECT o.id, d.name FROM orders AS o LEFT JOIN lake.db.people"
                + " FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.id = d.id");
    enriched
        .writeStream()
        .option("checkpointLocation", folder.resolve("checkpoint").toString())
        .trigger(Trigger.AvailableNow())
        .toTable("lake.db.enriched")
        .awaitTermination();
    List<Row> rows = spark.sql("SELECT * FROM lake.db.enriched ORDER BY id").collectAsList();
    System.out.println("enriched " + rows);
    System.out.println("ssn " + spark.sql("SELECT ssn FROM lake.db.people WHERE id = 2").collectAsList());
    System.out.println("compacted " + spark.sql("CALL lake.sys.compact('db.people')").count());
    try {
      spark.sql("SELECT * FROM lake.db.peple");
    } catch (Exception failure) {
      System.out.println("refused " + failure.getMessage().lines().findFirst().get());
    }
    spark.stop();
  }
}
"""


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jar of a program that knows Spark alone."""
    folder = tmp_path_factory.mktemp("application")
    (folder / "Orders.java").write_text(APPLICATION)
    jar = folder / "orders.jar"
    classpath = str(SPARK_HOME / "jars" / "*")
    for command in (
        ["javac", "-cp", classpath, "-d", str(folder / "classes"), str(folder / "Orders.java")],
        ["jar", "--create", "--file", str(jar), "-C", str(folder / "classes"), "."],
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return jar


def submit(
    application: Path, folder: Path, more: Mapping[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run the application until it ends, for two minutes at most."""
    return subprocess.run(
        [
            str(SPARK_HOME / "bin" / "spark-submit"),
            *confs(folder / "lake", **more),
            "--class",
            "Orders",
            str(application),
            str(folder),
            *arguments,
        ],
        env=environment(LOCKGATE_TEST=str(folder)),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def assert_nothing_runs(folder: Path) -> None:
    """Fail if a process of the application is left."""
    left = [
        each
        for each in psutil.process_iter(["environ"])
        if (each.info["environ"] or {}).get("LOCKGATE_TEST") == str(folder)
    ]
    _gone, alive = psutil.wait_procs(left, timeout=30)
    assert not alive


def test_an_application_in_java(application: Path, tmp_path: Path) -> None:
    """Writes, a stream with a lookup, an encrypted column, a procedure, an error; and nothing is left."""
    create_key_file(str(tmp_path / "keys.json"), ["pii"])
    keys = {"spark.sql.catalog.lake.keys": f"file:{tmp_path}/keys.json"}
    done = submit(application, tmp_path, keys)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "enriched [[1,a], [2,b], [3,null]]",
        "ssn [[456-78-9012]]",
        "compacted 1",
        "refused there is no table db.peple; did you mean 'db.people'?",
    ]
    assert_nothing_runs(tmp_path)
    files = [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"456-78-9012" in path.read_bytes()]


def test_an_application_that_fails_ends(application: Path, tmp_path: Path) -> None:
    """Threads that serve Python do not keep the JVM of a program that stops nothing."""
    done = submit(application, tmp_path, {}, "fail")
    assert done.returncode == 1, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["namespaces 1"]
    assert "the program fails, and stops nothing" in done.stderr
    assert_nothing_runs(tmp_path)


PYSPARK = """
import contextlib
import sys
import time
import psutil
from pyspark.sql import SparkSession

def answering():
    found = []
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.ZombieProcess):
            if "lockgate.framework.spark.session.child" in each.cmdline():
                found.append(each.pid)
    return found

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for conf in sys.argv[1:]:
    key, _, value = conf.partition("=")
    builder = builder.config(key, value)
spark = builder.getOrCreate()
assert "lockgate" not in sys.modules
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t (id BIGINT NOT NULL, ssn STRING) TBLPROPERTIES ('orc.encrypt'='pii:ssn')")
spark.range(3).selectExpr("id", "'s' || id AS ssn").writeTo("lake.db.t").append()
print("rows", [tuple(row) for row in spark.table("lake.db.t").orderBy("id").collect()], len(answering()))

import lockgate

lake = lockgate.attach(spark)
lake.sql("INSERT INTO lake.db.t VALUES (3, 's3')")
while answering():
    time.sleep(0.1)
print("attached", spark.table("lake.db.t").count())
spark.sql("DELETE FROM lake.db.t WHERE id = 0")
print("left", spark.table("lake.db.t").count(), len(answering()))
"""


def test_a_pyspark_program_that_attaches_late_or_never(tmp_path: Path) -> None:
    """The child that answers it runs the same Python, and ends when the program attaches."""
    create_key_file(tmp_path / "keys.json", ["pii"])
    (tmp_path / "program.py").write_text(PYSPARK)
    given = confs(tmp_path / "lake", **{"spark.sql.catalog.lake.keys": f"file:{tmp_path / 'keys.json'}"})
    given = [conf for conf in given[1::2] if not conf.startswith("spark.lockgate.python=")]
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), *given],
        env={**environment(), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "rows [(0, 's0'), (1, 's1'), (2, 's2')] 1",
        "attached 4",
        "left 3 0",
    ]
