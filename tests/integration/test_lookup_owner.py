"""Lookups on a small cluster: executors keep the caches, whatever is killed; nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from lockgate.framework.keys import create_key_file

pytestmark = pytest.mark.cluster

JOB = Path(__file__).parent / "executor" / "lookup_job.py"
ROWS = 2000


def run(job: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a Spark application of its own."""
    create_key_file(str(folder / "keys.json"), ["pii"])
    # Not its output by pipes: executors that outlive the driver for a moment would keep them open.
    with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
        done = subprocess.run(
            [sys.executable, str(JOB), job, str(folder)],
            stdout=out,
            stderr=err,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            timeout=280,
        )
    text = (folder / "out").read_text(), (folder / "err").read_text()
    return subprocess.CompletedProcess(done.args, done.returncode, *text)


def of_snapshot(n: int) -> list[Any]:
    """The answers of a batch: each value of the snapshot's, and the keys without a match."""
    return [[n, n, ROWS], [None, n, 10]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the job `together` found."""
    done = run("together", tmp_path_factory.mktemp("together"))
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def test_executors_of_a_host_elect_one_owner_of_one_cache(found: dict[str, Any]) -> None:
    shared = found["shared"]
    assert shared["first"] == of_snapshot(1)
    # One host, which both executors are on; a process of each, of which one has the lock.
    assert (shared["hosts"], shared["processes"], shared["caches"]) == ([[2, 1]], 2, 1)
    assert shared["parent"] == "java"
    assert shared["nice"] > min(os.getpriority(os.PRIO_PROCESS, 0), 18)  # nobody is nicer than 19


def test_killed_owners_and_executors_lose_nothing(found: dict[str, Any]) -> None:
    shared = found["shared"]
    assert shared["after_owner"] == [2, of_snapshot(2)]
    assert shared["after_executor"] == [3, of_snapshot(3)]
    assert shared["restarts"]
    assert shared["failures"] == [0, None]
    assert shared["ended_with_executor"]


def test_nothing_runs_on_when_the_application_ends(found: dict[str, Any]) -> None:
    assert found["shared"]["nothing_left"]
    assert found["detached"]["nothing_left"]


def test_sparks_metric_system_shows_where_lookups_stand(found: dict[str, Any]) -> None:
    gauges, shown = found["shared"]["gauges"], found["shared"]["shown"]
    batches = 3 * (ROWS + 10)
    rate = 3 * ROWS / batches
    assert gauges["driver"] == {
        "askedRows": batches,
        "hitRows": 3 * ROWS,
        "hitRate": pytest.approx(rate),
        "snapshot": 3,
        "refreshLagMillis": 0,
        "cacheRows": ROWS,
        "cacheBytes": shown["bytes"],
        "buildMillis": round(shown["build_seconds"] * 1000),
        "failures": 0,
        "ownerRestarts": shown["owner_restarts"],
        "hosts": 1,
    }
    assert gauges["executor"]["snapshot"] == 3
    assert gauges["executor"]["cacheRows"] == ROWS
    assert gauges["executor"]["cacheBytes"] > 0
    assert (shown["asked_rows"], shown["hit_rate"]) == (batches, pytest.approx(rate))


def test_without_the_plugin_the_driver_keeps_the_cache_and_warns(found: dict[str, Any]) -> None:
    detached = found["detached"]
    assert detached["answers"] == [of_snapshot(1), of_snapshot(1)]
    assert detached["parent"]
    (warning,) = detached["warnings"]
    assert "spark.plugins=io.lockgate.spark.LockgatePlugin" in warning


def test_hosts_answer_a_batch_from_one_snapshot_and_end_with_a_killed_driver(tmp_path: Path) -> None:
    done = run("apart", tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr[-4000:]
    seen = json.loads((tmp_path / "found.json").read_text())
    processes = [*seen["owners"], *seen["executors"]]
    try:
        assert len(set(seen["folders"])) == 2
        assert seen["error"] is None
        # All rows of a batch are of one snapshot, whose rows they are; no batch is older than one before it.
        assert all(batch == [[batch[0][1], batch[0][1], ROWS]] for batch in seen["batches"])
        snapshots = [batch[0][1] for batch in seen["batches"]]
        assert snapshots == sorted(snapshots)
        assert (snapshots[0], snapshots[-1]) == (1, 6)
        assert len(processes) == 4
        assert seen["looked_at"] >= 6
        assert seen["leaks"] == []
        gone = psutil.wait_procs([psutil.Process(pid) for pid in processes if psutil.pid_exists(pid)], 30)[1]
        assert [process for process in gone if process.status() != psutil.STATUS_ZOMBIE] == []
    finally:
        shutil.rmtree(seen["application"])


@pytest.mark.slow
def test_a_stream_whose_owners_and_executors_are_killed_all_the_time(tmp_path: Path) -> None:
    done = run("hunted", tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen["wrong"] == []
    assert seen["snapshots"] == sorted(seen["snapshots"])
    assert seen["newest"] == seen["written"] > 30
    assert seen["snapshots"][-1] == seen["written"]
    assert seen["killed"]["owners"] >= 5
    assert seen["killed"]["executors"] >= 1
    assert (seen["error"], seen["failures"]) == (None, 0)
    assert seen["generations"] <= 8
    assert (seen["shuffled"], seen["caches_of_groups"]) == (of_snapshot(1), 2)
    assert seen["nothing_left"]
