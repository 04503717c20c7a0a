"""Ranger's own classes from Maven Central, the referees that ask them, and Lockgate's jar."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = "2.8.0"
# What that version of Ranger runs its scripts with.
SCRIPTS = "22.3.0"
SOURCES = (
    ROOT / "tests" / "interop" / "java" / "ranger",
    ROOT / "framework" / "governance" / "ranger" / "admin",
)
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lockgate</groupId><artifactId>ranger-for-tests</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.ranger</groupId><artifactId>ranger-plugins-common</artifactId><version>{VERSION}</version>
</dependency><dependency>
<groupId>org.graalvm.js</groupId><artifactId>js</artifactId><version>{SCRIPTS}</version></dependency><dependency>
<groupId>org.graalvm.js</groupId><artifactId>js-scriptengine</artifactId><version>{SCRIPTS}</version>
</dependency></dependencies></project>"""


def class_path_in(folder: Path) -> str:
    """Fetch and compile into a folder, and return the class path; skips the test without Maven or Java."""
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        pytest.skip("mvn and javac are needed for Ranger's own classes")
    (folder / "pom.xml").write_text(POM)
    fetch = ["mvn", "-q", "-B", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]
    done = subprocess.run(fetch, cwd=folder, capture_output=True, text=True, timeout=500)
    if done.returncode:
        pytest.skip(f"Maven could not fetch Ranger's classes: {done.stdout[-300:]}")
    jars = (folder / "classpath").read_text().strip()
    sources = [str(path) for root in SOURCES for path in sorted(root.rglob("*.java"))]
    subprocess.run(["javac", "-cp", jars, "-d", str(folder), *sources], check=True, timeout=200)
    return f"{folder}:{jars}"
