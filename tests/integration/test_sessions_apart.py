"""Two sessions of one JVM: neither takes the other's keys or catalogs, by SQL or otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import lockgate
from lockgate.errors import MaskedDataWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.spark.session.session import catalog_confs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

MASTER = {"pii@0": b"0123456789abcdef"}
KEYS = MemoryKeyProvider(MASTER)
CATALOG = "io.lockgate.spark.LockgateCatalog"


@pytest.fixture(scope="module")
def mine(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake whose keys were given, as an object, to the usual session."""
    folder = tmp_path_factory.mktemp("mine")
    mine = lockgate.connect(folder, spark=lake.spark, catalog=f"mine_{uuid.uuid4().hex[:8]}", keys=KEYS)
    mine.sql(f"CREATE DATABASE {mine.name}.db")
    mine.sql(
        f"CREATE TABLE {mine.name}.db.t (id INT, ssn STRING) "
        "TBLPROPERTIES ('orc.encrypt' = 'pii:ssn', 'orc.mask' = 'nullify:ssn')"
    )
    mine.sql(f"INSERT INTO {mine.name}.db.t VALUES (1, 'secret')")
    return mine


def conf(lake: Lake, name: str) -> str:
    return str(lake.spark.conf.get(f"spark.sql.catalog.{lake.name}.{name}"))


def set_catalog(session: SparkSession, name: str, **options: str) -> None:
    session.sql(f"SET spark.sql.catalog.{name}={CATALOG}")
    for key, value in options.items():
        session.sql(f"SET spark.sql.catalog.{name}.{key}={value}")


def test_another_session_cannot_take_the_keys(mine: Lake) -> None:
    stranger = mine.spark.newSession()
    assert conf(mine, "keys").startswith("session:keys-")
    for name in ("stolen", mine.name):
        set_catalog(stranger, name, warehouse=conf(mine, "warehouse"), keys=conf(mine, "keys"))
        with pytest.raises(AnalysisException, match="given to another session"):
            stranger.sql(f"SELECT * FROM {name}.db.t").collect()
        with pytest.raises(AnalysisException, match="given to another session"):
            stranger.sql(f"INSERT INTO {name}.db.t VALUES (2, 'forged')")
    set_catalog(stranger, "guessed", warehouse=conf(mine, "warehouse"), keys="session:keys-1")
    with pytest.raises(AnalysisException, match=r"given to another session"):
        stranger.sql("SELECT * FROM guessed.db.t").collect()
    set_catalog(stranger, "masked", warehouse=conf(mine, "warehouse"))
    with pytest.warns(MaskedDataWarning, match=r"ssn \(key pii\)"):
        assert stranger.sql("SELECT id, ssn FROM masked.db.t").collect() == [(1, None)]
    assert mine.table("db.t").collect() == [(1, "secret")]


def test_keys_given_to_a_session_are_its_own(mine: Lake) -> None:
    other = mine.spark.newSession()
    given = lockgate.connect(conf(mine, "warehouse"), spark=other, catalog="given", keys=KEYS)
    assert given.table("db.t").collect() == [(1, "secret")]
    blind = mine.spark.newSession()
    without = lockgate.connect(conf(mine, "warehouse"), spark=blind, catalog="given")
    with pytest.warns(MaskedDataWarning, match=r"ssn \(key pii\)"):
        assert without.table("db.t").collect() == [(1, None)]
    assert given.table("db.t").collect() == [(1, "secret")]


def test_keys_of_configure_are_for_the_session_that_is_attached(mine: Lake) -> None:
    """Spark gives the confs of a builder to a session that runs already, and keeps them out of its start."""
    other = mine.spark.newSession()
    warehouse = conf(mine, "warehouse")
    for key, value in catalog_confs(warehouse, "late", MemoryKeyProvider(MASTER)).items():
        other.conf.set(key, value)
    lockgate.attach(other)
    assert other.sql("SELECT ssn FROM late.db.t").collect() == [("secret",)]
    stranger = mine.spark.newSession()
    taken = str(other.conf.get("spark.sql.catalog.late.keys"))
    set_catalog(stranger, "late", warehouse=warehouse, keys=taken)
    lockgate.attach(stranger)
    with pytest.raises(AnalysisException, match="given to another session"):
        stranger.sql("SELECT ssn FROM late.db.t").collect()


def test_streams_use_the_keys_of_their_session(mine: Lake, tmp_path: Path) -> None:
    """Spark runs a stream in a clone of the session, which opens the catalog for itself."""
    seen: list[Any] = []

    def look(batch: DataFrame, number: int) -> None:
        seen.extend(batch.sparkSession.sql(f"SELECT id, ssn FROM {mine.name}.db.t").collect())

    stream = mine.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = stream.writeStream.foreachBatch(look).option("checkpointLocation", str(tmp_path / "c"))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    assert seen[:1] == [(1, "secret")]


def test_a_plan_shows_nothing_that_opens_a_catalog(mine: Lake) -> None:
    """The handle that executors ask by is another one than that of the conf, and is not printed."""
    frame = mine.table("db.t").where("ssn > 'a'")
    plan = frame._jdf.queryExecution().toString()
    assert "keys-" not in plan
    handle = conf(mine, "keys").removeprefix("session:")
    assert handle not in plan


FIXED = """
    import json, sys, lockgate
    from pyspark.sql import SparkSession
    folder = sys.argv[1]
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "OFF").config("spark.lockgate.fixed-catalogs", "true")
    builder = builder.config("spark.sql.catalog.other", "io.lockgate.spark.LockgateCatalog")
    builder = builder.config("spark.sql.catalog.other.warehouse", folder + "/other")
    spark = lockgate.configure(builder, warehouse=folder + "/w", catalog="lake").getOrCreate()
    lockgate.attach(spark)
    def attempt(session, *statements):
        try:
            for statement in statements:
                rows = session.sql(statement).collect()
            return [list(row) for row in rows]
        except Exception as error:
            return str(error)
    catalog = "SET spark.sql.catalog."
    found = [
        attempt(spark, "CREATE DATABASE lake.db", "SHOW DATABASES IN lake"),
        attempt(spark.newSession(), "SHOW DATABASES IN lake"),
        attempt(spark.newSession(), f"{catalog}lake.warehouse={folder}/elsewhere", "SHOW DATABASES IN lake"),
        attempt(spark.newSession(), f"{catalog}lake.keys=file:/etc/keys.json", "SHOW DATABASES IN lake"),
        attempt(spark.newSession(), f"{catalog}own=io.lockgate.spark.LockgateCatalog",
            f"{catalog}own.warehouse={folder}/own", "SHOW DATABASES IN own"),
        attempt(spark.newSession(), "SET `spark.lockgate.fixed-catalogs`=false",
            f"{catalog}other.warehouse={folder}/elsewhere", "SHOW DATABASES IN other"),
    ]
    print(json.dumps(found))
    spark.stop()
"""


@pytest.mark.cluster
def test_fixed_catalogs(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FIXED), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    made, shared, *refused = json.loads(done.stdout.splitlines()[-1])
    assert made == shared == [["db"], ["sys"]]
    for answer, word in zip(
        refused, ("lake.warehouse", "lake.keys", "'own'", "other.warehouse"), strict=True
    ):
        assert "spark.lockgate.fixed-catalogs=true" in answer
        assert word in answer


# --- what executors ask --------------------------------------------------------------------------


@pytest.fixture
def executor(mine: Lake) -> Callable[..., dict[str, Any]]:
    """A function that asks the driver what an executor sends, which may be anything."""
    jvm: Any = mine.spark._jvm

    def ask(message: object) -> dict[str, Any]:
        sent = message if isinstance(message, bytes) else json.dumps(message).encode()
        answer = jvm.io.lockgate.spark.enforcement.parts.ExecutorQuestions.answer(sent).toString()
        return dict(json.loads(answer))

    return ask


UNWRAP = {"name": "pii", "version": 0, "algorithm": "AES_CTR_128", "encrypted": "AAAAAAAAAAAAAAAAAAAAAA=="}


def scope_of(lake: Lake) -> str:
    from lockgate.framework.spark.bridge.dispatcher import dispatcher

    return dispatcher().scopes.register(lake.catalog.load_table("db.t").keys)  # type: ignore[arg-type]  # the table has keys


def test_executors_are_answered_about_keys(mine: Lake, executor: Callable[..., dict[str, Any]]) -> None:
    fields = {"scope": scope_of(mine), **UNWRAP}
    assert list(executor({"question": "keys.unwrap", "fields": fields})["ok"]) == ["plain"]
    missing = {"question": "keys.unwrap", "fields": {**fields, "name": "gone"}}
    assert executor(missing) == {"ok": {"plain": None}}
    wanted = {"scope": fields["scope"], "name": "pii", "version": None, "algorithm": None}
    made = executor({"question": "keys.create", "fields": wanted})
    assert made["ok"]["name"] == "pii"
    unknown = {"question": "keys.unwrap", "fields": {**fields, "scope": "keys-" + "0" * 32}}
    assert executor(unknown)["error"]["type"] == "NotFoundError"


def test_a_lying_executor_gets_nothing_else(
    mine: Lake, executor: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("{}")
    scope = scope_of(mine)
    good = {"scope": scope, **UNWRAP}
    located = {"write_id": "0" * 36, "attempt": "0" * 36 + "-0-0", "columns": {"id": [1]}, "kinds": "AA=="}
    messages: list[object] = [
        b"",
        b"\xff" * 10,
        b"[" * 100_000,
        [],
        {"ref": str(victim)},
        {"operation": "keys.unwrap", "request": json.dumps({"ref": str(victim)})},
        {"question": "keys.unwrap", "fields": {"ref": str(victim)}},
        {"question": "keys.unwrap", "fields": json.dumps(good)},
        {"question": "table.drop", "fields": {"catalog": mine.handle, "namespace": ["db"], "name": "t"}},
        {"question": "keys.names", "fields": {"scope": scope}},
        {"question": "catalog.open", "fields": {"catalog": "x", "options": {"warehouse": "/"}}},
        {"question": ["keys.unwrap"], "fields": good},
        {"question": "lookup.event", "fields": {"executor": "1", "name": "n", "event": "ask"}},
        {"question": "lookup.event", "fields": {"executor": "1", "name": "n", "event": {"event": "gone"}}},
        {"question": "write.assign", "fields": {"write_id": "0" * 36, "partition": {}, "hashes": "AAAA"}},
        {"question": "write.assign", "fields": {"write_id": "../x", "partition": {}, "hashes": "AAAA"}},
        {"question": "write.assign", "fields": {"write_id": "0" * 36, "partition": [], "hashes": "AAAA"}},
        {"question": "write.assign", "fields": {"write_id": "0" * 36, "partition": {}, "hashes": {"x": 1}}},
        {"question": "write.assign", "fields": {"write_id": "0" * 36, "hashes": "AAAA"}},
        {"question": "write.locate", "fields": located},
        {"question": "write.locate", "fields": {**located, "attempt": "../x"}},
        {"question": "write.locate", "fields": {**located, "columns": [1]}},
        {"question": "write.locate", "fields": {**located, "kinds": "###"}},
        {"question": "lookup.poll", "fields": {"executor": {"x": 1}}},
        {"question": "lookup.poll", "fields": {"executor": "../1"}},
    ]
    for name, lies in {
        "scope": [
            "keys-1",
            "",
            None,
            7,
            f"session:{scope}",
            scope + "!lax",
            scope + "\n",
            [scope],
            "x" * 5000,
        ],
        "name": ["", None, 7, "a\nb", "n" * 2000, ["pii"]],
        "version": [-1, "0", None, 0.5, 1 << 40, True],
        "algorithm": ["AES", "AES_CTR_128 ", None, 1, "aes_ctr_128"],
        "encrypted": ["", "###", None, 7, "A" * 200_000],
    }.items():
        messages += [{"question": "keys.unwrap", "fields": {**good, name: lie}} for lie in lies]
        messages.append({"question": "keys.unwrap", "fields": {k: v for k, v in good.items() if k != name}})
    for message in messages:
        answer = executor(message)
        assert list(answer) == ["error"], message
        assert set(answer["error"]) == {"type", "message"}
    assert victim.exists()
    assert mine.table("db.t").collect() == [(1, "secret")]
    extra = {"question": "keys.unwrap", "fields": {**good, "ref": str(victim), "session": "x", "asker": 1}}
    assert list(executor(extra)) == ["error"], "nothing goes on that the operation does not declare"
    assert victim.exists()
