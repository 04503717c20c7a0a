"""`spark-sql`, the program: its JVM starts Python itself, and Python ends with it."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path

import psutil
import pytest
import ranger_admin
from doors import SPARK_HOME, confs, environment
from ranger_world import allow, service

from lockgate.governance import service_definition

pytestmark = pytest.mark.cluster

STATEMENTS = """
CREATE NAMESPACE lake.db;
CREATE TABLE lake.db.t (id BIGINT NOT NULL, name STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1');
INSERT INTO lake.db.t VALUES (1, 'a'), (2, 'b');
INSERT INTO lake.db.t VALUES (2, 'c');
SELECT id, name FROM lake.db.t ORDER BY id;
SELECT /*+ LOOKUP('table'='d', 'lookup.strategy'='lookup') */ o.k, d.name
FROM (SELECT explode(array(1L, 2L, 3L)) AS k, current_timestamp() AS t) AS o
LEFT JOIN lake.db.t FOR SYSTEM_TIME AS OF o.t AS d ON o.k = d.id ORDER BY o.k;
DELETE FROM lake.db.t WHERE id = 1;
CALL lake.sys.compact('db.t');
SELECT count(*), 'rows' FROM lake.db.t;
"""


def spark_sql(
    folder: Path, statements: str, *, path: Path | str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    command = [str(SPARK_HOME / "bin" / "spark-sql"), *confs(folder / "lake", **more), "-e", statements]
    return subprocess.run(
        command,
        env=environment(LOCKGATE_TEST=str(folder), **({"PYTHONPATH": str(path)} if path else {})),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def left_of(folder: Path) -> list[psutil.Process]:
    """Return the processes that still run with the environment of a test."""
    return [
        each
        for each in psutil.process_iter(["environ"])
        if (each.info["environ"] or {}).get("LOCKGATE_TEST") == str(folder)
    ]


def test_spark_sql_starts_python_and_runs_statements(tmp_path: Path) -> None:
    """In a folder with a module of the same name, which a neighbour may have put there."""
    (tmp_path / "lockgate").mkdir()
    (tmp_path / "lockgate" / "__init__.py").write_text("raise SystemExit('the wrong module')")
    done = spark_sql(tmp_path, STATEMENTS)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert lines[:2] == ["1\ta", "2\tc"]
    assert lines[2:5] == ["1\ta", "2\tc", "3\tNULL"]
    assert lines[-1] == "1\trows"
    _gone, alive = psutil.wait_procs(left_of(tmp_path), timeout=30)
    assert not alive


PLUGIN = """
from lockgate.plugins import Decision, hookimpl

@hookimpl
def lockgate_authorize(request):
    return Decision.denied("the role reader")
"""


def test_a_governed_server_asks_before_its_first_query(tmp_path: Path) -> None:
    """Python is started for it, with the plugins that are installed."""
    site = tmp_path / "site"
    (site / "closed-1.0.dist-info").mkdir(parents=True)
    (site / "closed.py").write_text(PLUGIN)
    (site / "closed-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: closed\nVersion: 1.0\n"
    )
    (site / "closed-1.0.dist-info" / "entry_points.txt").write_text("[lockgate]\nclosed = closed\n")
    (tmp_path / "secret.txt").write_text("salaries\n")
    query = f"SELECT * FROM text.`{tmp_path}/secret.txt`"
    done = spark_sql(tmp_path, query, path=site, **{"spark.lockgate.governed": "true"})
    assert done.returncode != 0
    assert "salaries" not in done.stdout
    assert "the role reader" in done.stderr, done.stderr[-3000:]


@pytest.mark.parametrize(
    ("confs", "words"),
    [
        ({"spark.lockgate.governed": "true"}, "no plugin decides about access"),
        ({"spark.lockgate.governned": "true"}, "did you mean 'spark.lockgate.governed'"),
    ],
)
def test_a_server_without_policies_or_with_a_misspelt_setting_is_closed(
    tmp_path: Path, confs: dict[str, str], words: str
) -> None:
    (tmp_path / "secret.txt").write_text("salaries\n")
    query = f"SHOW NAMESPACES IN lake; CREATE NAMESPACE lake.db; SELECT * FROM text.`{tmp_path}/secret.txt`"
    done = spark_sql(tmp_path, query, **confs)
    assert done.returncode != 0
    assert "salaries" not in done.stdout
    assert words in done.stderr, done.stderr[-3000:]


def test_confs_of_a_catalog_bring_rangers_policies(tmp_path: Path) -> None:
    """The user of the operating system may read one of two tables, whatever the session sets."""
    user = getpass.getuser()
    with ranger_admin.running() as admin:
        every = [allow(path, "all", users=[user]) for path in ("lake", "lake.db", "lake.db.open.*")]
        make = allow("lake.db.closed", "create", "insert", users=[user])
        admin.has["plugins"] = {**service(*every, make, policyVersion=1), "serviceDef": service_definition()}
        option = "spark.sql.catalog.lake.ranger.plugin.paimon."
        confs = {
            "spark.lockgate.governed": "true",
            f"{option}service.name": "lake",
            f"{option}policy.rest.url": admin.url,
            f"{option}policy.cache.dir": str(tmp_path / "cache"),
        }
        statements = """
        CREATE NAMESPACE lake.db;
        CREATE TABLE lake.db.open (id BIGINT);
        CREATE TABLE lake.db.closed (id BIGINT);
        INSERT INTO lake.db.open VALUES (7);
        SELECT id FROM lake.db.open;
        """
        done = spark_sql(tmp_path, statements, **confs)
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.splitlines()[-1] == "7"
        for attack, words in (("", "apply for"), (f"SET {option}service.name=other; ", "the server sets it")):
            done = spark_sql(tmp_path, f"{attack}SELECT id FROM lake.db.closed", **confs)
            assert done.returncode != 0
            assert words in done.stderr, done.stderr[-3000:]


@pytest.mark.parametrize(
    ("confs", "expected"),
    [
        ({"spark.lockgate.python": "/bin/false"}, ["'/bin/false', ended", "-m pip install lockgate=="]),
        ({"spark.lockgate.python": "/no/python"}, ["cannot be started", "spark.lockgate.python"]),
        ({"spark.lockgate.python.start": "never"}, ["not attached", "spark.lockgate.python.start=never"]),
    ],
)
def test_a_python_that_cannot_answer(tmp_path: Path, confs: dict[str, str], expected: list[str]) -> None:
    done = spark_sql(tmp_path, "SHOW NAMESPACES IN lake", **confs)
    assert done.returncode != 0
    for each in expected:
        assert each in done.stderr, done.stderr[-3000:]


def test_a_python_that_takes_too_long(tmp_path: Path) -> None:
    """The statement fails at its deadline, and the process that did not answer is gone."""
    slow = tmp_path / "slow-python"
    slow.write_text("#!/bin/sh\necho loading for ever >&2\nexec sleep 600\n")
    slow.chmod(0o755)
    confs = {"spark.lockgate.python": str(slow), "spark.lockgate.python.timeout": "2s"}
    done = spark_sql(tmp_path, "SHOW NAMESPACES IN lake", **confs)
    assert done.returncode != 0
    assert "did not answer within 2 s (spark.lockgate.python.timeout)" in done.stderr, done.stderr[-3000:]
    assert "loading for ever" in done.stderr, "the message has what the process printed"
    _gone, alive = psutil.wait_procs(left_of(tmp_path), timeout=30)
    assert not alive
