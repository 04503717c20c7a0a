"""What the benchmarks share: JSON lines on standard output, and timings that are fair on a noisy machine."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

REPETITIONS = 7


def emit(bench: str, metric: str, value: float, unit: str, baseline: str | float | None = None) -> None:
    """Print one figure as a JSON line; `baseline` is what it is to be compared with."""
    rounded = float(f"{value:.4g}") if abs(value) < 1000 else round(value)
    shown = {"bench": bench, "metric": metric, "value": rounded, "unit": unit, "baseline": baseline}
    print(json.dumps(shown), flush=True)


def note(text: str) -> None:
    """Say something to the person at the terminal; standard output stays JSON lines."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def describe_machine() -> None:
    """Say on standard error what the figures were measured on."""
    load, version = os.getloadavg()[0], platform.python_version()
    note(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, Python {version}")


def timed(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that one call takes; by `time.process_time` the CPU's seconds."""
    started = clock()
    function()
    return clock() - started


def interleaved(
    functions: Mapping[str, Callable[[], object]],
    repetitions: int = REPETITIONS,
    *,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time several functions in turn, so that what else the machine does falls on all alike.

    Returns the seconds of each repetition by name; the rounds of `warm_up` are left out. The order turns
    round with each repetition.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for repetition in range(-warm_up, repetitions):
        names = list(functions) if repetition % 2 == 0 else list(reversed(functions))
        for name in names:
            took = timed(functions[name], clock)
            if repetition >= 0:
                seconds[name].append(took)
    return seconds


def ratio(times: Sequence[float], baseline: Sequence[float]) -> float:
    """The median of the ratios of each repetition."""
    return median(one / other for one, other in zip(times, baseline, strict=True))
