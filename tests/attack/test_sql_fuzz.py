"""Random SQL and random lookups: what is stored and answered is what plain Spark and the model of tables say.

The seed is the date; `--seed` or LOCKGATE_FUZZ_SEED repeats another one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fuzz.lookups import fuzz_lookups
from fuzz.run import fuzz, seed_of_today
from spark_version import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

# A short history with a fixed seed for every run; by the date only what has the time to be looked into.
FIXED = 5


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed to begin with, which is printed where a test fails."""
    given = request.config.getoption("--seed") or os.environ.get("LOCKGATE_FUZZ_SEED")
    seed = int(given) if given else seed_of_today()
    print(f"--seed {seed}")
    return seed


@pytest.fixture(autouse=True)
def planned_by_spark(spark: SparkSession) -> Iterator[None]:
    """Spark 4.0 plans no MERGE and no DELETE of a table whose CHAR columns it pads when it reads them."""
    if SPARK < (4, 1):
        spark.conf.set("spark.sql.readSideCharPadding", "false")
    yield
    spark.conf.unset("spark.sql.readSideCharPadding")


def run(lake: Lake, folder: Path, seed: int, steps: int) -> int:
    report = fuzz(lake, folder, seed, steps)
    assert not report.differences, "\n".join([*report.log, *report.differences, f"seed {seed}"])
    return report.comparisons


@pytest.mark.long
def test_one_history(lake: Lake, tmp_path: Path) -> None:
    assert run(lake, tmp_path, FIXED, steps=3) > 5


@pytest.mark.slow
@pytest.mark.parametrize("history", range(8))
def test_histories_of_today(lake: Lake, tmp_path: Path, seed: int, history: int) -> None:
    assert run(lake, tmp_path, seed + history, steps=20) > 50


@pytest.mark.slow
@pytest.mark.parametrize("history", range(8))
def test_lookups_of_today(lake: Lake, tmp_path: Path, seed: int, history: int) -> None:
    report = fuzz_lookups(lake, tmp_path, seed + history, steps=8)
    assert not report.differences, "\n".join([*report.log, *report.differences, f"seed {seed + history}"])
