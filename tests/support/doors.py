"""Drivers without a Python in front: the real programs, and their real clients."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark
import pytest
from child_paths import python_path

from lockgate.framework.spark.bridge import connector_jars

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 240.0


def confs(warehouse: Path, **more: str) -> list[str]:
    """Return spark-submit's arguments for a catalog `lake`."""
    values = {
        "spark.jars": str(connector_jars.jar()),
        "spark.plugins": "io.lockgate.spark.LockgatePlugin",
        "spark.sql.extensions": "io.lockgate.spark.LockgateExtensions",
        "spark.sql.catalog.lake": "io.lockgate.spark.LockgateCatalog",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.lockgate.python": sys.executable,
        **more,
    }
    return [
        "--master",
        "local[1]",
        *(part for key, value in values.items() for part in ("--conf", f"{key}={value}")),
    ]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a Spark program that knows nothing of the tests' own Spark."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    path = python_path(more.pop("PYTHONPATH", ""))
    return {**kept, "SPARK_HOME": str(SPARK_HOME), "PYTHONPATH": path, **more}


def children(process: psutil.Process) -> list[psutil.Process]:
    """Return the Python processes that answer for a JVM."""
    return [
        each
        for each in process.children(recursive=True)
        if "lockgate.framework.spark.session.child" in _command(each)
    ]


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:  # it ends, or its parent has not looked that it did
        return []


def wait_for(found: Callable[[], object], what: str, seconds: float = START_SECONDS) -> None:
    """Wait until `found` answers something true."""
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, f"there was no {what} within {seconds:.0f} s"
        time.sleep(0.2)


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A server of Spark's, and where it listens and writes."""

    process: psutil.Process
    port: int
    log: Path
    asked: Path

    def child(self) -> psutil.Process:
        """Return the Python that answers."""
        wait_for(lambda: children(self.process), "child")
        return children(self.process)[0]

    def tasks(self) -> int:
        """Return how many tasks have begun."""
        return self.log.read_text(errors="replace").count("Running task")


# The remote client's threads can keep a program that has ended; it leaves them behind.
PROGRAM = """
import os, sys, traceback

code = 0
try:
    exec(sys.argv.pop(1), {"sys": sys})
except BaseException:
    traceback.print_exc()
    code = 1
sys.stdout.flush()
os._exit(code)
"""


def client(code: str, *arguments: object) -> str:
    """Run a program of Connect's own client, which has neither Spark nor Lockgate; return what it prints."""
    python = os.environ.get("LOCKGATE_CLIENT_PYTHON")
    if python is None:
        pytest.skip("needs Spark's remote client in an environment of its own: ./dev test --cluster makes it")
    done = subprocess.run(
        [python, "-W", "ignore", "-c", PROGRAM, textwrap.dedent(code), *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[:2000] + done.stderr[-2000:]
    return done.stdout
