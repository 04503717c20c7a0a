"""What one question of the JVM to Python takes, beside a callback of py4j in the same run."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import Any

from harness import emit

from lockgate import Lake

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


def calls(lake: Lake, repetitions: int) -> None:
    """Time both in turn, from a thread of the JVM that does nothing else."""
    from pyspark.java_gateway import ensure_callback_server_started

    from lockgate.framework.spark import brain

    context: Any = lake.spark.sparkContext
    ensure_callback_server_started(context._gateway)
    brain._OWN["bench.echo"] = lambda _, request: request["operation"]
    timer = context._jvm.io.lockgate.spark.bridge.CallTimer
    callback = Callback()
    ways = {
        "bridge": lambda: timer.bridge("bench.echo", _CALLS),
        "py4j": lambda: timer.callback(callback, _CALLS),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for repetition in range(-2, repetitions):
        for name in ways if repetition % 2 == 0 else reversed(ways):
            micros = float(ways[name]()) / 1000
            if repetition >= 0:
                taken[name].append(micros)
            time.sleep(0.05)
    py4j = median(taken["py4j"])
    emit("bridge", "bridge_call_us", median(taken["bridge"]), "us", py4j)
    emit("bridge", "py4j_callback_us", py4j, "us")
