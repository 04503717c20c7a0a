"""Servers of Spark's, with a plugin that decides who may read what."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from doors import SPARK_HOME, Server, confs, environment, free_port, wait_for

# Denies one user one table, and notes who asked for what.
AUTHORIZER = """
from pathlib import Path

from lockgate.framework.access import Decision
from lockgate.framework.plugins import hookimpl

ASKED = Path(__file__).with_name("asked.txt")


@hookimpl
def lockgate_authorize(request):
    with ASKED.open("a") as file:
        file.write(f"{request.principal.user} {request.action.name} {request.target}\\n")
    if request.principal.user == "bob" and "salaries" in str(request.target):
        return Decision.denied("bob may not read salaries")
    return None
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an installed plugin that decides."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "door_authorizer.py").write_text(AUTHORIZER)
    info = folder / "door_authorizer-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: door-authorizer\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lockgate]\ndoor_authorizer = door_authorizer\n")
    return folder


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, plugin: Path) -> Iterator[Callable[..., Server]]:
    """Starts a server's class; `{port}` in its confs stands for its port. `free`: nobody decides there."""
    begun: list[subprocess.Popen[bytes]] = []

    def started(name: str, more: Mapping[str, str], *, free: bool = False) -> Server:
        folder = tmp_path_factory.mktemp("server")
        port = free_port()
        filled = {key: value.format(port=port) for key, value in more.items()}
        log = folder / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [
                    str(SPARK_HOME / "bin" / "spark-submit"),
                    *confs(folder / "lake", **filled),
                    "--class",
                    name,
                    "spark-internal",
                ],
                env=environment(PYTHONPATH="" if free else str(plugin)),
                cwd=folder,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        begun.append(process)

        def listens() -> bool:
            assert process.poll() is None, log.read_text()[-3000:]
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_for(listens, f"answer of {name}")
        return Server(psutil.Process(process.pid), port, log, plugin / "asked.txt")

    yield started
    for each in begun:
        if each.poll() is None:
            os.killpg(each.pid, signal.SIGKILL)
        each.wait()
