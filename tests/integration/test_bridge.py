"""The bridge between the JVM and Python, with a real JVM: who asks, many at once, interrupts, ends."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

import lockgate
from lockgate.framework.spark.bridge import dispatcher as dispatcher_module
from lockgate.framework.spark.bridge import gateway
from lockgate.framework.spark.bridge.bridge_server import BridgeServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

    Named = Callable[[str], str]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def operation(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that adds an operation of the bridge for one test."""
    return lambda name, handler: monkeypatch.setitem(dispatcher_module._OWN, name, handler)


def jvm(spark: SparkSession) -> Any:
    return spark._jvm


def ask(spark: SparkSession, name: str, **request: object) -> Any:
    """Ask as the connector does, from the JVM's thread of this Python thread."""
    bridge = jvm(spark).io.lockgate.spark.bridge.Bridge
    return json.loads(str(bridge.ask(name, bridge.JSON.readTree(json.dumps(request))).toString()))


def listened_ports() -> set[int]:
    """The TCP ports that this process listens on."""
    inodes = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
        except FileNotFoundError:  # the one that lists the folder
            continue
    ports = set()
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


# --- nothing is listened on ----------------------------------------------------------------------

QUIET = """
    import json, sys, lockgate
    sys.path.insert(0, sys.argv[2])
    from test_bridge import listened_ports
    with_nothing = listened_ports()
    lake = lockgate.connect(sys.argv[1], master="local[1]", conf={"spark.ui.enabled": "false",
        "spark.log.level": "ERROR"})
    lake.sql("CREATE DATABASE lake.db")
    lake.sql("CREATE TABLE lake.db.t (id INT)")
    lake.sql("INSERT INTO lake.db.t VALUES (1)")
    lake.sql("CALL lake.sys.compact(table => 'db.t')")
    from pyspark import SparkContext
    server = SparkContext._active_spark_context._accumulatorServer
    address = server.server_address
    own = {address[1]} if isinstance(address, tuple) else set()
    gateway = lake.spark.sparkContext._gateway
    ports = sorted(listened_ports() - own - with_nothing)
    # The session ends and another one begins; the same Python answers it.
    lake.spark.stop()
    lake = lockgate.connect(sys.argv[1], master="local[1]", conf={"spark.ui.enabled": "false"})
    lockgate.attach(lake.spark)
    lockgate.attach(lake.spark)
    count = lake.table("db.t").count()
    from lockgate.framework.spark.bridge import gateway as ours
    secret, folder = ours._server.secret, str(ours._server.folder)
    confs = str(lake.spark.sparkContext.getConf().getAll()) + str(lake.spark.conf.getAll)
    import os
    print(json.dumps([ports, getattr(gateway, "_callback_server", None) is None, count, secret in confs,
        secret in str(dict(os.environ)), folder]))
    lake.spark.stop()
"""


@pytest.mark.cluster
def test_a_session_listens_on_no_port_and_starts_again(tmp_path: Path) -> None:
    here = str(Path(__file__).parent)
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(QUIET), str(tmp_path / "w"), here]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    ports, no_callbacks, count, in_confs, in_environment, folder = json.loads(done.stdout.splitlines()[-1])
    assert ports == []
    assert no_callbacks
    assert count == 1
    assert not in_confs
    assert not in_environment
    assert not Path(folder).exists(), "the folder ends with the process"


def test_no_code_of_ours_has_py4j_call_back() -> None:
    for folder in ("framework", "lookup", "procedures", "src/lockgate"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            assert "ensure_callback_server_started" not in text, path
            assert "implements = " not in text, path


def test_the_secret_is_in_no_log(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="py4j"):
        lockgate.attach(spark)
        spark.sql("SELECT 1").collect()
    assert "Command to send" in caplog.text
    server = gateway._server
    assert isinstance(server, BridgeServer)
    assert server.secret not in caplog.text
    assert server.secret not in repr(server)
    assert server.secret not in str(jvm(spark).io.lockgate.spark.bridge.Bridge.python())


# --- who asks ------------------------------------------------------------------------------------


def tell(context: Any, request: dict[str, Any]) -> dict[str, Any]:
    spark = context.spark
    active = jvm(spark).org.apache.spark.sql.classic.SparkSession.getActiveSession()
    return {
        "session": context.session,
        "mark": spark.conf.get("test.mark", None),
        "active": active.get().conf().get("test.mark", "") if active.isDefined() else None,
        "group": spark.sparkContext.getLocalProperty("spark.jobGroup.id"),
        "thread": threading.current_thread().name,
    }


def test_python_acts_for_the_session_and_the_job_that_ask(
    spark: SparkSession, operation: Callable[..., None]
) -> None:
    operation("test.tell", tell)
    other = spark.newSession()
    spark.conf.set("test.mark", "one")
    other.conf.set("test.mark", "two")
    active = jvm(spark).org.apache.spark.sql.classic.SparkSession
    before = active.getActiveSession()
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "group-1")
    try:
        active.setActiveSession(spark._jsparkSession)
        first = ask(spark, "test.tell")
        active.setActiveSession(other._jsparkSession)
        second = ask(spark, "test.tell")
        again = ask(spark, "test.tell")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        if before.isDefined():
            active.setActiveSession(before.get())
        spark.conf.unset("test.mark")
    assert (first["mark"], first["active"], first["group"]) == ("one", "one", "group-1")
    assert (second["mark"], second["active"], second["group"]) == ("two", "two", "group-1")
    assert first["session"] != second["session"] == again["session"]
    assert len(first["session"]) == 32
    assert first["thread"].startswith("lockgate-bridge-")


def test_nothing_of_one_question_is_left_for_the_next(
    spark: SparkSession, operation: Callable[..., None]
) -> None:
    """The thread that answered for a session with a job group is an ordinary one afterwards."""
    operation("test.tell", tell)
    left: list[Any] = []

    def look(context: Any, request: dict[str, Any]) -> bool:
        """Look at the thread's own state, without `context.spark`."""
        active = jvm(spark).org.apache.spark.sql.classic.SparkSession.getActiveSession()
        left.append((active.isDefined(), spark.sparkContext.getLocalProperty("spark.jobGroup.id")))
        return True

    operation("test.look", look)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "group-2")
    try:
        for _ in range(3):
            ask(spark, "test.tell")
            ask(spark, "test.look")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert left == [(False, None)] * 3


# --- many at once --------------------------------------------------------------------------------


def connections(spark: SparkSession) -> int:
    return int(jvm(spark).io.lockgate.spark.bridge.Bridge.python().connections())


def test_questions_within_questions_do_not_wait_for_each_other(
    spark: SparkSession, operation: Callable[..., None]
) -> None:
    def deep(context: Any, request: dict[str, Any]) -> int:
        depth = int(request["depth"])
        return depth if depth == 0 else 1 + int(ask(context.spark, "test.deep", depth=depth - 1))

    operation("test.deep", deep)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: ask(spark, "test.deep", depth=12), range(8))) == [12] * 8
    assert connections(spark) <= 8
    server = gateway._server
    assert server is not None
    deadline = time.monotonic() + 30
    while server.connections > 8 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.connections <= 8


def test_errors_keep_their_kind(spark: SparkSession, operation: Callable[..., None]) -> None:
    def fail(context: Any, request: dict[str, Any]) -> None:
        raise ZeroDivisionError("seven")

    operation("test.fail", fail)
    with pytest.raises(AnalysisException, match=r"ZeroDivisionError: seven"):
        ask(spark, "test.fail")
    with pytest.raises(AnalysisException, match=r"no plugin answers 'test\.nothing'"):
        ask(spark, "test.nothing")


# --- interrupts and ends -------------------------------------------------------------------------


def test_an_interrupt_is_kept_while_something_is_changed(
    spark: SparkSession, operation: Callable[..., None]
) -> None:
    done: list[bool] = []

    def slow(context: Any, request: dict[str, Any]) -> bool:
        time.sleep(0.5)
        done.append(True)
        return True

    operation("test.slow", slow)
    thread = jvm(spark).java.lang.Thread
    before = connections(spark)
    thread.currentThread().interrupt()
    assert ask(spark, "test.slow") is True
    assert done == [True]
    assert thread.interrupted(), "anyone who interrupted the thread finds it interrupted"
    assert connections(spark) == before


def test_an_interrupt_ends_waiting_for_what_changes_nothing(
    spark: SparkSession, operation: Callable[..., None]
) -> None:
    release = threading.Event()

    def slow(context: Any, request: dict[str, Any]) -> bool:
        release.wait(60)
        return True

    operation("system.rows", slow)
    thread = jvm(spark).java.lang.Thread
    thread.currentThread().interrupt()
    try:
        with pytest.raises(Py4JJavaError, match="ClosedByInterruptException"):
            ask(spark, "system.rows")
    finally:
        release.set()
        assert thread.interrupted()
    operation("system.rows", lambda context, request: {"rows": [[7]], "pages": []})
    assert ask(spark, "system.rows") == {"rows": [[7]], "pages": []}


def test_a_stream_that_waits_for_python_stops_cleanly(
    lake: Lake, table: Named, operation: Callable[..., None], tmp_path: Path
) -> None:
    spark = lake.spark
    spark.sql(f"CREATE TABLE {table('source')} (id INT)")
    spark.sql(f"INSERT INTO {table('source')} VALUES (1), (2)")
    waiting, release = threading.Event(), threading.Event()
    plan = dispatcher_module._OWN["scan.plan"]

    def slow(context: Any, request: dict[str, Any]) -> object:
        waiting.set()
        release.wait(60)
        return plan(context, request)

    operation("scan.plan", slow)
    static = spark.table(table("source")).alias("s")
    joined = spark.readStream.format("rate").load().crossJoin(static)
    checkpoint = str(tmp_path / "checkpoint")
    running = joined.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        assert waiting.wait(60)
        started = time.monotonic()
        running.stop()
        assert time.monotonic() - started < 20
    finally:
        release.set()
    assert running.exception() is None


def test_a_stream_that_is_stopped_while_it_commits_has_committed(
    lake: Lake, table: Named, operation: Callable[..., None], tmp_path: Path
) -> None:
    """Spark would remove the files of a commit that it does not wait for."""
    spark = lake.spark
    spark.sql(f"CREATE TABLE {table('target')} (id BIGINT)")
    spark.range(100).write.json(str(tmp_path / "source"))
    commit = dispatcher_module._OWN["write.commit"]
    committing = threading.Event()

    def slow(context: Any, request: dict[str, Any]) -> object:
        committing.set()
        time.sleep(1.5)
        return commit(context, request)

    def start() -> Any:
        writer = spark.readStream.schema("id BIGINT").json(str(tmp_path / "source")).writeStream
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).toTable(table("target"))

    operation("write.commit", slow)
    first = start()
    assert committing.wait(90)
    first.stop()
    operation("write.commit", commit)
    assert spark.table(table("target")).count() == 100
    second = start()
    second.processAllAvailable()
    second.stop()
    assert first.exception() is None
    assert sorted(row[0] for row in spark.table(table("target")).collect()) == list(range(100))
