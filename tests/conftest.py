"""How hard properties are tried, the seed of random SQL, and the count that `./dev test` adds up."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.terminal import TerminalReporter

# One Spark session for all folders whose tests need one.
pytest_plugins = ["spark_session"]

# Tables and files are made in examples, so an example may take its time.
EASY = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=50, **EASY)
settings.register_profile("full", max_examples=1500, **EASY)
settings.load_profile("quick")

# Taken out of the environment, so that pytest inside a test does not write there.
COUNTS = os.environ.pop("LOCKGATE_TEST_COUNTS", None)
KINDS = {"error": "failed", "xpassed": "passed", "xfailed": "skipped"}


@pytest.fixture(scope="session", autouse=True)
def never_waits_for_the_disk() -> Iterator[None]:
    """Let `os.fsync` do nothing: no test takes the power away, and what a killed process wrote stays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="module")
def without_lineage() -> Iterator[None]:
    """Let lineage note no call: its thread would write files of its own while a test counts operations."""
    from lockgate.framework.lineage import plugin
    from lockgate.framework.plugins import plugins

    plugins().unregister("lineage")
    yield
    plugins().register(plugin, "lineage")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed", type=int, help="seed of random SQL; default: LOCKGATE_FUZZ_SEED, else the date"
    )


LEFT_OUT = pytest.StashKey[int]()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Note how many tests of clusters and long ones are left out, unless slow or of other lanes too."""
    if items and "not cluster and not long" in items[0].config.option.markexpr:
        names = [{mark.name for mark in each.iter_markers()} for each in items]
        count = len([each for each in names if each & {"cluster", "long"} and not each & {"slow", "interop"}])
        items[0].config.stash[LEFT_OUT] = items[0].config.stash.get(LEFT_OUT, 0) + count


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of garbage collections: they are a quarter of a million objects."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let them be collected at the end: extension modules complain about what is left then."""
    gc.unfreeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a process of pytest-xdist: hand the number to the process that reports."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each process has collected all tests, so one number is that of all."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", 0)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    left_out = terminalreporter.config.stash.get(LEFT_OUT, 0)
    if COUNTS is None:
        if left_out:
            text = f"left out {left_out} tests of clusters, and long ones: ./dev test --cluster --long"
            terminalreporter.write_line(text)
        return
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for kind, reports in terminalreporter.stats.items():
        counts[KINDS.get(kind, kind)] = counts.get(KINDS.get(kind, kind), 0) + len(reports)
    Path(COUNTS).write_text(json.dumps({**counts, "left out": left_out}))
