"""The driver's Python as the child of a JVM to which no Python program has attached: spark-sql, a server.

The JVM starts `python -m lockgate.framework.spark.session.child` (`PythonChild` of the connector) with the
port and the secret of Spark's own gateway in its environment. One line on standard output, `ready`, says
that it answers. Standard input is the lease: it ends with the JVM, and so does this process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The work at the end, such as removing the bridge's folder, takes milliseconds.
_END_SECONDS = 10.0


def main() -> None:
    """Attach to the session of the JVM that started this process, and answer until that JVM ends."""
    # A terminal sends Ctrl-C to all its processes. The user means the statement, and the JVM cancels that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.dup(1)
    os.dup2(2, 1)  # output of libraries must not pass for the answer
    from lockgate.framework.spark.session.session import attach

    attach(_running_session(), is_child=True)
    os.write(answers, b"ready\n")
    os.close(answers)
    sys.stdin.buffer.read()
    _end_at_the_latest()


def _running_session() -> SparkSession:
    """Return the session that the JVM began with; others are reached by the questions that they ask."""
    from py4j.java_gateway import java_import
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway: Any = cast("Any", launch_gateway)()
    # The gateway has them; no program that this one starts needs them.
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        os.environ.pop(name, None)
    jvm: Any = gateway.jvm
    java_import(jvm, "org.apache.spark.sql.classic.*")
    running = jvm.org.apache.spark.SparkContext.getOrCreate()
    context = SparkContext(
        gateway=gateway,
        jsc=jvm.org.apache.spark.api.java.JavaSparkContext(running),
        conf=SparkConf(_jconf=running.getConf()),
    )
    default = jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession()
    made = default.get() if default.isDefined() else jvm.org.apache.spark.sql.classic.SparkSession(running)
    return SparkSession(context, made)


def _end_at_the_latest() -> None:
    """End by force if threads that wait for the JVM keep this process."""
    watch = threading.Timer(_END_SECONDS, os._exit, (0,))
    watch.daemon = True
    watch.start()


if __name__ == "__main__":
    main()
