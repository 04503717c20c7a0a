"""Spark's Thrift server and two users of Hive's JDBC client."""

from __future__ import annotations

import getpass
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from doors import SPARK_HOME, Server, environment

from lockgate.framework.keys import create_key_file

pytestmark = pytest.mark.cluster

CLASS = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


CONFS = {
    "spark.hadoop.hive.server2.thrift.port": "{port}",
    "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
    "spark.hadoop.hive.server2.enable.doAs": "false",
}


@pytest.fixture(scope="module")
def server(start: Callable[[str, Mapping[str, str]], Server]) -> Server:
    return start(CLASS, CONFS)


def beeline(server: Server, user: str, *statements: str) -> subprocess.CompletedProcess[str]:
    address = f"jdbc:hive2://127.0.0.1:{server.port}/default"
    options = ["--outputformat=tsv2", "--silent=true", "--showHeader=false", "-u", address, "-n", user]
    scripts = [part for each in statements for part in ("-e", each)]
    return subprocess.run(
        [str(SPARK_HOME / "bin" / "beeline"), *options, *scripts],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def test_two_users(server: Server) -> None:
    made = beeline(
        server,
        "alice",
        "CREATE NAMESPACE lake.db",
        "CREATE TABLE lake.db.salaries (id BIGINT NOT NULL, name STRING)"
        " TBLPROPERTIES ('primary-key'='id', 'bucket'='1')",
        "INSERT INTO lake.db.salaries VALUES (1, 'a'), (2, 'b')",
        "SELECT id, name FROM lake.db.salaries ORDER BY id",
    )
    assert made.returncode == 0, made.stderr[-3000:]
    # The client's prompt may stand before the first row.
    assert re.findall(r"(\d\t[ab])$", made.stdout, re.MULTILINE) == ["1\ta", "2\tb"]
    lookup = (
        "SELECT o.k, d.name FROM (SELECT 2L AS k) AS o JOIN lake.db.salaries /*+ OPTIONS("
        "'lookup.strategy'='lookup') */ FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.k = d.id"
    )
    assert re.findall(r"(\d\t[ab])$", beeline(server, "alice", lookup).stdout, re.MULTILINE) == ["2\tb"]
    for statement in ("SELECT * FROM lake.db.salaries", lookup):
        denied = beeline(server, "bob", statement)
        assert denied.returncode != 0
        assert "bob may not read salaries" in denied.stdout + denied.stderr
    users = {line.split()[0] for line in server.asked.read_text().splitlines()}
    # The process that fills a cache reads as the account of the server.
    assert users - {getpass.getuser()} == {"alice", "bob"}


def test_keys_and_catalogs_of_one_connection_open_nothing_in_another(
    start: Callable[..., Server], tmp_path: Path
) -> None:
    """Then the child dies, and the next statement starts another."""
    create_key_file(str(tmp_path / "keys.json"), ["pii"])
    server = start(CLASS, CONFS, free=True)
    mount = (
        "SET spark.sql.catalog.{name}=io.lockgate.spark.LockgateCatalog",
        f"SET spark.sql.catalog.{{name}}.warehouse={tmp_path}/vault",
    )
    keys = f"SET spark.sql.catalog.mine.keys=file:{tmp_path}/keys.json"
    mine = [each.format(name="mine") for each in mount] + [keys]
    people = "SELECT id, ssn FROM mine.db.people"
    made = beeline(
        server,
        "alice",
        *mine,
        "CREATE NAMESPACE mine.db",
        "CREATE TABLE mine.db.people (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')",
        "INSERT INTO mine.db.people VALUES (1, 'top secret')",
        people,
    )
    assert "top secret" in made.stdout, made.stdout + made.stderr[-3000:]
    by_name = beeline(server, "bob", people)
    without_keys = beeline(server, "bob", *[each.format(name="mine") for each in mount], people)
    guessed = beeline(
        server,
        "bob",
        *[each.format(name="thief") for each in mount],
        "SET spark.sql.catalog.thief.keys=session:keys-" + "0" * 32,
        people.replace("mine", "thief"),
    )
    assert by_name.returncode != 0
    assert guessed.returncode != 0
    assert re.findall(r"(1\tNULL)$", without_keys.stdout, re.MULTILINE) == ["1\tNULL"]
    for found in (by_name, without_keys, guessed):
        assert "top secret" not in found.stdout + found.stderr
    dead = server.child()
    dead.kill()
    dead.wait(20)
    again = beeline(server, "alice", *mine, people)
    assert "top secret" in again.stdout, again.stdout + again.stderr[-3000:]
