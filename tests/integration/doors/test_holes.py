"""Holes tried at a Thrift server and at a Connect server, by two users, on tables of every kind."""

from __future__ import annotations

import getpass
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import governed_holes
import pytest
import ranger_admin
from doors import SPARK_HOME, Server, client, environment
from governed_hole_cases import HOLES
from governed_holes import KINDS, ROWS, TABLES, USERS, Hole, names, preparations, statements, wrong
from java_tests import test_jar
from ranger_world import allow, service

from lockgate.framework.spark.bridge import connector_jars

pytestmark = [pytest.mark.cluster, pytest.mark.long]

CONFS = {
    "thrift": {
        "spark.hadoop.hive.server2.thrift.port": "{port}",
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.enable.doAs": "false",
    },
    "connect": {
        "spark.connect.grpc.binding.port": "{port}",
        "spark.connect.grpc.binding.address": "127.0.0.1",
    },
}
CLASSES = {
    "thrift": "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
    "connect": "org.apache.spark.sql.connect.service.SparkConnectServer",
}
Found = list[list[str]] | str


@dataclass
class Door:
    """A server under policies, whose tables are made, and the folder of one of them."""

    server: Server
    files: str


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Confs of a server that takes its policies from an admin."""
    root = {"users": ["root", getpass.getuser()]}
    everything = [allow(path, "all", **root) for path in ("*", "*.*", "*.*.*", "*.*.*.*")]
    with ranger_admin.running() as admin:
        admin.has["plugins"] = service(*everything, *governed_holes.limits(TABLES), policyVersion=1)
        option = "spark.sql.catalog.lake.ranger.plugin.paimon."
        yield {
            "spark.lockgate.governed": "true",
            f"{option}service.name": "lake",
            f"{option}policy.rest.url": admin.url,
            f"{option}policy.cache.dir": str(tmp_path_factory.mktemp("policies") / "cache"),
        }


@pytest.fixture(scope="module", params=list(CLASSES))
def door(
    request: pytest.FixtureRequest,
    start: Callable[..., Server],
    policies: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Door]:
    folder = tmp_path_factory.mktemp("tables")
    governed_holes.make_folder(folder / "folders" / "holes")
    more = {
        "spark.jars": f"{connector_jars.jar()},{test_jar()}",
        "spark.sql.catalog.folders": "io.lockgate.spark.enforcement.FolderCatalog",
        "spark.sql.catalog.folders.folder": str(folder / "folders"),
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.pyspark.python": sys.executable,
        # Making code for a query takes longer than the query.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    name = request.param
    server = start(CLASSES[name], {**CONFS[name], **policies, **more}, free=True)
    found = Door(server, str(folder / "spark-warehouse" / "holes"))
    made = ASK[name](found, "root", [[each] for each in preparations(TABLES)])
    assert not [each for each in made if isinstance(each, str)], made
    return name, found


def by_thrift(door: Door, user: str, asked: Sequence[Sequence[str]]) -> list[Found]:
    """Send statements through Hive's client; each goes on if the one before it fails."""
    script = Path(door.files).parents[1] / f"{user}.sql"
    marked = [f"SELECT '#{number}'" for number in range(len(asked) + 1)]
    lines = [each for mark, texts in zip(marked, asked, strict=False) for each in (mark, *texts)]
    script.write_text(";\n".join([*lines, marked[-1], ""]))
    address = f"jdbc:hive2://127.0.0.1:{door.server.port}/default"
    options = ["--outputformat=tsv2", "--silent=true", "--showHeader=false", "--force=true"]
    done = subprocess.run(
        [str(SPARK_HOME / "bin" / "beeline"), *options, "-u", address, "-n", user, "-f", str(script)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=500,
    )
    parts = re.split(r"^.*#(\d+)$", done.stdout, flags=re.MULTILINE)
    assert [int(each) for each in parts[1::2]] == list(range(len(asked) + 1)), done.stdout[-3000:]
    return [_read(text) for text in parts[2:-1:2]]


def _read(text: str) -> Found:
    # The client writes its progress over itself, before and after rows.
    text = re.sub(r"^(?:null *)+", "", text, flags=re.MULTILINE)
    lines = [re.sub(r"^\d: jdbc:hive2:\S*> ", "", line) for line in text.splitlines() if line.strip()]
    return text if "Error: " in text else [line.split("\t") for line in lines]


PROGRAM = """
    import json, sys
    sys.path.insert(0, sys.argv[2])
    from governed_holes import outcome
    from pyspark.sql import SparkSession

    remote = f"sc://127.0.0.1:{sys.argv[1]}/;user_id={sys.argv[3]}"
    session = SparkSession.builder.remote(remote).create()
    with open(sys.argv[4]) as file:
        asked = json.load(file)
    found = [outcome(session, texts, frame_of=table) for table, texts in asked]
    print("found", json.dumps(found))
"""


def by_connect(
    door: Door, user: str, asked: Sequence[Sequence[str]], table: str | None = None
) -> list[Found]:
    """Send statements, or DataFrames of a table, through Connect's own client."""
    file = Path(door.files).parents[1] / f"{user}.json"
    file.write_text(json.dumps([(table, texts) for texts in asked]))
    printed = client(PROGRAM, door.server.port, Path(governed_holes.__file__).parent, user, file)
    return list(json.loads(re.findall(r"^found (.*)$", printed, re.MULTILINE)[0]))


ASK: dict[str, Callable[[Door, str, Sequence[Sequence[str]]], list[Found]]] = {
    "thrift": by_thrift,
    "connect": by_connect,
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_hole_shows_what_is_hidden(door: tuple[str, Door], kind: str) -> None:
    """Statements at both servers, DataFrames at one. Users take turns: each tries what the other leaves out.

    Hive's client splits scripts at each semicolon. Functions of a client of another version of Spark fail.
    """
    name, found = door
    table = TABLES[kind]
    holes = [hole for hole in HOLES if kind in hole.kinds and (name == "connect" or hole.is_statement)]

    def tried(user: str) -> list[str]:
        said = names(table, user, found.files)
        turn = USERS.index(user) + list(CLASSES).index(name)
        own = [hole for hole in holes if (HOLES.index(hole) + turn) % len(USERS) == 0]
        texts = [(hole, statements(hole, said)) for hole in own if not hole.frame]
        rows = ASK[name](found, user, [each for _, each in texts])
        frames = [(hole, statements(hole, said)) for hole in own if hole.frame and not hole.runs_python]
        if frames:
            rows += by_connect(found, user, [each for _, each in frames], table)
        both = zip([*texts, *frames], rows, strict=True)
        return [_told(name, kind, user, hole, row) for (hole, _), row in both if wrong(hole, user, row)]

    with ThreadPoolExecutor(len(USERS)) as pool:
        wrongs = [each for part in pool.map(tried, USERS) for each in part]
    assert not wrongs, "\n".join(wrongs)
    stored = ASK[name](found, "root", [[f"SELECT * FROM {table}"]])[0]
    assert sorted(stored) == [[str(value) for value in row] for row in ROWS]


def _told(name: str, kind: str, user: str, hole: Hole, row: Found) -> str:
    return f"{name}, {kind}, {user}: {hole.text} {str(wrong(hole, user, row))[:400]}"
