"""What each test costs: seconds of CPU with all processes that it starts and its share of Spark's JVM.

`./dev test --all --costs` measures them and writes `tests/costs.json`, the list of those that `./dev test`
leaves out. A cost is rounded up to a power of two and kept until it has changed much, so the list seldom
changes.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping

    from _pytest.fixtures import FixtureDef

FILE = Path(__file__).parents[1] / "costs.json"
# Marks of tests that `./dev test` has no place for: what they need is not everywhere, or takes minutes.
ELSEWHERE = {"slow", "cluster", "interop"}
# Seconds above which a test is listed: without Spark, and with the session's JVM.
LIMIT, SPARK_LIMIT = 0.15, 0.4
_TICK = os.sysconf("SC_CLK_TCK")


def listed(file: Path = FILE) -> dict[str, float]:
    """Return the costs of the tests that are dearer than their limit."""
    found: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))
    return found


def limit_of(item: pytest.Item) -> float:
    """Return the seconds that a test of `./dev test` may take."""
    return SPARK_LIMIT if "spark_conf" in getattr(item, "fixturenames", ()) else LIMIT


def updated(
    before: Mapping[str, float],
    measured: Mapping[str, tuple[float, float]],
    absent: Collection[str],
) -> dict[str, float]:
    """Return the list after a run that has `measured` tests: the seconds and the limit of each."""
    after = {name: cost for name, cost in before.items() if name not in absent}
    for name, (seconds, limit) in measured.items():
        cost = after.pop(name, None)
        if cost is not None and cost / 4 < seconds <= cost * 1.25:
            after[name] = cost
        elif seconds > limit:
            after[name] = 2.0 ** math.ceil(math.log2(seconds))
    return dict(sorted(after.items()))


def absent_from(before: Mapping[str, float], collected: Collection[str], root: Path) -> list[str]:
    """Return the listed tests that are not there: their file is gone, or was collected without them."""
    files = {name.partition("::")[0] for name in collected}
    return [
        name
        for name in before
        if name not in collected
        and ((file := name.partition("::")[0]) in files or not (root / file).exists())
    ]


def cpu_seconds() -> float:
    """Return the CPU time of this process, of its ended children and of all its living descendants."""
    times = os.times()
    total = times.user + times.system + times.children_user + times.children_system
    waiting = [str(os.getpid())]
    while waiting:
        for task in Path("/proc", waiting.pop(), "task").glob("*/children"):
            try:
                children = task.read_text().split()
            except OSError:  # it has ended
                continue
            waiting += children
            total += sum(map(_process_seconds, children))
    return total


def _process_seconds(process: str) -> float:
    try:
        fields = Path("/proc", process, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    # Fields 14 to 17 of proc(5): its own ticks, then those of its ended children.
    return sum(map(int, fields[11:15])) / _TICK


class Meter:
    """Measures tests as they run, but those that `./dev test` never runs.

    A session's fixtures are nobody's cost; those of a module or a class are divided among their users.
    """

    def __init__(self) -> None:
        self._costs: dict[str, tuple[float, float]] = {}
        self._passed: set[str] = set()
        self._users: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._shared: dict[tuple[str, str], float] = defaultdict(float)
        self._aside = 0.0
        self._depth = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if any(mark.name in ELSEWHERE for mark in item.iter_markers()):
            return (yield)
        before, self._aside = cpu_seconds(), 0.0
        for name in getattr(item, "fixturenames", ()):
            self._users[str(item.path)][name].append(item.nodeid)
        result = yield
        self._costs[item.nodeid] = (cpu_seconds() - before - self._aside, limit_of(item))
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function" or self._depth:
            return (yield)
        before = cpu_seconds()
        self._depth += 1
        try:
            return (yield)
        finally:
            self._depth -= 1
            seconds = cpu_seconds() - before
            self._aside += seconds
            if fixturedef.scope != "session":
                self._shared[str(request.path), fixturedef.argname] += seconds

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out tests that are skipped or fail: they tell little of what they cost."""
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    def measured(self) -> dict[str, tuple[float, float]]:
        """Return the seconds and the limit of each test that has passed."""
        shares: dict[str, float] = defaultdict(float)
        for (path, fixture), seconds in self._shared.items():
            users = self._users[path][fixture]
            for name in users:
                shares[name] += seconds / len(users)
        costs = self._costs.items()
        return {name: (cost + shares[name], limit) for name, (cost, limit) in costs if name in self._passed}
