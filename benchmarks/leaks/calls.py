"""What one question of the JVM to Python takes, next to a callback of py4j in the same run."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import time
import zipfile
from pathlib import Path
from statistics import median
from typing import Any

from harness import emit, interleaved, ratio
from sessions import open_lake

from lockgate.framework.spark.bridge.connector_jars import jar as connector_jar

BUILDER = Path(__file__).resolve().parents[2] / "framework" / "spark" / "java" / "build_connector.py"
_CALLS = 500


class Callback:
    """What py4j calls back: the way of other libraries, and Lockgate's former one."""

    class Java:
        """What py4j needs to know."""

        implements = ("java.util.function.BinaryOperator",)

    def apply(self, operation: str, request: str) -> str:
        """Answer like the bridge: decode the question, encode the answer."""
        json.loads(request)
        return json.dumps({"ok": operation})


def timer_jar(folder: Path) -> Path:
    """Compile what times the calls from inside the JVM; returns its jar."""
    script = runpy.run_path(str(BUILDER))
    classes, jar = folder / "classes", folder / "timer.jar"
    classes.mkdir()
    path = os.pathsep.join([str(connector_jar()), str(script["find_spark_jars"]() / "*")])
    source = Path(__file__).parent / "java" / "CallTimer.java"
    command = [script["find_javac"](), "--release", "17", "-nowarn", "-proc:none", "-cp", path]
    subprocess.run([*command, "-d", str(classes), str(source)], check=True)
    with zipfile.ZipFile(jar, "w") as packed:
        for each in classes.rglob("*.class"):
            packed.write(each, each.relative_to(classes))
    return jar


def calls(folder: Path, repetitions: int) -> None:
    """Time both in turn, from a thread of the JVM that does nothing else."""
    from pyspark.java_gateway import ensure_callback_server_started

    from lockgate.framework.spark.bridge import dispatcher

    lake = open_lake(folder, jars=[timer_jar(folder)])
    context: Any = lake.spark.sparkContext
    ensure_callback_server_started(context._gateway)
    dispatcher._OWN["bench.echo"] = lambda _, request: request["operation"]
    timer, callback = context._jvm.io.lockgate.benchmarks.CallTimer, Callback()
    ways = {
        "bridge": lambda: timer.bridge("bench.echo", _CALLS),
        "py4j": lambda: timer.callback(callback, _CALLS),
    }
    taken = interleaved(ways, repetitions, warm_up=2, clock=time.perf_counter)
    micros = {name: median(seconds) * 1e6 / _CALLS for name, seconds in taken.items()}
    emit("bridge", "bridge_call_us", micros["bridge"], "us", float(f"{micros['py4j']:.4g}"))
    emit("bridge", "py4j_callback_us", micros["py4j"], "us")
    emit("bridge", "bridge_call_ratio", ratio(taken["bridge"], taken["py4j"]), "x", "py4j callback")
    lake.spark.stop()
