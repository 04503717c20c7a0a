"""How hard properties are tried, the seed of random SQL, and what spares all tests time."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# One Spark session for all folders whose tests need one.
pytest_plugins = ["choice", "spark_session"]

# Tables and files are made in examples, so an example may take its time.
EASY = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# For `./dev test`, for CI, and for `--slow`.
settings.register_profile("dev", max_examples=10, **EASY)
settings.register_profile("quick", max_examples=50, **EASY)
settings.register_profile("full", max_examples=1500, **EASY)
settings.load_profile("quick")


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


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of garbage collections: they are a quarter of a million objects."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let them be collected at the end: extension modules complain about what is left then."""
    gc.unfreeze()
