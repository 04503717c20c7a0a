"""Tables in a real HDFS of one node: Hadoop's own, from Maven Central, through Hadoop's C library.

That library is in no package of Maven's or PyPI's: ARROW_LIBHDFS_DIR says where it is, or HADOOP_HOME.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
JOB = HERE / "hdfs_job.py"
# What Hadoop's client needs of the jars that come with pyspark.
NEEDED = (
    "hadoop-client-*",
    "commons-lang3-*",
    "jcl-over-slf4j-*",
    "slf4j-api-*",
    "snappy-java-*",
    "jsr305-*",
)


def jars_of_pyspark() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "jars"
    return [jar for name in NEEDED for jar in sorted(folder.glob(f"{name}.jar"))]


def library_folder() -> str:
    home = os.environ.get("HADOOP_HOME", "/nowhere")
    for folder in (os.environ.get("ARROW_LIBHDFS_DIR", ""), f"{home}/lib/native"):
        if folder and list(Path(folder).glob("libhdfs.*")):
            return folder
    pytest.skip("Hadoop's libhdfs is not here: set ARROW_LIBHDFS_DIR or HADOOP_HOME")


def java_home() -> str:
    java = shutil.which("java")
    if java is None or shutil.which("mvn") is None:
        pytest.skip("needs java and mvn")
    return os.environ.get("JAVA_HOME") or str(Path(java).resolve().parents[1])


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {
        **os.environ,
        "ARROW_LIBHDFS_DIR": library_folder(),
        "JAVA_HOME": java_home(),
        "CLASSPATH": ":".join(map(str, jars_of_pyspark())),
        "PYSPARK_PYTHON": sys.executable,
    }


@pytest.fixture(scope="module")
def hdfs(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an HDFS of the version that pyspark brings the client of."""
    folder = tmp_path_factory.mktemp("hdfs")
    version = next(jar.stem.rpartition("-")[2] for jar in jars_of_pyspark() if "client-api" in jar.name)
    artifact = f"-Dartifact=org.apache.hadoop:hadoop-client-minicluster:{version}"
    command = ["mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder}"]
    fetched = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)
    if fetched.returncode:
        pytest.skip(f"Maven could not fetch Hadoop's mini cluster: {fetched.stdout[-300:]}")
    path = f"{folder}/classes:{folder}/*:{environment['CLASSPATH']}"
    source = HERE / "java" / "MiniHdfs.java"
    subprocess.run(["javac", "-d", f"{folder}/classes", "-cp", path, source], check=True, timeout=120)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            ["java", "-Xmx400m", "-cp", path, "MiniHdfs", str(folder / "data")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("PORT "), (folder / "log").read_text()[-3000:]
            yield f"hdfs://127.0.0.1:{line.split()[1]}"
            process.stdin.close()


def run(environment: dict[str, str], *arguments: object) -> dict[str, Any]:
    command = [sys.executable, str(JOB), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_what_file_systems_promise(environment: dict[str, str], hdfs: str) -> None:
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
