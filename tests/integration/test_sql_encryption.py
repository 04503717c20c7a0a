"""Encrypted columns end to end: values with the key, masks without, keys nowhere else."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import textwrap
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.errors import AnalysisException

import lockgate
from lockgate.errors import KeyMissingError, MaskedDataWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.spark.operations import key_operations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

PROPERTIES = "'orc.encrypt' = 'pii:ssn,email', 'orc.mask' = 'nullify:ssn;sha256:email'"
ROWS = [(i, f"ssn-{i:05d}", f"person{i}@example.org") for i in range(50)]


@pytest.fixture(scope="module")
def blind(lake: Lake, lake_folder: Path) -> Lake:
    """The same warehouse as a catalog without keys."""
    return lockgate.connect(str(lake_folder / "warehouse"), spark=lake.spark, catalog="blind")


@pytest.fixture(params=["append", "key"])
def people(request: pytest.FixtureRequest, spark: SparkSession, table: Named) -> str:
    """`<database>.people`, with two encrypted columns, as a table without and with a key."""
    key = ", 'primary-key' = 'id', 'bucket' = '2'" if request.param == "key" else ""
    name = table("people")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING, email STRING) TBLPROPERTIES ({PROPERTIES}{key})")
    spark.createDataFrame(ROWS, "id INT, ssn STRING, email STRING").writeTo(name).append()
    return name.removeprefix("lake.")


def stored_bytes(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_values_with_the_key_masks_without(lake: Lake, blind: Lake, people: str, spark: SparkSession) -> None:
    assert sorted(map(tuple, lake.table(people).collect())) == ROWS
    assert lake.table(people).where("ssn = 'ssn-00007'").select("id").collect() == [(7,)]
    with pytest.warns(MaskedDataWarning, match=r"email \(key pii\), ssn \(key pii\)"):
        masked = {row.id: row for row in blind.table(people).collect()}
    for i, _, email in ROWS:
        assert masked[i].ssn is None
        assert masked[i].email == spark.sql(f"SELECT upper(sha2('{email}', 256))").collect()[0][0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert blind.table(people).select("id").count() == 50


def test_masked_columns_are_marked(lake: Lake, blind: Lake, people: str) -> None:
    marks = {field.name: field.metadata for field in blind.table(people).schema}
    assert marks["ssn"] == {"lockgate.masked": "pii"}
    assert marks["id"] == {}
    shown = {field.name: set(field.metadata) for field in lake.table(people).schema}
    assert shown == {"id": set(), "ssn": {"lockgate.encrypted"}, "email": {"lockgate.encrypted"}}


def test_nothing_readable_at_rest(lake: Lake, people: str) -> None:
    stored = stored_bytes(Path(lake.catalog.load_table(people).location))
    for _, ssn, email in ROWS:
        assert ssn.encode() not in stored
        assert email.encode() not in stored
    assert b"_SEQUENCE_NUMBER" in stored or b"ssn" in stored


def test_writing_without_the_key_is_refused(lake: Lake, blind: Lake, people: str) -> None:
    location = Path(lake.catalog.load_table(people).location)
    before = sorted(location.rglob("*"))
    statements = [
        f"INSERT INTO blind.{people} VALUES (99, 'x', 'y')",
        f"INSERT OVERWRITE blind.{people} SELECT * FROM blind.{people}",
    ]
    if lake.catalog.load_table(people).schema.primary_keys:
        statements += [
            f"UPDATE blind.{people} SET email = ssn WHERE id = 3",
            f"DELETE FROM blind.{people} WHERE ssn IS NULL",
        ]
    for statement in statements:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MaskedDataWarning)
            with pytest.raises(AnalysisException, match="key 'pii'"):
                blind.sql(statement)
    assert sorted(location.rglob("*")) == before
    assert sorted(map(tuple, lake.table(people).collect())) == ROWS


def test_changing_rows_with_the_key(lake: Lake, people: str, table: Named) -> None:
    if not lake.catalog.load_table(people).schema.primary_keys:
        pytest.skip("a table without a key")
    lake.sql(f"DELETE FROM lake.{people} WHERE ssn < 'ssn-00010'")
    lake.sql(f"UPDATE lake.{people} SET email = 'none' WHERE id = 20")
    found = sorted(map(tuple, lake.table(people).collect()))
    assert found == [(i, ssn, "none" if i == 20 else email) for i, ssn, email in ROWS if ssn >= "ssn-00010"]


def test_a_key_under_another_name(lake: Lake, lake_folder: Path, people: str) -> None:
    """Two catalogs of one JVM with keys of their own do not disturb each other."""
    wrong = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    other = lockgate.connect(
        str(lake_folder / "warehouse"), spark=lake.spark, catalog=f"wrong_{uuid.uuid4().hex}", keys=wrong
    )
    conf = lake.spark.conf.get(f"spark.sql.catalog.{other.name}.keys")
    assert conf is not None
    assert conf.startswith("session:keys-")
    assert lake.table(people).where("ssn IS NOT NULL").count() == 50
    with pytest.raises(Exception, match=r"(?i)key"):
        other.table(people).collect()
    assert lake.table(people).where("ssn IS NOT NULL").count() == 50


def test_a_strict_scope_refuses_a_missing_key() -> None:
    from lockgate.framework.spark.bridge.dispatcher import Dispatcher
    from lockgate.framework.spark.context.open_catalogs import strict

    made = Dispatcher()
    scope = made.scopes.register(MemoryKeyProvider({"pii@0": bytes(16)}))
    question = {
        "scope": scope,
        "name": "gone",
        "version": 0,
        "algorithm": "AES_CTR_128",
        "encrypted": base64.b64encode(bytes(16)).decode(),
    }
    assert made.answer("keys.unwrap", question) == {"plain": None}
    with pytest.raises(KeyMissingError, match="masks"):
        made.answer("keys.unwrap", {**question, "scope": strict(scope)})
    # Columns under a key that is held are shown as open: masks of another version would pass for values.
    with pytest.raises(KeyMissingError, match="pii@7"):
        made.answer("keys.unwrap", {**question, "name": "pii", "version": 7})
    assert made.answer("keys.names", {"scope": scope}) == ["pii"]


# --- no key bytes anywhere -----------------------------------------------------------------------


@pytest.fixture
def local_keys(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The plain local keys that executors are given while the test runs."""
    from lockgate.framework.spark.bridge import dispatcher

    seen: list[bytes] = []

    def spy(operation: Callable[..., Any]) -> Callable[..., Any]:
        def answer(context: Any, request: dict[str, Any]) -> Any:
            reply = operation(context, request)
            if "plain" in reply:
                seen.append(base64.b64decode(reply["plain"]))
            return reply

        return answer

    for name in ("keys.create", "keys.unwrap"):
        monkeypatch.setitem(dispatcher._OWN, name, spy(key_operations.OPERATIONS[name]))
    return seen


def master_keys(key_file: Path) -> list[bytes]:
    """Every string of the key file that decodes to a key."""
    found: list[bytes] = []

    def visit(node: Any) -> None:
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            visit(child)
        if isinstance(node, str):
            for decode in (bytes.fromhex, base64.b64decode):
                try:
                    decoded = decode(node)
                except ValueError:
                    continue
                if len(decoded) in (16, 32):
                    found.append(decoded)

    visit(json.loads(key_file.read_text()))
    assert found
    return found


def spellings(key: bytes) -> list[bytes]:
    encoded = base64.b64encode(key)
    as_list = ", ".join(str(byte) for byte in key[:8])
    signed = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in key[:8])
    forms = [key, key.hex().encode(), key.hex().upper().encode(), encoded.rstrip(b"=")]
    return [*forms, as_list.encode(), signed.encode(), as_list.replace(" ", "").encode()]


def assert_no_key(text: bytes, keys: list[bytes], where: str) -> None:
    for key in keys:
        for spelling in spellings(key):
            assert spelling not in text, where


def test_no_key_in_confs_plans_or_event_log(
    lake: Lake, people: str, key_file: Path, event_log: Callable[[], bytes], local_keys: list[bytes]
) -> None:
    spark = lake.spark
    spark.createDataFrame([(77, "s", "e")], "id INT, ssn STRING, email STRING").writeTo(
        f"lake.{people}"
    ).append()
    frame = spark.sql(f"SELECT * FROM lake.{people} WHERE ssn IS NOT NULL")
    assert frame.count() == 51
    assert local_keys
    keys = [*master_keys(key_file), *local_keys]
    confs = json.dumps([*spark.sparkContext.getConf().getAll(), *map(tuple, spark.sql("SET -v").collect())])
    assert str(key_file) in confs
    assert_no_key(confs.encode(), keys, "confs")
    plans = frame._jdf.queryExecution().toString() + frame._jdf.queryExecution().explainString(
        spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")  # type: ignore[union-attr]  # the session is no remote one
    )
    assert "people" in plans
    assert_no_key(plans.encode(), keys, "plans")
    assert_no_key(repr(lake).encode(), keys, "repr")
    logged = event_log()
    assert str(key_file).encode() in logged
    assert b"people" in logged
    assert_no_key(logged, keys, "event log")
    stored = stored_bytes(Path(lake.catalog.load_table(people).location))
    assert_no_key(stored, keys, "the table's files")


CLUSTER_JOB = """
import json, os, sys, lockgate
from lockgate.framework.keys import create_key_file
from lockgate.framework.spark.bridge import dispatcher
from lockgate.framework.spark.operations import key_operations
folder = sys.argv[1]
create_key_file(folder + "/keys.json", ["pii"])
seen = []
def spy(operation):
    def answer(context, request):
        reply = operation(context, request)
        seen.append(reply.get("plain"))
        return reply
    return answer
for name in ("keys.create", "keys.unwrap"):
    dispatcher._OWN[name] = spy(key_operations.OPERATIONS[name])
lake = lockgate.connect(folder + "/warehouse", keys="file:" + folder + "/keys.json",
    master="local-cluster[2,1,1024]", conf={
        "spark.ui.enabled": "false", "spark.log.level": "INFO", "spark.sql.shuffle.partitions": "2",
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "spark.executor.memory": "1g", "spark.driver.memory": "1g", "spark.authenticate": "true",
        "spark.authenticate.secret": "cluster-secret", "spark.network.crypto.enabled": "true"})
lake.sql("CREATE DATABASE lake.db")
lake.sql("CREATE TABLE lake.db.t (id BIGINT, ssn STRING) TBLPROPERTIES ("
         "'primary-key' = 'id', 'bucket' = '2', 'orc.encrypt' = 'pii:ssn', 'orc.mask' = 'nullify:ssn')")
lake.spark.range(0, 100, 1, 4).selectExpr("id", "concat('ssn-', id) AS ssn").writeTo("lake.db.t").append()
lake.sql("INSERT INTO lake.db.t VALUES (3, 'changed')")
lake.sql("DELETE FROM lake.db.t WHERE ssn = 'ssn-5'")
rows = sorted((row.id, row.ssn) for row in lake.table("db.t").collect())
right = sorted((i, "changed" if i == 3 else f"ssn-{i}") for i in range(100) if i != 5)
blind = lockgate.connect(folder + "/warehouse", spark=lake.spark, catalog="blind")
masked = blind.table("db.t").where("ssn IS NULL").count()
import os, pyarrow
from lockgate.framework.orc import write_table
for part in range(2):
    os.makedirs(folder + f"/files/part={part}")
    table = pyarrow.table({"id": range(50), "ssn": [f"ssn-{part}-{i}" for i in range(50)]})
    write_table(table, folder + f"/files/part={part}/f.orc", encrypt="pii:ssn", keys=lake.catalog.keys)
files = lake.read_orc(folder + "/files").where("ssn > 'ssn-1-40'").count()
print("RESULT " + json.dumps([rows == right, masked, files]))
application = lake.spark.sparkContext.applicationId
with open(folder + "/seen.json", "w") as file:
    json.dump([application, *(key for key in seen if key)], file)
lake.spark.stop()
"""


@pytest.mark.cluster
def test_on_a_cluster(tmp_path: Path) -> None:
    """Executors in processes of their own get local keys from the driver, and log none."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CLUSTER_JOB), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=500, cwd=tmp_path)
    printed = done.stdout + done.stderr
    assert b"RESULT [true, 99, 14]" in printed, printed.decode(errors="replace")[-5000:]
    application, *local = json.loads((tmp_path / "seen.json").read_text())
    assert local
    keys = [*master_keys(tmp_path / "keys.json"), *map(base64.b64decode, local)]
    assert_no_key(printed, keys, "the driver's log")
    # A local cluster keeps what its executors print below Spark's home.
    work = Path(pyspark.__file__).parent / "work" / application
    try:
        logs = list(work.glob("*/std*"))
        assert logs
        for path in logs:
            assert_no_key(path.read_bytes(), keys, str(path))
    finally:
        shutil.rmtree(work)
