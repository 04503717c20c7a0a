"""The way between this process and the JVM: the jar, its version, and the brain put in its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import BridgeError, VersionMismatchError
from lockgate.framework.version import BRIDGE_PROTOCOL, VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate.framework.spark.brain import Brain

JAR = Path(__file__).resolve().parent / "lockgate-spark.jar"


def jar() -> Path:
    """Return the path of the connector jar; BridgeError says how to build it if it is missing."""
    if not JAR.is_file():
        raise BridgeError(
            f"the connector jar {JAR} is missing: in a checkout run ./dev build, else reinstall lockgate"
        )
    return JAR


def register(spark: SparkSession, brain: Brain) -> None:
    """Put `brain` in place in the JVM of `spark`.

    Raises BridgeError if the session cannot see the jar or is remote, VersionMismatchError if the jar is of
    another version than this package.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    bridge = _bridge(spark)
    check_version(str(bridge.version()), int(bridge.protocol()))
    # Streams and subqueries call from threads of the JVM's own, which need the callback server.
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]  # pyspark's own
    brain.use_session(spark)
    complaint = bridge.register(brain, VERSION, BRIDGE_PROTOCOL)
    if complaint is not None:
        raise VersionMismatchError(f"{complaint}, the Python package of {VERSION}: {_remedy()}")


def check_version(jar_version: str, jar_protocol: int) -> None:
    """Raise VersionMismatchError unless the jar is of this package's version."""
    if (jar_version, jar_protocol) != (VERSION, BRIDGE_PROTOCOL):
        raise VersionMismatchError(
            f"the connector jar is of version {jar_version} (protocol {jar_protocol}), the Python package "
            f"lockgate of version {VERSION} (protocol {BRIDGE_PROTOCOL}): {_remedy()}"
        )


def _remedy() -> str:
    return (
        f"take the jar that belongs to the package, spark.jars={JAR}, "
        "or install the package that belongs to the jar"
    )


def _bridge(spark: SparkSession) -> Any:
    context = getattr(spark, "_jsparkSession", None)
    if context is None:
        raise BridgeError(
            "Lockgate needs the driver in this process; a Spark Connect session has its driver elsewhere"
        )
    jvm: Any = spark.sparkContext._jvm
    bridge = jvm.io.lockgate.spark.Bridge
    # py4j takes an unknown class for a package.
    if type(bridge).__name__ != "JavaClass":
        raise BridgeError(
            "the Spark session does not have the connector jar: start it with "
            f"spark.jars={JAR} (lockgate.configure(builder) sets it), before the first session of the process"
        )
    return bridge
