"""The Java sources of the tests (`tests/java`) as a jar, compiled against the connector.

They are in the connector's packages, so that they reach what only tests need to reach, and they are not in
its jar.
"""

from __future__ import annotations

import hashlib
import os
import runpy
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from lockgate.framework.spark.bridge.connector_jars import jar

SOURCES = Path(__file__).parents[1] / "java"
BUILDER = Path(__file__).parents[2] / "framework" / "spark" / "java" / "build_connector.py"


def test_jar() -> Path:
    """Return the jar, compiled once for each state of its sources and the connector."""
    sources = sorted(SOURCES.rglob("*.java"))
    state = hashlib.sha256(b"\0".join([jar().read_bytes(), *(source.read_bytes() for source in sources)]))
    minor = jar().name.split("_")[0].rsplit("-", 1)[1]
    built = Path(sys.prefix) / "lockgate-tests" / f"{minor}-{state.hexdigest()[:20]}.jar"
    if not built.exists():
        for old in built.parent.glob(f"{minor}-*.jar"):
            old.unlink()
        built.parent.mkdir(exist_ok=True)
        _compile(sources, built)
    return built


test_jar.__test__ = False  # type: ignore[attr-defined]  # pytest takes the name for a test


def java_program() -> str:
    """Return the path of `java`, of the JDK that compiles the connector."""
    return str(Path(runpy.run_path(str(BUILDER))["find_javac"]()).with_name("java"))


def _compile(sources: list[Path], built: Path) -> None:
    builder = runpy.run_path(str(BUILDER))
    class_path = f"{jar()}:{builder['find_spark_jars']() / '*'}"
    with tempfile.TemporaryDirectory() as folder:
        lint = "-Xlint:all,-processing,-classfile,-path"
        command = [builder["find_javac"](), "--release", "17", "-proc:none", lint, "-Werror"]
        command += ["-cp", class_path, "-d", folder, *map(str, sources)]
        subprocess.run(command, check=True, timeout=120)
        # Another test process may build the same jar: each writes its own, and renames it.
        unfinished = built.with_suffix(f".{os.getpid()}.tmp")
        with zipfile.ZipFile(unfinished, "w") as archive:
            for path in sorted(Path(folder).rglob("*.class")):
                archive.write(path, path.relative_to(folder))
        unfinished.replace(built)


if __name__ == "__main__":
    # `./dev test` compiles them before its processes need them.
    test_jar()
