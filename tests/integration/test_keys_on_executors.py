"""Keys where rows are read and written: asked of the driver, checked before use, masks without them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lockgate.framework.keys import create_key_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

JOB = Path(__file__).parent / "executor" / "cluster_job.py"
MakeName = Callable[[str], str]


@pytest.fixture
def people(spark: SparkSession, table: MakeName) -> str:
    """An append table of 2,000 rows with an encrypted column under each of two keys."""
    name = table("people")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, ssn STRING, email STRING) TBLPROPERTIES ("
        "'orc.encrypt' = 'pii:ssn;other:email', 'orc.mask' = 'nullify:ssn;sha256:email')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, concat('s', id), concat('e', id % 10) FROM range(2000)")
    return name


def _catalog(spark: SparkSession, name: str, warehouse: Path, keys: Path | None) -> None:
    spark.conf.set(f"spark.sql.catalog.{name}", "io.lockgate.spark.LockgateCatalog")
    spark.conf.set(f"spark.sql.catalog.{name}.warehouse", str(warehouse))
    if keys is not None:
        spark.conf.set(f"spark.sql.catalog.{name}.keys", f"file:{keys}")


def test_encrypted_columns_come_back(spark: SparkSession, people: str) -> None:
    row = spark.sql(f"SELECT count(*), min(ssn), max(ssn), count(DISTINCT email) FROM {people}").first()
    assert row == (2000, "s0", "s999", 10)
    assert spark.sql(f"SELECT id FROM {people} WHERE ssn = 's77'").collect() == [(77,)]


@pytest.mark.filterwarnings("ignore::lockgate.errors.MaskedDataWarning")
def test_one_jvm_tells_catalogs_with_and_without_keys_apart(
    spark: SparkSession, people: str, lake_folder: Path, key_file: Path, tmp_path: Path
) -> None:
    held = json.loads(key_file.read_text())
    wrong = tmp_path / "wrong.json"
    create_key_file(str(wrong), ["pii", "other"])
    assert held != json.loads(wrong.read_text())
    session = spark.newSession()
    _catalog(session, "nokeys", lake_folder / "warehouse", None)
    _catalog(session, "wrongkeys", lake_folder / "warehouse", wrong)
    query = "SELECT count(ssn), max(length(email)), count(*) FROM {}"
    for _ in range(2):
        assert session.sql(query.format(people)).first() == (2000, 2, 2000)
        assert session.sql(query.format(people.replace("lake.", "nokeys.", 1))).first() == (0, 64, 2000)
        with pytest.raises(Exception, match=r"WrongKeyError: key (pii|other)@0 does not open file:"):
            session.sql(query.format(people.replace("lake.", "wrongkeys.", 1))).collect()
        # Also where no encrypted column is read: the files' integrity tags need a key that is right.
        with pytest.raises(Exception, match=r"WrongKeyError: key (pii|other)@0 does not open file:"):
            session.sql(f"SELECT sum(id) FROM {people.replace('lake.', 'wrongkeys.', 1)}").collect()


@pytest.mark.filterwarnings("ignore::lockgate.errors.MaskedDataWarning")
def test_executors_read_what_python_encrypted(
    lake: Lake, spark: SparkSession, people: str, lake_folder: Path
) -> None:
    _, database, name = people.split(".")
    rows = {"id": range(5000, 5100), "ssn": ["p"] * 100, "email": [None, "e1"] * 50}
    lake.catalog.load_table(f"{database}.{name}").append(pa.table(rows))
    query = "SELECT count(*), count(email), min(ssn), max(ssn) FROM {} WHERE id >= 5000"
    assert spark.sql(query.format(people)).first() == (100, 50, "p", "p")
    session = spark.newSession()
    _catalog(session, "nokeys", lake_folder / "warehouse", None)
    masked = people.replace("lake.", "nokeys.", 1)
    assert session.sql(query.format(masked)).first() == (100, 50, None, None)


def test_no_plaintext_lies_in_the_files(lake: Lake, people: str) -> None:
    _, database, name = people.split(".")
    location = Path(lake.catalog.load_table(f"{database}.{name}").location)
    for path in location.rglob("*"):
        if path.is_file():
            assert b"s1234" not in path.read_bytes(), path


def test_sparks_own_reader_is_served_by_the_same_keys(lake: Lake, spark: SparkSession, people: str) -> None:
    """`orc.key.provider=lockgate:<scope>` lets Spark's own ORC source, as migrations use it, ask for keys."""
    from lockgate.framework.spark.bridge.dispatcher import dispatcher

    _, database, name = people.split(".")
    table = lake.catalog.load_table(f"{database}.{name}")
    scope = dispatcher().scopes.register(table.keys)
    files = str(Path(table.location) / "bucket-0")
    read = (
        spark.read.schema("id BIGINT, ssn STRING").option("orc.key.provider", f"lockgate:{scope}").orc(files)
    )
    assert read.selectExpr("count(ssn)", "max(ssn)").first() == (2000, "s999")
    assert spark.read.schema("ssn STRING").orc(files).selectExpr("count(ssn)").first() == (0,)


def _run(job: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(JOB), job, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    keys = json.dumps(json.loads((folder / "keys.json").read_text()))
    secrets = [word for word in keys.replace('"', " ").split() if len(word) >= 20]
    assert secrets
    assert not [word for word in secrets if word in done.stdout + done.stderr]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.cluster
def test_executors_of_a_cluster_ask_the_driver(tmp_path: Path) -> None:
    found = _run("with", tmp_path)
    assert found["executors"] == 3  # the driver and two executors
    assert found["rows"] == [["s", 800, sum(range(100, 900))], ["t", 100, sum(range(100))]]
    assert found["masked"] == [900, 0, 1000]
    without = _run("without", tmp_path)["error"]
    assert "spark.plugins=io.lockgate.spark.LockgatePlugin" in without
