"""The connector's jars, one for each Spark minor, and which of them belongs to the Spark that runs."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import BridgeError, InputError, VersionMismatchError
from lockgate.framework.io import named_errors
from lockgate.framework.version import VERSION

JARS = Path(__file__).resolve().parents[1] / "jars"
_SPARKS = JARS.with_name("spark_versions.toml")
_SCALA = "2.13"
_JAR = re.compile(r"lockgate-spark-(\d+\.\d+)_2\.13-.+\.jar")
_MINOR = re.compile(r"\d+\.\d+(?!\d)")
_CORE = re.compile(r"spark-core_(\d+\.\d+)-(.+)\.jar")


class FoundSpark(NamedTuple):
    """A Spark: its version and Scala as it tells them, and where they were read."""

    version: str
    scala: str
    source: str

    @property
    def minor(self) -> str:
        # Vendors append to the version: 4.1.0-amzn-0, 4.0.1.7.3.1, 4.3.0-SNAPSHOT.
        found = _MINOR.match(self.version)
        return found[0] if found else self.version


@checked_arguments
@named_errors
def jar(spark: str | None = None, *, spark_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of the connector's jar for a Spark: a version such as `4.1`, or the installation in
    `spark_home`. Without either, for the Spark that runs in this process or that pyspark would start here.

    Raises VersionMismatchError if there is no jar for it.
    """
    found = _spark(spark, spark_home)
    path = JARS / f"lockgate-spark-{found.minor}_{_SCALA}-{VERSION}.jar"
    if found.scala != _SCALA or not path.is_file():
        raise VersionMismatchError(_missing(found))
    return path


def maven_coordinates(spark: str | None = None, *, spark_home: str | os.PathLike[str] | None = None) -> str:
    """Return the coordinates of the artifact with the jar that `jar` returns."""
    jar(spark, spark_home=spark_home)
    return f"io.lockgate:lockgate-spark-{_spark(spark, spark_home).minor}_{_SCALA}:{VERSION}"


def minors() -> list[str]:
    """Return the minors of Spark that there is a jar for."""
    found = (_JAR.fullmatch(path.name) for path in JARS.glob(f"*-{VERSION}.jar"))
    return sorted(
        (name[1] for name in found if name), key=lambda minor: [int(part) for part in minor.split(".")]
    )


def life_of(version: str) -> str:
    """Return how long a Spark is supported: current, maintained, deprecated, or unknown for others."""
    minor = FoundSpark(version, _SCALA, "").minor
    known = tomllib.loads(_SPARKS.read_text(encoding="utf-8"))["spark"]
    return next((str(each["life"]) for each in known if each["minor"] == minor), "unknown")


def _spark(spark: str | None, home: str | os.PathLike[str] | None) -> FoundSpark:
    if spark is not None and home is not None:
        raise InputError("name a version of Spark or the folder of one, not both")
    if spark is not None:
        if not _MINOR.match(spark):
            raise InputError(f"the version of a Spark is a text such as 4.1 or 4.1.4, not {spark!r}")
        return FoundSpark(spark, _SCALA, "the argument")
    if home is not None:
        found = _of_home(Path(home))
        if found is None:
            raise InputError(f"{os.fspath(home)} is no Spark: there is no jars/spark-core_*.jar")
        return found
    return _of_jvm() or _of_pyspark()


def _missing(found: FoundSpark) -> str:
    there = minors()
    if not there:
        return f"{JARS} holds no connector jar: in a checkout run ./dev build, else reinstall lockgate"
    words = f"{', '.join(there[:-1])} and {there[-1]}" if len(there) > 1 else there[0]
    text = (
        f"lockgate {VERSION} has no connector for Spark {found.version} with Scala {found.scala} (from "
        f"{found.source}): there are connectors for Spark {words} with Scala {_SCALA}"
    )
    number = tuple(int(part) for part in re.findall(r"\d+", found.minor)[:2])
    if number < (4, 0):
        return (
            f"{text}. Use one of these, or do without a connector: lockgate.Catalog reads and writes tables "
            "without a JVM, and Paimon's own connector for this Spark reads and writes those that are not "
            "encrypted, in the same warehouse"
        )
    newest = tuple(int(part) for part in there[-1].split("."))
    return f"{text}: use one of these" + (", or a newer lockgate" if number > newest else "")


def _of_jvm() -> FoundSpark | None:
    """Return the Spark of this process's JVM, which spark-submit may have started; None without a JVM."""
    try:
        from pyspark import SparkContext
    except ImportError:
        raise BridgeError(
            "this Python has no pyspark that starts a JVM: install it with pip install 'lockgate[spark]', or "
            "name the Spark that will run, as in lockgate.jar('4.1') or lockgate jar --spark 4.1"
        ) from None
    if SparkContext._jvm is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    version = str(getattr(jvm, "org.apache.spark.package").SPARK_VERSION())
    scala = str(getattr(jvm, "scala.util.Properties").versionNumberString())
    return FoundSpark(version, ".".join(scala.split(".")[:2]), "the JVM that runs")


def _of_home(home: Path) -> FoundSpark | None:
    for path in sorted(home.glob("jars/spark-core_*.jar")):
        found = _CORE.fullmatch(path.name)
        if found:
            return FoundSpark(found[2], found[1], str(home))
    return None


def _of_pyspark() -> FoundSpark:
    """Return the Spark that pyspark would start: SPARK_HOME's, whatever the version of pyspark is."""
    import pyspark
    from pyspark.find_spark_home import _find_spark_home

    try:
        found = _of_home(Path(_find_spark_home()))
    except SystemExit:  # it ends the process where it finds no Spark
        found = None
    return found or FoundSpark(pyspark.__version__, _SCALA, "the installed pyspark")
