"""Compile the connector against the installed pyspark and pack it as a jar.

Uses the standard library only: it runs before Lockgate is installed, from `./dev` and from `setup.py`.
The jar is reproducible: equal sources and an equal pyspark give equal bytes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

JAVA = Path(__file__).resolve().parent
JAR = JAVA.parent / "lockgate-spark.jar"
VERSIONS = JAVA / "versions"
CHANGELOG = "org/apache/spark/sql/connector/catalog/Changelog.class"
VERSION_FILE = JAVA.parents[1] / "version.py"
VERSION_ENTRY = "io/lockgate/spark/version.properties"
# Maven and Spark's --packages find a jar for Spark 4.3 as io.lockgate:lockgate-spark-4.3_2.13:VERSION.
GROUP = "io.lockgate"
# Spark is `provided`: it is there already, and no copy of it is fetched with the jar.
POM = """\
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0"
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
         xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 http://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <packaging>jar</packaging>
  <name>Lockgate's connector for Apache Spark</name>
  <description>{description}</description>
  <licenses>
    <license>
      <name>Apache License, Version 2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
    </license>
  </licenses>
  <dependencies>
    <dependency>
      <groupId>org.apache.spark</groupId>
      <artifactId>spark-sql_2.13</artifactId>
      <version>{spark}</version>
      <scope>provided</scope>
    </dependency>
  </dependencies>
</project>
"""
NO_JDK = (
    "Building the connector needs a JDK 17 or newer (javac), and there is none on the PATH or in JAVA_HOME.\n"
    "On Debian or Ubuntu: sudo apt-get install openjdk-17-jdk-headless"
)


class BuildError(Exception):
    """Raised when the connector cannot be built; the message says what is missing."""


def find_javac() -> str:
    """Return the path of javac, or raise `BuildError` with the package to install."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "javac").is_file():
        return str(Path(home) / "bin" / "javac")
    found = shutil.which("javac")
    if found is None:
        raise BuildError(NO_JDK)
    return found


def find_spark_jars() -> Path:
    """Return the folder of Spark's jars inside the installed pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BuildError("Building the connector needs pyspark: pip install 'pyspark>=4.1,<4.4'")
    return Path(spec.origin).parent / "jars"


def sources() -> list[Path]:
    """Return the connector's Java sources for the installed Spark, in a fixed order."""
    found = [*(JAVA / "io").rglob("*.java"), *(VERSIONS / _version_folder()).rglob("*.java")]
    return sorted(found)


def _version_folder() -> str:
    """Return the folder of the sources that name classes which only some versions of Spark have."""
    for jar in find_spark_jars().glob("spark-catalyst_*.jar"):
        with zipfile.ZipFile(jar) as classes:
            if CHANGELOG in classes.NameToInfo:
                return "from-4.2"
    return "before-4.2"


def _resources() -> list[Path]:
    return sorted(path for path in (JAVA / "META-INF").rglob("*") if path.is_file())


def _versions() -> tuple[str, str]:
    """Return the version of Lockgate and the number of the bridge's protocol."""
    text = VERSION_FILE.read_text()
    version = re.search(r'^VERSION = "(.+)"$', text, re.MULTILINE)
    protocol = re.search(r"^BRIDGE_PROTOCOL = (\d+)$", text, re.MULTILINE)
    if version is None or protocol is None:
        raise BuildError(f"{VERSION_FILE}: no VERSION or BRIDGE_PROTOCOL found")
    return version[1], protocol[1]


def _spark_version() -> str:
    jars = find_spark_jars()
    found = list(jars.glob("spark-sql_2.13-*.jar"))
    if len(found) != 1:
        raise BuildError(f"{jars}: one spark-sql_2.13-VERSION.jar is expected, found {len(found)}")
    return found[0].stem.removeprefix("spark-sql_2.13-")


def _texts() -> dict[str, str]:
    """Return the entries that name the version: for the connector, and for Maven."""
    (version, protocol), spark = _versions(), _spark_version()
    artifact = f"lockgate-spark-{'.'.join(spark.split('.')[:2])}_2.13"
    folder = f"META-INF/maven/{GROUP}/{artifact}"
    pom = POM.format(
        group=GROUP,
        artifact=artifact,
        version=version,
        spark=spark,
        description="Tables, lookup joins, policies and encrypted columns; needs the Python package "
        f"lockgate {version} on the driver",
    )
    return {
        VERSION_ENTRY: f"version={version}\nprotocol={protocol}\nspark={spark}\n",
        f"{folder}/pom.xml": pom,
        f"{folder}/pom.properties": f"groupId={GROUP}\nartifactId={artifact}\nversion={version}\n",
    }


def is_current() -> bool:
    """Tell whether the jar was made of what is here now, for the installed Spark."""
    if not JAR.exists():
        return False
    try:
        with zipfile.ZipFile(JAR) as jar:
            return jar.comment == _fingerprint()
    except zipfile.BadZipFile:
        return False


def _fingerprint() -> bytes:
    """Return a hash of everything that the jar is made of.

    Times would not do: a removed source, and another pyspark in the same place, make no file newer.
    """
    found = hashlib.sha256(_spark_version().encode())
    for path in [*sources(), *_resources(), VERSION_FILE, JAVA / "build_connector.py"]:
        content = path.read_bytes()
        found.update(f"{path.relative_to(JAVA.parents[1])} {len(content)}\n".encode() + content)
    return found.hexdigest().encode()


def build(*, force: bool = False) -> Path:
    """Build the jar unless it was made of the same sources for the same Spark; return its path.

    Raises `BuildError` without a JDK or pyspark, and on a compiler error.
    """
    if not force and is_current():
        return JAR
    javac, jars = find_javac(), find_spark_jars()
    # A source that changes while this runs is not in the fingerprint, and the next build sees it.
    fingerprint = _fingerprint()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        command = [
            javac,
            "--release",
            "17",
            "-proc:none",
            "-Xlint:all,-processing,-classfile,-serial,-path",
            "-Werror",
        ]
        command += ["-cp", str(jars / "*"), "-d", str(out), *map(str, sources())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the JDK's compiler on our own sources
        if done.returncode:
            raise BuildError(f"javac failed:\n{done.stdout}{done.stderr}")
        _pack(out, fingerprint)
    return JAR


def _pack(classes: Path, fingerprint: bytes) -> None:
    entries = {str(path.relative_to(classes)): path.read_bytes() for path in classes.rglob("*.class")}
    entries |= {str(path.relative_to(JAVA)): path.read_bytes() for path in _resources()}
    entries |= {name: text.encode() for name, text in _texts().items()}
    # A session that is running keeps the old jar open, so it is replaced, never written into.
    unfinished = JAR.with_suffix(f".{os.getpid()}.tmp")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.comment = fingerprint
        for name in sorted(entries):
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            jar.writestr(info, entries[name])
    unfinished.replace(JAR)


if __name__ == "__main__":
    try:
        print(build(force="--force" in sys.argv))
    except BuildError as error:
        sys.exit(str(error))
