"""A real HDFS of one node: Hadoop's own, from Maven Central, and Hadoop's C library for Python.

The library is in no package that can be installed. Unless ARROW_LIBHDFS_DIR or HADOOP_HOME names it, it is
compiled from its sources, which come with the sources of pydoop.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("MiniHdfs.java")
KEPT = Path(sys.prefix) / "lockgate-tests" / "hdfs"
SOURCES_OF_LIBRARY = "pydoop==2.0.0"
# What Hadoop's client needs of the jars that come with pyspark.
NEEDED = (
    "hadoop-client-*",
    "commons-lang3-*",
    "jcl-over-slf4j-*",
    "slf4j-api-*",
    "snappy-java-*",
    "jsr305-*",
)


def client_environment() -> dict[str, str]:
    """Return what a Python process needs to reach HDFS; skips the test where that cannot be had."""
    return {
        "ARROW_LIBHDFS_DIR": str(_library_folder()),
        "JAVA_HOME": str(_java_home()),
        "CLASSPATH": ":".join(map(str, _client_jars())),
    }


@contextmanager
def hdfs_node(folder: Path, address: str = "127.0.0.1", before: Sequence[str] = ()) -> Iterator[str]:
    """Run an HDFS in `folder` and yield where it is; `before` is a command that runs the command after it."""
    classes = _classes()
    path = ":".join(map(str, (classes, *classes.parent.glob("*.jar"), *_client_jars())))
    java = ["java", "-Xmx400m", "-cp", path, "MiniHdfs", str(folder), address]
    folder.mkdir(parents=True)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*before, *java],
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
            yield f"hdfs://{address}:{line.split()[1]}"
            process.stdin.close()


def _client_jars() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "jars"
    return [jar for name in NEEDED for jar in sorted(folder.glob(f"{name}.jar"))]


def _java_home() -> Path:
    compiler = shutil.which("javac")
    if compiler is None or shutil.which("mvn") is None:
        pytest.skip("needs javac and mvn")
    return Path(os.environ.get("JAVA_HOME") or Path(compiler).resolve().parents[1])


@cache
def _classes() -> Path:
    """Return the compiled server, next to the jar of Hadoop's whose version pyspark brings the client of."""
    version = next(jar.stem.rpartition("-")[2] for jar in _client_jars() if "client-api" in jar.name)
    folder = KEPT / version
    artifact = f"-Dartifact=org.apache.hadoop:hadoop-client-minicluster:{version}"
    if not list(folder.glob("*.jar")):
        folder.mkdir(parents=True, exist_ok=True)
        command = ["mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder}"]
        fetched = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)
        if fetched.returncode:
            pytest.skip(f"Maven could not fetch Hadoop's mini cluster: {fetched.stdout[-300:]}")
    classes = folder / "classes"
    path = ":".join(map(str, (*folder.glob("*.jar"), *_client_jars())))
    subprocess.run(["javac", "-d", classes, "-cp", path, SOURCE], check=True, timeout=120)
    return classes


@cache
def _library_folder() -> Path:
    home = os.environ.get("HADOOP_HOME", "/nowhere")
    for named in (os.environ.get("ARROW_LIBHDFS_DIR", ""), f"{home}/lib/native"):
        if named and list(Path(named).glob("libhdfs.*")):
            return Path(named)
    folder = KEPT / SOURCES_OF_LIBRARY
    if not (folder / "libhdfs.so").exists():
        if shutil.which("gcc") is None:
            pytest.skip("Hadoop's libhdfs is not here: set ARROW_LIBHDFS_DIR or HADOOP_HOME, or install gcc")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            _compile(_sources(Path(scratch)), folder / "libhdfs.so")
    return folder


def _sources(scratch: Path) -> Path:
    # pip prepares what it downloads, by an old setup.py.
    bounds = scratch / "bounds.txt"
    bounds.write_text("setuptools<70\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    fetched = subprocess.run(
        [*command, "--dest", str(scratch), SOURCES_OF_LIBRARY],
        env={**os.environ, "PIP_BUILD_CONSTRAINT": str(bounds), "JAVA_HOME": str(_java_home())},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if fetched.returncode:
        pytest.skip(f"the sources of Hadoop's libhdfs could not be fetched: {fetched.stderr[-300:]}")
    (archive,) = scratch.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(scratch, filter="data")
    return next(scratch.glob("*/src/libhdfs"))


def _compile(sources: Path, library: Path) -> None:
    java = _java_home()
    includes = [sources, sources / "include", sources / "os", sources / "os" / "posix"]
    includes += [java / "include", java / "include" / "linux"]
    parts = [
        path for folder in (".", "common", "os/posix") for path in sorted((sources / folder).glob("*.c"))
    ]
    machine = java / "lib" / "server"
    made = library.with_suffix(f".{os.getpid()}")
    command = ["gcc", "-shared", "-fPIC", "-O2", "-w", *(f"-I{each}" for each in includes), *map(str, parts)]
    command += [f"-L{machine}", "-ljvm", f"-Wl,-rpath,{machine}", "-lpthread", "-ldl", "-o", str(made)]
    subprocess.run(command, check=True, timeout=120)
    made.replace(library)
