"""Lookups on several hosts: a Spark cluster in network namespaces, and a warehouse in a stand-in for S3 or in
HDFS.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import namespaces
import pyspark
import pytest
from child_paths import python_path
from hdfs_node import client_environment, hdfs_node
from namespaces import Hosts

pytestmark = pytest.mark.cluster

JOB = Path(__file__).parent / "executor" / "hosts_job.py"
SUPPORT = Path(__file__).resolve().parents[1] / "support"
CLASS = [f"{Path(pyspark.__file__).parent}/bin/spark-class"]
DEPLOY = "org.apache.spark.deploy"
PORT = "7077"


class Cluster:
    """A master on the first host, and a worker on each of the others with folders of its own."""

    def __init__(self, hosts: Hosts, folder: Path, more: dict[str, str]) -> None:
        self.hosts = hosts
        self.more = more
        self.folder = folder
        self.log = folder / "log"
        self.master = f"spark://{hosts.address(0)}:{PORT}"
        self._started: list[subprocess.Popen[bytes]] = []
        place = ["--host", hosts.address(0), "--port", PORT, "--webui-port", "0"]
        self._run(0, *CLASS, f"{DEPLOY}.master.Master", *place)
        self.start(1)
        self.start(2)
        self._registered(2)

    def environment(self, number: int) -> dict[str, str]:
        """Return the environment of a host: its address, and folders that no other host uses."""
        own = self.folder / f"host-{number}"
        (own / "tmp").mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        return {
            **kept,
            **self.more,
            "SPARK_LOCAL_IP": self.hosts.address(number),
            "SPARK_LOCAL_DIRS": str(own / "tmp"),
            "SPARK_DAEMON_MEMORY": "200m",
            "TMPDIR": str(own / "tmp"),
            "LOCKGATE_LOOKUP_CACHE_DIR": str(own / "caches"),
            "PYTHONPATH": python_path(SUPPORT, JOB.parent),
            "PYSPARK_PYTHON": sys.executable,
        }

    def start(self, number: int) -> None:
        """Start the worker of a host."""
        work = str(self.folder / f"host-{number}" / "work")
        place = ["--host", self.hosts.address(number), "-c", "1", "-m", "1g", "-d", work, "--webui-port", "0"]
        self._run(number, *CLASS, f"{DEPLOY}.worker.Worker", *place, self.master)

    def again(self, number: int) -> None:
        """Start the worker of a host that was killed, and wait for it."""
        before = self._count()
        self.start(number)
        self._registered(before + 1)

    def close(self) -> None:
        self.hosts.close()
        for process in self._started:
            process.wait(30)

    def _run(self, number: int, *command: str) -> None:
        with self.log.open("a") as log:
            self._started.append(
                subprocess.Popen(
                    self.hosts.command(number, *command),
                    stdout=log,
                    stderr=log,
                    env=self.environment(number),
                )
            )

    def _count(self) -> int:
        return self.log.read_text().count("Successfully registered with master")

    def _registered(self, count: int) -> None:
        deadline = time.monotonic() + 120
        while self._count() < count:
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.2)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    reason = namespaces.missing()
    if reason is not None:
        pytest.skip(reason)
    made = Hosts(3)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_a_host_is_killed_and_comes_back(store: str, hosts: Hosts, tmp_path: Path) -> None:
    """Each batch is joined with one snapshot on all hosts; one goes on alone while the other is dead."""
    with ExitStack() as ended:
        warehouse, more = [], {}
        if store == "hdfs":
            more = client_environment()
            node = hdfs_node(tmp_path / "hdfs", hosts.address(0), hosts.command(0))
            warehouse = [ended.enter_context(node)]
        cluster = Cluster(hosts, tmp_path, more)
        ended.callback(cluster.close)
        found, killed = _run(cluster, warehouse, tmp_path)
    assert killed >= 3, "the worker, its executor and the owner of the cache"
    assert found["error"] is None
    # One snapshot, one value and all rows in every batch, whatever happened to a host.
    assert [batch for batch in found["batches"] if batch != [[batch[0][1], batch[0][1], found["rows"]]]] == []
    snapshots = [batch[0][1] for batch in found["batches"]]
    assert snapshots == sorted(snapshots)
    assert set(snapshots) == {1, 2, 3, 4}
    folders = [str(tmp_path / f"host-{number}" / "caches") for number in (1, 2)]
    assert [str(Path(each).parent) for each in found["both"]] == folders
    assert [str(Path(each).parent) for each in found["alone"]] == folders[:1]
    assert [str(Path(each).parent) for each in found["again"]] == folders
    assert found["requests"] >= (4 if store == "hdfs" else 20), "the table is in the store"


def _run(cluster: Cluster, warehouse: list[str], tmp_path: Path) -> tuple[dict[str, Any], int]:
    """Run the job; return what it found, and how many processes of a host were killed."""
    place = [cluster.master, cluster.hosts.address(0), str(tmp_path / "host-0")]
    command = [sys.executable, str(JOB), *place, *warehouse]
    with (tmp_path / "job.log").open("w") as log:
        job = subprocess.Popen(
            cluster.hosts.command(0, *command),
            env=cluster.environment(0),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert job.stdin is not None
    assert job.stdout is not None
    last, killed = "", 0
    for line in job.stdout:
        last = line.strip()
        if last == "kill":
            killed = cluster.hosts.kill(2)
        elif last == "start":
            cluster.again(2)
        else:
            continue
        job.stdin.write("done\n")
        job.stdin.flush()
    job.stdin.close()
    job.stdout.close()
    assert job.wait(60) == 0, (tmp_path / "job.log").read_text()[-4000:]
    return dict(json.loads(last)), killed
