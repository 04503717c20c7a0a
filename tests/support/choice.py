"""Which tests run: those of `./dev test`, the rest, those in quarantine; and how many came out how.

`./dev test` runs what is cheap (`costs.py`), and at least the cheapest test of each file. Tests in quarantine
are run by themselves and fail no run.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import costs
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from _pytest.terminal import TerminalReporter

# Taken out of the environment, so that pytest inside a test does not write there.
COUNTS = os.environ.pop("LOCKGATE_TEST_COUNTS", None)
KINDS = {"error": "failed", "xpassed": "passed", "xfailed": "skipped"}
# What a process of pytest-xdist hands to the process that reports.
NOTES = pytest.StashKey[dict[str, Any]]()
METER = pytest.StashKey[costs.Meter]()


class CollectedTest(NamedTuple):
    """A test, as far as it matters to whether it runs."""

    name: str
    marks: frozenset[str]
    limit: float

    @property
    def file(self) -> str:
        """The path of its file."""
        return self.name.partition("::")[0]


def default_set(tests: Iterable[CollectedTest], listed: Mapping[str, float]) -> set[str]:
    """Return the names of the tests that `./dev test` runs: the cheap ones, else the cheapest of a file."""
    files: dict[str, list[CollectedTest]] = defaultdict(list)
    for test in tests:
        if not test.marks & costs.ELSEWHERE:
            files[test.file].append(test)
    chosen: set[str] = set()
    for found in files.values():
        short = [test for test in found if "long" not in test.marks]
        cheap = [test.name for test in short if listed.get(test.name, 0) <= test.limit]
        chosen.update(cheap or [min(short or found, key=lambda test: listed.get(test.name, 0)).name])
    return chosen


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lockgate")
    group.addoption("--cheap", action="store_true", help="what `./dev test` runs")
    group.addoption("--rest", action="store_true", help="what `./dev test` leaves out")
    group.addoption("--quarantined", action="store_true", help="tests in quarantine, and no others")
    group.addoption("--costs", action="store_true", help=f"measure tests, and write {costs.FILE.name}")
    group.addoption("--repeat", type=int, metavar="N", help="run each test N times")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOTES] = {"left out": 0, "absent": [], "gone": [], "measured": {}}
    if config.getoption("costs") and config.getoption("repeat"):
        raise pytest.UsageError("--costs measures what a test costs once: leave out --repeat")
    # With pytest-xdist, tests run in its processes.
    if config.getoption("costs") and (is_process(config) or config.getoption("dist", "no") == "no"):
        config.stash[METER] = costs.Meter()
        config.pluginmanager.register(config.stash[METER], "meter")


def is_process(config: pytest.Config) -> bool:
    """Whether this is one of the processes of pytest-xdist."""
    return hasattr(config, "workeroutput")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    times = metafunc.config.getoption("repeat")
    if times is not None:
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(times), indirect=True, ids=lambda n: f"again{n}")


@pytest.fixture
def repetition() -> None:
    """Be one of the `--repeat N` runs of a test."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = [CollectedTest(each.nodeid, marks_of(each), costs.limit_of(each)) for each in items]
    listed = costs.listed()
    wanted = {test.name for test in known if ("quarantine" in test.marks) == config.getoption("quarantined")}
    notes = config.stash[NOTES]
    if not any("::" in each for each in config.args):
        notes["absent"] = costs.absent_from(listed, {test.name for test in known}, config.rootpath)
        # Some parameters are of data that are not everywhere.
        functions = {function_of(test.name) for test in known}
        notes["gone"] = sorted({function_of(name) for name in notes["absent"]} - functions)
    if config.getoption("cheap") or config.getoption("rest"):
        cheap = default_set(known, listed)
        others = {test.name for test in known if test.name not in cheap}
        notes["left out"] = len(others - {test.name for test in known if "slow" in test.marks})
        wanted &= cheap if config.getoption("cheap") else others
    left_out = [each for each in items if each.nodeid not in wanted]
    items[:] = [each for each in items if each.nodeid in wanted]
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def function_of(name: str) -> str:
    """Return the name of a test without its parameters."""
    return name.partition("[")[0]


def marks_of(item: pytest.Item) -> frozenset[str]:
    """Return the names of a test's marks; pytest.UsageError if it is in quarantine and nobody says why."""
    for mark in item.iter_markers("quarantine"):
        if not (mark.kwargs.keys() == {"reason"} and str(mark.kwargs["reason"]).strip()) or mark.args:
            raise pytest.UsageError(f'{item.nodeid}: why? Write @pytest.mark.quarantine(reason="…")')
    return frozenset(mark.name for mark in item.iter_markers())


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    notes = config.stash[NOTES]
    if METER in config.stash:
        notes["measured"] = config.stash[METER].measured()
    if is_process(config):
        config.workeroutput["notes"] = notes  # type: ignore[attr-defined]  # of pytest-xdist
    elif config.getoption("costs"):
        after = costs.updated(costs.listed(), notes["measured"], notes["absent"])
        costs.FILE.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a process has found; each has collected all tests, and measured its own."""
    found = getattr(node, "workeroutput", {}).get("notes")
    if found is not None:
        notes = node.config.stash[NOTES]
        node.config.stash[NOTES] = {**found, "measured": notes["measured"] | found["measured"]}


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    config = terminalreporter.config
    notes = config.stash[NOTES]
    if notes["gone"] and not config.getoption("costs"):
        terminalreporter.write_line(
            f"tests/costs.json lists tests that are not there: {', '.join(notes['gone'])}; "
            "./dev test --all --costs writes it again"
        )
    if config.getoption("cheap") and notes["left out"]:
        terminalreporter.write_line(f"left out {notes['left out']} tests, which CI runs: ./dev test --rest")
    if COUNTS is not None:
        counts = {"passed": 0, "failed": 0, "skipped": 0}
        for kind, reports in terminalreporter.stats.items():
            counts[KINDS.get(kind, kind)] = counts.get(KINDS.get(kind, kind), 0) + len(reports)
        Path(COUNTS).write_text(json.dumps(counts))
