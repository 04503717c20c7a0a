"""A Spark Connect server and two users of Spark's own remote client, each in sessions of their own."""

from __future__ import annotations

import getpass
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from doors import Server, client, wait_for

from lockgate.framework.keys import create_key_file

pytestmark = pytest.mark.cluster

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
SESSIONS = """
    import sys
    from pyspark.sql import SparkSession

    def session(user):
        return SparkSession.builder.remote(f"sc://127.0.0.1:{sys.argv[1]}/;user_id={user}").create()

    alice, bob = session("alice"), session("bob")
"""


CONFS = {"spark.connect.grpc.binding.port": "{port}", "spark.connect.grpc.binding.address": "127.0.0.1"}


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(CLASS, CONFS)


@pytest.fixture
def free_server(start: Callable[..., Server]) -> Server:
    """A server in which nobody decides about access, so that sessions may mount catalogs."""
    return start(CLASS, CONFS, free=True)


def test_two_users(server: Server) -> None:
    printed = client(
        SESSIONS
        + """
    from concurrent.futures import ThreadPoolExecutor

    alice.sql("CREATE NAMESPACE lake.db")
    for name in ("t", "salaries"):
        alice.sql(f"CREATE TABLE lake.db.{name} (id BIGINT NOT NULL, name STRING)"
                  " TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
        alice.sql(f"INSERT INTO lake.db.{name} VALUES (1, 'a'), (2, 'b')")
    bob.createDataFrame([(2, "x")], "id bigint, name string").writeTo("lake.db.t").append()

    lookup = ("SELECT d.* FROM (SELECT 1L AS k) AS o JOIN lake.db.salaries FOR SYSTEM_TIME AS OF PROCTIME()"
              " WITH ('lookup.strategy'='lookup') AS d ON o.k = d.id")

    def tried(frame):
        try:
            return frame().collect()
        except Exception as error:
            return str(error).splitlines()[0]

    def asked(user):
        rows = user.table("lake.db.t").orderBy("id").collect()
        print("looked up", tried(lambda: user.sql(lookup)))
        return rows, tried(lambda: user.table("lake.db.salaries"))

    with ThreadPoolExecutor(2) as pool:
        for rows, salaries in pool.map(asked, [alice, bob] * 3):
            print([tuple(row) for row in rows], salaries)
    print("compacted", alice.sql("CALL lake.sys.compact('db.t')").collect()[0].rows_after)
    """,
        server.port,
    ).splitlines()
    looked_up = [line for line in printed if line.startswith("looked up")]
    assert sorted("bob may not read salaries" in line for line in looked_up) == [False] * 3 + [True] * 3
    assert sum("Row(id=1, name='a')" in line for line in looked_up) == 3
    printed = [line for line in printed if line not in looked_up]
    assert len(printed) == 7
    for by_alice, by_bob in zip(printed[:6:2], printed[1:6:2], strict=True):
        assert by_alice.startswith("[(1, 'a'), (2, 'x')] [Row(id=1, name='a')")
        assert by_bob.startswith("[(1, 'a'), (2, 'x')] ")
        assert "bob may not read salaries" in by_bob
    assert printed[6] == "compacted 2"
    users = {line.split()[0] for line in server.asked.read_text().splitlines()}
    # The process that fills a cache reads as the account of the server.
    assert users - {getpass.getuser()} == {"alice", "bob"}


def test_a_python_that_dies_is_started_again(server: Server) -> None:
    dead = server.child()
    dead.kill()
    dead.wait(20)
    printed = client(
        SESSIONS
        + """
    print(alice.table("lake.db.t").count())
    """,
        server.port,
    )
    assert printed == "2\n"
    assert server.child().pid != dead.pid


def test_a_write_in_flight_fails_plainly(server: Server) -> None:
    dead = server.child()
    before = server.tasks()

    def kill_while_a_task_runs() -> None:
        wait_for(lambda: server.tasks() > before, "task")
        dead.kill()

    killer = threading.Thread(target=kill_while_a_task_runs)
    killer.start()
    printed = client(
        SESSIONS
        + """
    slow = "coalesce(java_method('java.lang.Thread', 'sleep', 9000L), 'late')"
    try:
        alice.sql(f"INSERT INTO lake.db.t SELECT id + 100, {slow} FROM range(0, 1, 1, 1)")
        print("written")
    except Exception as error:
        print("failed", str(error).splitlines()[0])
    print(alice.table("lake.db.t").count())
    alice.sql("INSERT INTO lake.db.t VALUES (3, 'c')")
    print(alice.table("lake.db.t").count())
    """,
        server.port,
    ).splitlines()
    killer.join()
    assert printed[0].startswith("failed"), printed
    assert printed[1:] == ["2", "3"]


def test_settings_that_a_client_changes_end_its_session(server: Server) -> None:
    printed = client(
        SESSIONS
        + """
    def tried(key, value):
        alice = session("alice")
        alice.conf.set(key, value)
        try:
            return alice.sql("SHOW CATALOGS").count()
        except Exception as error:
            return str(error).splitlines()[0]

    print(tried("spark.sql.shuffle.partitions", "2"))
    print(tried("spark.sql.catalog.mine", "io.lockgate.spark.LockgateCatalog"))
    print(tried("spark.sql.optimizer.excludedRules", "x"))
    print(tried("spark.lockgate.user", "root"))
    """,
        server.port,
    ).splitlines()
    assert printed[0].isdigit()
    assert "'alice' has changed spark.sql.catalog.mine" in printed[1]
    assert "has changed spark.sql.optimizer.excludedRules" in printed[2]
    assert "spark.lockgate.user" in printed[3]


def test_keys_and_catalogs_of_one_session_open_nothing_in_another(
    free_server: Server, tmp_path: Path
) -> None:
    """Neither by a catalog's name, nor by a handle, nor by Spark's own ORC source."""
    create_key_file(str(tmp_path / "keys.json"), ["pii"])
    printed = client(
        SESSIONS
        + f"""
    import re
    from pathlib import Path

    folder = Path({str(tmp_path)!r})

    def mount(user, name, keys=None):
        # By Spark's own call: where somebody decides about access, the statement SET is refused.
        user.conf.set(f"spark.sql.catalog.{{name}}", "io.lockgate.spark.LockgateCatalog")
        user.conf.set(f"spark.sql.catalog.{{name}}.warehouse", f"{{folder}}/vault")
        if keys:
            user.conf.set(f"spark.sql.catalog.{{name}}.keys", keys)

    def tried(what, work):
        try:
            print(what, [tuple(row) for row in work().collect()])
        except Exception as error:
            print(what, "refused:", str(error).splitlines()[0])
    """
        + """
    people = "SELECT id, ssn FROM {}.db.people"
    mount(alice, "mine", f"file:{folder}/keys.json")
    alice.sql("CREATE NAMESPACE mine.db").collect()
    alice.sql("CREATE TABLE mine.db.people (id INT, ssn STRING)"
              " TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')").collect()
    alice.sql("INSERT INTO mine.db.people VALUES (1, 'top secret')").collect()
    tried("alice:", lambda: alice.sql(people.format("mine")))
    tried("by name:", lambda: bob.sql(people.format("mine")))
    mount(bob, "mine")
    tried("without keys:", lambda: bob.sql(people.format("mine")))
    shown = [alice.sql(f"{how} {people.format('mine')}").collect()
             for how in ("EXPLAIN EXTENDED", "EXPLAIN FORMATTED", "EXPLAIN CODEGEN")]
    shown += [alice.sql(text).collect() for text in ("SET", "DESCRIBE EXTENDED mine.db.people",
                                                     "SHOW CREATE TABLE mine.db.people")]
    print("handles:", re.findall("keys-[0-9a-f]{32}", str(shown)))
    for handle in ("keys-" + 32 * "0", "", "!strict"):
        mount(bob, "thief", f"session:{handle}")
        tried(f"session:{handle}:", lambda: bob.sql(people.format("thief")))
        raw = bob.read.option("orc.key.provider", f"lockgate:{handle}")
        tried(f"lockgate:{handle}:", lambda: raw.orc(f"{folder}/vault/db.db/people/bucket-0"))
    """,
        free_server.port,
    ).splitlines()
    found = {line.partition(": ")[0]: line.partition(": ")[2] for line in printed}
    assert found["alice"] == "[(1, 'top secret')]"
    assert found["by name"].startswith("refused: ")
    assert found["without keys"] == "[(1, None)]"
    assert found["handles"] == "[]", "plans and confs show none"
    assert len(printed) == 10
    assert [line for line in printed if "top secret" in line] == [printed[0]]


def test_python_ends_with_a_server_that_is_killed(server: Server) -> None:
    """The last test of this file: nothing of the server is left."""
    child = server.child()
    os.kill(server.process.pid, signal.SIGKILL)
    _gone, alive = psutil.wait_procs([child], timeout=30)
    assert not alive
