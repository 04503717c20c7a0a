"""What Spark's UI and its optimizer learn of a scan."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from lockgate.framework.plugins import hookimpl, plugins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


@pytest.fixture(scope="module")
def parts(spark: SparkSession, shared_table: Named) -> str:
    """Two partitions of two files each, by `id` 1, 2 and 11, 12."""
    name = shared_table("parts")
    spark.sql(f"CREATE TABLE {name} (id INT, day INT) PARTITIONED BY (day)")
    for number in (1, 2, 11, 12):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, {number // 10})")
    return name


def leaf(frame: DataFrame) -> Any:
    plan: Any = frame._jdf.queryExecution().executedPlan()
    return plan.collectLeaves().head()


def test_a_scan_counts_skipped_and_read_files(spark: SparkSession, parts: str) -> None:
    frame = spark.table(parts).where("day = 1 AND id > 11")
    assert [tuple(row) for row in frame.collect()] == [(12, 1)]
    metrics = leaf(frame).metrics()
    steps = ("skipped_by_partitions", "skipped_by_statistics", "skipped_by_limit")
    shown = {name: metrics.apply(name).value() for name in ("files", "bytes", "manifests", *steps)}
    assert shown.pop("bytes") > 100
    assert [shown[name] for name in steps] == [2, 1, 0]
    assert (shown["files"], shown["manifests"]) == (1, 4)
    assert metrics.apply("planning_ms").value() >= 0
    assert metrics.apply("skipped_by_keys").name().get() == "files skipped by keys"


def test_reports_tell_the_same(spark: SparkSession, parts: str, lake: Lake) -> None:
    (report,) = lake.explain_pushdown(f"SELECT * FROM {parts} WHERE day = 1 AND id > 11")
    assert report.manifests == 4
    assert report.seconds > 0
    assert [step.before.files - step.after.files for step in report.steps] == [2, 1]
    assert (report.total.files, report.kept.files) == (4, 1)
    again = lake.catalog.load_table(parts.removeprefix("lake.")).scan().report
    assert (again.manifests, again.kept.files, again.to_dict()["manifests"]) == (4, 4, 4)


def test_the_ui_shows_them(spark: SparkSession, parts: str, event_log: Callable[[], bytes]) -> None:
    """What Spark's UI and its history server show they take from events: names, and the driver's values."""
    spark.table(parts).where("id = 12").collect()
    text = event_log().decode()
    for shown in (
        "milliseconds of planning",
        "manifests of the snapshot",
        "files to read",
        "files skipped by statistics",
        "SparkListenerDriverAccumUpdates",
    ):
        assert shown in text


class Oddly:
    """Leaves out the files that the figures of no other step count: the last two."""

    name = "oddly"

    def keeps(self, predicate: object, files: Sequence[object]) -> list[bool]:
        return [number < len(files) - 2 for number, _ in enumerate(files)]


def test_a_plugins_step_is_a_figure_of_its_own(
    spark: SparkSession, parts: str, event_log: Callable[[], bytes]
) -> None:
    @hookimpl
    def lockgate_pruners(table: object) -> list[object]:
        return [Oddly()]

    plugins().register(types.SimpleNamespace(lockgate_pruners=lockgate_pruners), "oddly")
    try:
        frame = spark.table(parts).where("id > 0")
        assert len(frame.collect()) == 2
        metrics = leaf(frame).metrics()
    finally:
        plugins().unregister("oddly")
    assert metrics.apply("skipped_by_oddly").value() == 2
    assert metrics.apply("skipped_by_statistics").value() == 0
    text = event_log().decode()
    assert "files skipped by oddly" in text


def test_statistics_count_what_is_left_after_skipping(spark: SparkSession, parts: str) -> None:
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        plan: Any = spark.table(parts).where("day = 1")._jdf.queryExecution().optimizedPlan()
        assert plan.collectLeaves().head().stats().rowCount().get() == 2
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
