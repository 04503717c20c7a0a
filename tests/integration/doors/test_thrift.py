"""Spark's Thrift server and two users of Hive's JDBC client."""

from __future__ import annotations

import getpass
import re
import subprocess
from collections.abc import Callable, Mapping

import pytest
from doors import SPARK_HOME, Server, environment

pytestmark = pytest.mark.cluster

CLASS = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@pytest.fixture(scope="module")
def server(start: Callable[[str, Mapping[str, str]], Server]) -> Server:
    return start(
        CLASS,
        {
            "spark.hadoop.hive.server2.thrift.port": "{port}",
            "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
            "spark.hadoop.hive.server2.enable.doAs": "false",
        },
    )


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
