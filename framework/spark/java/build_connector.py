"""Compile the connector against one Spark and pack it as the jar of that Spark's minor.

Uses the standard library only: it runs before Lockgate is installed, from `./dev` and from `setup.py`.
A jar is reproducible: equal sources and an equal Spark give equal bytes.

  build_connector.py [--force] [FOLDER ...]   folders of Spark's jars, by default of the installed pyspark

Sources are those in `io`, and those in each folder of `versions` whose name is a range of minors that holds
this one: `4.1`, `4.0-4.1` or `4.2+`, both ends inclusive. `message_records.py` makes those of the bridge's
messages.
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
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

JAVA = Path(__file__).resolve().parent
JARS = JAVA.parent / "jars"
VERSIONS = JAVA / "versions"
MESSAGES = JAVA / "META-INF" / "lockgate" / "bridge-messages.json"
MESSAGE_RECORDS = JAVA / "message_records.py"
SPARKS = JAVA.parent / "spark_versions.toml"
RANGE = re.compile(r"(\d+\.\d+)(?:-(\d+\.\d+)|(\+))?")
# Packages that moved: for older minors the same sources are compiled with the older names.
STREAMING = "org.apache.spark.sql.execution.streaming."
MOVED = {"4.0": ((f"{STREAMING}runtime.", STREAMING), (f"{STREAMING}sinks.", STREAMING))}
VERSION_FILE = JAVA.parents[1] / "version.py"
# In a source archive, the package is a folder deeper.
PROJECT = next(each / "pyproject.toml" for each in JAVA.parents if (each / "pyproject.toml").is_file())
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
  <url>{url}</url>
  <licenses>
    <license>
      <name>Apache License, Version 2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
    </license>
  </licenses>
  <developers>
    <developer>
      <name>{developer}</name>
      <url>{url}</url>
    </developer>
  </developers>
  <scm>
    <connection>scm:git:{url}.git</connection>
    <url>{url}</url>
  </scm>
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
        raise BuildError("Building the connector needs pyspark: pip install 'pyspark>=4.0,<4.4'")
    return Path(spec.origin).parent / "jars"


def minors() -> dict[str, str]:
    """Return the minors that have a connector, in order, and the Spark against which each is compiled."""
    return {each["minor"]: each["version"] for each in tomllib.loads(SPARKS.read_text())["spark"]}


def minor_of(spark: str) -> str:
    """Return the minor of a version such as 4.1.4 or 4.1.0-amzn-0."""
    return ".".join(spark.split(".")[:2])


def in_range(name: str, minor: str) -> bool:
    """Tell whether a range such as 4.0, 4.0-4.1 or 4.2+ holds a minor."""
    known, found = list(minors()), RANGE.fullmatch(name)
    first, last = (found[1], known[-1] if found[3] else found[2] or found[1]) if found else ("", "")
    if first not in known or last not in known or known.index(first) > known.index(last):
        raise BuildError(f"{name}: name it 4.1, 4.0-4.1 or 4.2+, by minors of {SPARKS.name}")
    return known.index(first) <= known.index(minor) <= known.index(last)


def sources(minor: str) -> dict[str, Path]:
    """Return a minor's Java sources by their path below the root of packages, in a fixed order."""
    if minor not in minors():
        raise BuildError(
            f"there is no connector for Spark {minor}: {SPARKS.name} lists {', '.join(minors())}"
        )
    roots = [JAVA, *(each for each in sorted(VERSIONS.iterdir()) if in_range(each.name, minor))]
    found: dict[str, Path] = {}
    for root in roots:
        for path in (root / "io").rglob("*.java"):
            name = path.relative_to(root).as_posix()
            if name in found:
                raise BuildError(f"for Spark {minor} there are two of {name}: {found[name]} and {path}")
            found[name] = path
    return dict(sorted(found.items()))


def source_faults() -> list[str]:
    """Return which classes of version folders a minor's sources name, but have not."""
    every = {minor: sources(minor) for minor in minors()}
    names = sorted({name for found in every.values() for name in found})
    faults = []
    for minor, found in every.items():
        missing = [Path(name).stem for name in names if name not in found]
        texts = {name: path.read_text() for name, path in found.items()} if missing else {}
        for each in missing:
            users = [name for name, text in texts.items() if re.search(rf"\b{each}\b", text)]
            faults += [f"{each} is missing for Spark {minor}: {users[0]} names it"] if users else []
    return faults


def _resources() -> list[Path]:
    return sorted(path for path in (JAVA / "META-INF").rglob("*") if path.is_file())


def lockgate_versions() -> tuple[str, str]:
    """Return the version of Lockgate and the number of the bridge's protocol."""
    text = VERSION_FILE.read_text()
    version = re.search(r'^VERSION = "(.+)"$', text, re.MULTILINE)
    protocol = re.search(r"^BRIDGE_PROTOCOL = (\d+)$", text, re.MULTILINE)
    if version is None or protocol is None:
        raise BuildError(f"{VERSION_FILE}: no VERSION or BRIDGE_PROTOCOL found")
    return version[1], protocol[1]


def spark_version(jars: Path) -> str:
    """Return the version of the Spark whose jars are in a folder."""
    found = list(jars.glob("spark-sql_2.13-*.jar"))
    if len(found) != 1:
        raise BuildError(f"{jars}: one spark-sql_2.13-VERSION.jar is expected, found {len(found)}")
    return found[0].stem.removeprefix("spark-sql_2.13-")


def _texts(spark: str) -> dict[str, str]:
    """Return the entries that name the version: for the connector, and for Maven."""
    version, protocol = lockgate_versions()
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    artifact = f"lockgate-spark-{minor_of(spark)}_2.13"
    folder = f"META-INF/maven/{GROUP}/{artifact}"
    pom = POM.format(
        group=GROUP,
        artifact=artifact,
        version=version,
        spark=spark,
        url=project["urls"]["Source"],
        developer=project["maintainers"][0]["name"],
        description="Tables, lookup joins, policies and encrypted columns; needs the Python package "
        f"lockgate {version} on the driver",
    )
    listed = ", ".join(minors())
    return {
        VERSION_ENTRY: f"version={version}\nprotocol={protocol}\nspark={spark}\nsparks={listed}\n",
        f"{folder}/pom.xml": pom,
        f"{folder}/pom.properties": f"groupId={GROUP}\nartifactId={artifact}\nversion={version}\n",
    }


def jar_of(minor: str) -> Path:
    """Return where the jar of a minor is built."""
    return JARS / f"lockgate-spark-{minor}_2.13-{lockgate_versions()[0]}.jar"


def is_current(jar: Path, spark: str | None = None) -> bool:
    """Tell whether a jar was made of what is here now, for this Spark or for the one that it names."""
    try:
        with zipfile.ZipFile(jar) as archive:
            if spark is None:
                found = re.search(r"^spark=(.+)$", archive.read(VERSION_ENTRY).decode(), re.MULTILINE)
                spark = found[1] if found else ""
            return jar == jar_of(minor_of(spark)) and archive.comment == _fingerprint(spark)
    except (FileNotFoundError, zipfile.BadZipFile, KeyError):
        return False


def missing_jars() -> list[str]:
    """Return the minors whose jar has not been built."""
    return [minor for minor in minors() if not jar_of(minor).exists()]


def jar_faults() -> list[str]:
    """Return which jars were made of other sources than these; no Spark and no JDK is needed to tell."""
    wanted = [jar_of(minor) for minor in minors()]
    faults = []
    for jar in sorted(JARS.glob("*.jar")):
        if jar not in wanted:
            faults.append(f"{jar.name} is of another version")
        elif not is_current(jar):
            faults.append(f"{jar.name} was made of other sources")
    return faults


def _fingerprint(spark: str) -> bytes:
    """Return a hash of everything that the jar for a Spark is made of.

    Times would not do: a removed source, and another pyspark in the same place, make no file newer.
    """
    found = hashlib.sha256(spark.encode())
    for name, text in _texts(spark).items():
        found.update(f"{name} {len(text)}\n{text}".encode())
    made_of = [*sources(minor_of(spark)).values(), *_resources()]
    for path in [*made_of, JAVA / "build_connector.py", MESSAGE_RECORDS]:
        content = path.read_bytes()
        found.update(f"{path.relative_to(JAVA.parents[1])} {len(content)}\n".encode() + content)
    return found.hexdigest().encode()


def build(jars: Path | None = None, *, force: bool = False) -> Path:
    """Build the jar for the Spark whose jars these are, unless it was made of the same sources for the same
    Spark; return its path. Without a folder, for the installed pyspark.

    Raises `BuildError` without a JDK or pyspark, and on a compiler error.
    """
    jars = find_spark_jars() if jars is None else jars
    spark = spark_version(jars)
    minor = minor_of(spark)
    jar = jar_of(minor)
    if not force and is_current(jar, spark):
        return jar
    javac = find_javac()
    # A source that changes while this runs is not in the fingerprint, and the next build sees it.
    fingerprint = _fingerprint(spark)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as written:
        out = Path(folder)
        files = [str(path) for path in compiled_sources(minor, Path(written)).values()]
        command = [
            javac,
            "--release",
            "17",
            "-proc:none",
            "-Xlint:all,-processing,-classfile,-serial,-path",
            "-Werror",
        ]
        command += ["-cp", str(jars / "*"), "-d", str(out), *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the JDK's compiler on our own sources
        if done.returncode:
            raise BuildError(f"javac failed for Spark {spark}:\n{done.stdout}{done.stderr}")
        entries = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.class")}
    entries |= {str(path.relative_to(JAVA)): path.read_bytes() for path in _resources()}
    entries |= {name: text.encode() for name, text in _texts(spark).items()}
    JARS.mkdir(exist_ok=True)
    # A session that is running keeps the old jar open, so it is replaced, never written into.
    unfinished = jar.with_suffix(f".{os.getpid()}.tmp")
    pack(unfinished, entries, fingerprint)
    unfinished.replace(jar)
    return jar


def compiled_sources(minor: str, folder: Path) -> dict[str, Path]:
    """Return a minor's sources as they are compiled.

    Those that name packages by newer names are copied into `folder` with the minor's own names, and the
    records of messages are written there.
    """
    found = sources(minor)
    for name, path in found.items() if minor in MOVED else ():
        text = old = path.read_text()
        for newer, older in MOVED[minor]:
            text = text.replace(newer, older)
        if text != old:
            found[name] = folder / name
            found[name].parent.mkdir(parents=True, exist_ok=True)
            found[name].write_text(text)
    found.update(_message_records().write(MESSAGES.read_text(encoding="utf-8"), folder))
    return found


def _message_records() -> Any:
    """Return the module beside this one, which may run as a script."""
    spec = importlib.util.spec_from_file_location("message_records", MESSAGE_RECORDS)
    if spec is None or spec.loader is None:
        raise BuildError(f"{MESSAGE_RECORDS} cannot be read")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pack(path: Path, entries: Mapping[str, bytes], comment: bytes = b"") -> None:
    """Write an archive whose bytes depend on nothing but its entries."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = comment
        for name in sorted(entries):
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entries[name])


def main(arguments: list[str]) -> None:
    """Build the jar of each folder of Spark's jars, or of the installed pyspark."""
    force = "--force" in arguments
    folders: list[Path | None] = [Path(each) for each in arguments if each != "--force"]
    for folder in folders or [None]:
        print(build(folder, force=force))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BuildError as error:
        sys.exit(str(error))
