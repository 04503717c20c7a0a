"""Tables of all engines, formats, kinds of buckets and changelogs against a model, written by both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from table_histories import ENGINES, History

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

pytestmark = pytest.mark.long


@pytest.mark.parametrize("engine", ENGINES)
def test_histories_of_both_engines(spark: SparkSession, lake: Lake, database: str, engine: str) -> None:
    for seed in range(2):
        History(lake.catalog, f"{database}.t{seed}", engine, seed, spark).run(7)
