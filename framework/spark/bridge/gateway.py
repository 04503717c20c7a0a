"""The way between this process and the JVM: the version of its jar, and the dispatcher that answers it."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from lockgate.errors import BridgeError, VersionMismatchError
from lockgate.framework.plugins import plugins, session_settings
from lockgate.framework.spark.bridge.bridge_server import BridgeServer
from lockgate.framework.spark.bridge.connector_jars import jar
from lockgate.framework.spark.context.driver_jvm import java_class
from lockgate.framework.version import BRIDGE_PROTOCOL, VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate.framework.spark.bridge.dispatcher import Dispatcher


def register(spark: SparkSession, dispatcher: Dispatcher, *, is_child: bool = False) -> None:
    """Let the JVM of `spark` ask `dispatcher`, and no longer the child that it has started until now.

    Raises BridgeError if the session cannot see the jar or is remote, VersionMismatchError if the jar is of
    another version than this package.
    """
    from py4j.protocol import Py4JJavaError

    bridge = _bridge(spark)
    connector = java_class(spark, "io.lockgate.spark.bridge.ConnectorVersion")
    check_version(str(connector.version()), int(connector.protocol()))
    fault = connector.fault()
    if fault is not None:
        raise VersionMismatchError(str(fault).removeprefix("VersionMismatchError: "))
    dispatcher.sessions.attach(spark)
    server = _server_of(dispatcher)
    try:
        with _unlogged():
            complaint = bridge.register(str(server.folder), server.secret, VERSION, BRIDGE_PROTOCOL, is_child)
    except Py4JJavaError as error:
        raise BridgeError(
            f"the JVM cannot reach this process through {server.folder}: {error.java_exception}; both need "
            "one user and one file system"
        ) from None
    if complaint is not None:
        raise VersionMismatchError(f"{complaint}, the Python package of {VERSION}: {_remedy()}")
    _follow_plugins(bridge, java_class(spark, "io.lockgate.spark.rules.SettingNameCheck"))


def _follow_plugins(bridge: Any, settings: Any) -> None:
    """Let the JVM know the settings that there are, and, after each plugin that comes, know them again and
    ask again whether anybody decides about access.
    """
    global _followed
    settings.know("\n".join(sorted(session_settings())))
    if _followed is None:
        plugins().followers.append(_ask_again)
    _followed = (bridge, settings)


def _ask_again() -> None:
    # Without its JVM no session can query.
    with suppress(Exception), _unlogged():
        bridge, settings = _followed
        settings.know("\n".join(sorted(session_settings())))
        bridge.askAgain()


_followed: Any = None
_lock = threading.Lock()
_server: BridgeServer | None = None


def _server_of(dispatcher: Dispatcher) -> BridgeServer:
    """Return the process's server: one for all sessions, and for all JVMs that come one after the other."""
    global _server
    with _lock:
        if _server is None or _server.pid != os.getpid():
            _server = BridgeServer(dispatcher.reply, dispatcher.sessions.thread_ends)
            atexit.register(_server.close)
        return _server


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep what this thread says over py4j out of its debug log, which holds whole commands."""
    thread = threading.get_ident()

    def is_other(record: logging.LogRecord) -> bool:
        return record.thread != thread

    loggers = [logging.getLogger(name) for name in ("py4j.clientserver", "py4j.java_gateway")]
    for logger in loggers:
        logger.addFilter(is_other)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_other)


def check_version(jar_version: str, jar_protocol: int) -> None:
    """Raise VersionMismatchError unless the jar is of this package's version."""
    if (jar_version, jar_protocol) != (VERSION, BRIDGE_PROTOCOL):
        raise VersionMismatchError(
            f"the connector jar is of version {jar_version} (protocol {jar_protocol}), the Python package "
            f"lockgate of version {VERSION} (protocol {BRIDGE_PROTOCOL}): {_remedy()}"
        )


def _remedy() -> str:
    return (
        f"take the jar that belongs to the package, spark.jars={jar()}, "
        "or install the package that belongs to the jar"
    )


def _bridge(spark: SparkSession) -> Any:
    context = getattr(spark, "_jsparkSession", None)
    if context is None:
        raise BridgeError(
            "Lockgate needs the driver in this process; a Spark Connect session has its driver elsewhere"
        )
    bridge = java_class(spark, "io.lockgate.spark.bridge.Bridge")
    # py4j takes an unknown class for a package.
    if type(bridge).__name__ != "JavaClass":
        raise BridgeError(
            "the Spark session does not have the connector jar: start it with "
            f"spark.jars={jar()} (lockgate.configure(builder) sets it), before the first session of the "
            "process"
        )
    return bridge
