"""Tables in a real HDFS of one node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hdfs_node import client_environment, hdfs_node

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
JOB = HERE / "hdfs_job.py"


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {**os.environ, **client_environment(), "PYSPARK_PYTHON": sys.executable}


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs_node(tmp_path_factory.mktemp("hdfs") / "node") as address:
        yield address


def run(environment: dict[str, str], *arguments: object) -> dict[str, Any]:
    command = [sys.executable, str(JOB), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_the_contract_of_file_systems(environment: dict[str, str], hdfs: str) -> None:
    assert run(environment, "files", hdfs) == {
        "one winner each": True,
        "end": "3",
        "found though missing": [],
        "names": ["hint", *(f"prize {turn}" for turn in range(10))],
        "plausible": True,
        "deleted": [True, False],
        "left": [],
    }


def test_lineage_of_several_drivers(environment: dict[str, str], hdfs: str, tmp_path: Path) -> None:
    assert run(environment, "lineage", hdfs, tmp_path) == {
        "failed": [0, 0, 0],
        "segments": [18, 1, 1],
        "runs": [[[18, 18]]] * 3,
        "damaged": 0,
    }


def test_a_table_with_several_writers_and_spark(
    environment: dict[str, str], hdfs: str, tmp_path: Path
) -> None:
    assert run(environment, "table", hdfs) == {
        "failed": [0, 0, 0],
        "all rows": True,
        "snapshots": [20, 21, 22, 23, 24],
        "expired": 19,
        "tag": 3,
        "orphans": 0,
    }
    merged = [[1, "one"], [2, "new"]]
    assert run(environment, "spark", hdfs, tmp_path) == {
        "rows": 25,
        "key": merged,
        "python": merged,
        "left": [],
    }
