"""Limits of recording: a full queue, a plan that is too large, and the counters that show both."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from lockgate.framework.lineage.pending_statements import wait_for_records

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = pytest.mark.usefixtures("own_index")

COUNTERS = ("seen", "recorded", "dropped", "failed", "cut", "opaque")


def test_a_full_queue_drops_counts_and_keeps_nobody_waiting(lake: Lake) -> None:
    context: Any = lake.spark.sparkContext._jsc.sc()
    twins: Any = lake.spark.sparkContext._jvm.io.lockgate.spark.lineage.LineageTwins
    busy = twins.busy(context, 3)
    try:
        for number in range(8):
            assert lake.sql(f"SELECT {number} AS n").first() == (number,)
        # The bus of Spark's events waits for nothing either.
        context.listenerBus().waitUntilEmpty(10_000)
        counted = json.loads(twins.counters(busy))
    finally:
        context.removeSparkListener(busy)
    assert counted["seen"] >= 8
    assert counted["dropped"] == counted["seen"] - 3
    assert (counted["waiting"], counted["recorded"], counted["failed"]) == (3, 0, 0)
    assert counted["bus_micros"] < 1_000_000


def test_counters_are_among_the_metrics_of_spark(lake: Lake) -> None:
    lake.sql("SELECT 1 AS n").collect()
    wait_for_records(lake.spark)
    twins: Any = lake.spark.sparkContext._jvm.io.lockgate.spark.lineage.LineageTwins
    shown = json.loads(twins.metrics())
    status = lake.lineage_status()
    assert shown == {name: status[name] for name in COUNTERS}
    assert shown["seen"] > 0


def test_a_statement_that_cannot_be_analysed_keeps_its_own_stack(lake: Lake) -> None:
    """Spark throws the exception of a plan again, with the stack of the code that asks for the plan."""
    with pytest.raises(AnalysisException) as failed:
        lake.sql("SELECT no_column")
    wait_for_records(lake.spark)
    origin: Any = failed.value._origin
    assert [str(frame) for frame in origin.getStackTrace() if "lineage" in str(frame)] == []
    assert "UNRESOLVED_COLUMN" in str(failed.value)


@pytest.mark.long
def test_of_a_plan_that_is_too_large_the_tables_are_recorded(lake: Lake, table: Callable[[str], str]) -> None:
    """A recursive query that hands a value from column to column needs a round for each of them."""
    source, target, width = table("source"), table("target"), 300
    lake.sql(f"CREATE TABLE {source} (x INT)")
    lake.sql(f"CREATE TABLE {target} (last INT)")
    names = [f"c{number}" for number in range(width)]
    first = ", ".join(["x", *("0" for _ in names[1:])])
    shifted = ", ".join(["c0", *(f"{name} + 1" for name in names[:-1])])
    before = lake.lineage_status()["cut"]
    lake.sql(
        f"INSERT INTO {target} WITH RECURSIVE r({', '.join(names)}) AS (SELECT {first} FROM {source} "
        f"UNION ALL SELECT {shifted} FROM r WHERE c0 < 0) SELECT {names[-1]} FROM r"
    )
    wait_for_records(lake.spark)
    assert lake.lineage_status()["cut"] == before + 1
    [edge] = lake.lineage(target, kinds="all").found
    assert (edge.source.table, edge.target.table) == (
        source.removeprefix("lake."),
        target.removeprefix("lake."),
    )
    assert edge.process["cut"]
