"""Rows are written once, no matter who dies or runs twice: drivers, executors, tasks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

JOB = Path(__file__).with_name("executor") / "broken_writes_job.py"
WHOLE = {"rows": [20_000, 20_000, sum(range(20_000))], "others": 0}


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(JOB), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **environment},
    )


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_tasks_that_fail_and_run_again(tmp_path: Path) -> None:
    found = answer(run("retry", tmp_path))
    kinds = ("retried", "retried with a key", "retried stream", "retried with keys that move")
    assert found == dict.fromkeys(kinds, WHOLE)


@pytest.mark.slow
def test_a_driver_that_is_killed(tmp_path: Path) -> None:
    """`test_stream.py` has the same without a death: an epoch whose commit Spark does not know of."""
    died = run("die", tmp_path)
    assert died.returncode == -signal.SIGKILL, died.stderr[-3000:]
    found = answer(run("again", tmp_path))
    # The driver died after the second commit to the table, which Spark's checkpoint does not know of.
    assert found["committed"] == [0, 1]
    assert found["stream"] == {"rows": [40, 40, sum(range(40))], "others": 0}
    assert found["epochs"] == [0, 1, 2, 3]


@pytest.mark.slow
def test_an_executor_that_is_killed(tmp_path: Path) -> None:
    found = answer(run("lose", tmp_path))
    assert found["rows"] == WHOLE["rows"]
    # It cannot delete what it was writing, which is an orphan; the rows are in another file.
    assert found["others"] <= 1


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A cluster of two workers that Spark takes for two machines."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    start = [f"{Path(pyspark.__file__).parent}/bin/spark-class"]
    deploy = "org.apache.spark.deploy"
    commands = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for host in ("127.0.0.1", "127.0.0.2"):
        place = ["--host", host, "-c", "1", "-m", "1g", "-d", str(tmp_path / host), "--webui-port", "0"]
        commands.append([f"{deploy}.worker.Worker", *place, master])
    environment = {**os.environ, "SPARK_DAEMON_MEMORY": "200m", "COPIES": str(tmp_path)}
    with (tmp_path / "log").open("w") as log:
        started = [
            subprocess.Popen([*start, *command], stdout=log, stderr=log, env=environment)
            for command in commands
        ]
        deadline = time.monotonic() + 60
        while (tmp_path / "log").read_text().count("Successfully registered with master") < 2:
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()[-3000:]
            time.sleep(0.2)
        yield master
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


@pytest.mark.slow
def test_of_a_task_that_runs_twice_one_writes(tmp_path: Path, cluster: str) -> None:
    found = answer(run("speculate", tmp_path, cluster, COPIES=str(tmp_path)))
    assert found == {**WHOLE, "copies": 2}
