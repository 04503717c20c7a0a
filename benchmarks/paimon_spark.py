"""Paimon's own Spark connector and Lockgate's, each in a process of its own with the Spark that it needs.

The jar is the one that LOCKGATE_PAIMON_SPARK_JAR names, or comes by Maven; its Spark lives in a virtual
environment of its own, since no release of Spark serves both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

HERE = Path(__file__).resolve().parent
VERSION, ARTIFACT = "1.4.2", "paimon-spark-4.0_2.13"
JAR, PYTHON = "LOCKGATE_PAIMON_SPARK_JAR", "LOCKGATE_PAIMON_SPARK_PYTHON"
VENV = HERE.parent / ".venv-paimon-spark"
PACKAGES = ["pyspark==4.0.5", "pyarrow>=18"]
# The settings of both sessions; two cores, since that is what the figures are promised for.
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
}
PAIMON = {
    "spark.sql.catalog.lake": "org.apache.paimon.spark.SparkCatalog",
    "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
}


class MissingPaimonError(Exception):
    """Paimon's connector or its Spark cannot be had here; the text says why."""


class EngineError(Exception):
    """A statement failed; the text is the engine's own."""


def paimon_jar(folder: Path) -> Path:
    """Return Paimon's connector: the named one, else by Maven into `folder`."""
    named = os.environ.get(JAR)
    if named:
        if not Path(named).is_file():
            raise MissingPaimonError(f"{JAR} names {named}, which is not there")
        return Path(named)
    artifact = f"org.apache.paimon:{ARTIFACT}:{VERSION}"
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    except OSError as error:
        raise MissingPaimonError(f"{JAR} is not set, and Maven is not there: {error}") from error
    jar = folder / f"{ARTIFACT}-{VERSION}.jar"
    if done.returncode or not jar.is_file():
        raise MissingPaimonError(f"{JAR} is not set, and Maven has no {artifact}")
    return jar


def paimon_python() -> str:
    """Return a Python with the Spark that Paimon's connector needs, made when it is first asked for."""
    named = os.environ.get(PYTHON)
    if named:
        return named
    python, mark = VENV / "bin" / "python", VENV / "lockgate-stamp"
    if not mark.exists() or mark.read_text() != repr(PACKAGES):
        for command in (
            [sys.executable, "-m", "venv", str(VENV)],
            [str(python), "-m", "pip", "install", "-q"],
        ):
            packages = PACKAGES if "pip" in command else []
            done = subprocess.run([*command, *packages], capture_output=True, text=True, check=False)
            if done.returncode:
                raise MissingPaimonError(f"{VENV.name} could not be made: {done.stderr[-300:]}")
        mark.write_text(repr(PACKAGES))
    return str(python)


class Engine:
    """A session of Spark in a process of its own, with a warehouse as the catalog `lake`."""

    def __init__(self, python: str, warehouse: Path | str, scratch: Path, conf: Mapping[str, str]) -> None:
        self._out = scratch / "answer.arrow"
        self._log = (scratch / "log").open("w+b")
        command = [python, str(HERE / "paimon_spark_worker.py"), str(warehouse), json.dumps(dict(conf))]
        # An inherited PYSPARK_PYTHON or SPARK_HOME would be the other environment's.
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))
        }
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=inherited
        )

    def run(self, sql: str) -> float:
        """Run a statement and return how many seconds it took; EngineError says what was wrong."""
        return self._ask({"sql": sql})

    def read(self, sql: str) -> pa.Table:
        """Return the rows of a query."""
        self._ask({"sql": sql, "out": str(self._out)})
        with pa.ipc.open_file(self._out) as file:
            return file.read_all()

    def close(self) -> None:
        """End the session."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
        self._log.close()

    def _ask(self, asked: Mapping[str, str]) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise EngineError(f"the session ended: {self._log.read()[-2000:].decode(errors='replace')}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"])
        return float(answer["seconds"])


def paimon_engine(
    warehouse: Path | str, scratch: Path, memory: str = "1g", more: Mapping[str, str] | None = None
) -> Engine:
    """Paimon's own connector over a warehouse; MissingPaimonError where it cannot be had."""
    jar = paimon_jar(scratch)
    conf = {**SETTINGS, **PAIMON, "spark.driver.memory": memory, "spark.jars": str(jar), **(more or {})}
    return Engine(paimon_python(), warehouse, scratch, conf)


def lockgate_engine(warehouse: Path | str, scratch: Path, memory: str = "1g") -> Engine:
    """Lockgate's connector over a warehouse, in this environment's Spark."""
    conf = {**SETTINGS, "spark.sql.catalog.lake": "lockgate", "spark.driver.memory": memory}
    return Engine(sys.executable, warehouse, scratch, conf)
