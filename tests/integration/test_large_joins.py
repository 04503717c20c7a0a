"""Joins of two large tables: files are skipped whose values have no partner, as the index database knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from governed_world import World
from ranger_world import allow, deny, mask, row_filter

from lockgate.framework.index.database import searches
from lockgate.framework.plugins import plugins
from lockgate.framework.spark.context.query_reports import explain_pushdown
from lockgate.framework.spark.session.session import dispatcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Named = Callable[[str], str]
FILES, ROWS = 10, 2500


def make(spark: SparkSession, name: str, letter: str, first: int) -> str:
    """Make a table whose files have one value each that another table may have, `h3` and so on."""
    spark.sql(
        f"CREATE TABLE {name} (id INT, k STRING, file INT) TBLPROPERTIES ('index.values.columns' = 'k')"
    )
    shared = f"concat('h', {first} + id div {ROWS})"
    rows = spark.sql(
        f"SELECT CAST(id AS INT) id, if(id % {ROWS} = 7, {shared}, concat('{letter}', id)) k, "
        f"CAST(id div {ROWS} AS INT) file FROM range({FILES * ROWS})"
    )
    rows.repartitionByRange(FILES, "id").writeTo(name).append()
    return name


@pytest.fixture(scope="module")
def left(spark: SparkSession, shared_table: Named) -> str:
    return make(spark, shared_table("left_side"), "a", 0)


@pytest.fixture(scope="module")
def right(spark: SparkSession, shared_table: Named) -> str:
    return make(spark, shared_table("right_side"), "b", 3)


def files(frame: Any) -> dict[str, int]:
    """The files that each scan of a query has read, by the table's name."""

    def scans(node: Any) -> Iterator[Any]:
        name = node.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            yield from scans(node.executedPlan())
        elif name.endswith("QueryStageExec"):
            yield from scans(node.plan())
        elif name == "BatchScanExec":
            yield node
        for index in range(node.children().size()):
            yield from scans(node.children().apply(index))

    frame.collect()
    found = list(scans(frame._jdf.queryExecution().executedPlan()))
    return {
        "left" if "left_side" in scan.table().name() else "right": scan.metrics().apply("files").value()
        for scan in found
    }


@pytest.mark.parametrize(
    ("query", "rows", "pruned"),
    [
        ("SELECT l.id FROM {l} l JOIN {r} r ON l.k = r.k", 7, {"left", "right"}),
        ("SELECT id FROM {l} WHERE k IN (SELECT k FROM {r})", 7, {"left", "right"}),
        ("SELECT l.id FROM {l} l LEFT JOIN {r} r ON l.k = r.k", 25000, {"right"}),
        ("SELECT l.id FROM {l} l RIGHT JOIN {r} r ON l.k = r.k", 25000, {"left"}),
    ],
)
def test_files_without_a_partner_are_left_out(
    spark: SparkSession, left: str, right: str, query: str, rows: int, pruned: set[str]
) -> None:
    """Of ten files on each side seven at most have a value that the other side has, too."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        frame = spark.sql(query.format(l=left, r=right))
        assert frame.count() == rows
        read = files(frame)
        assert {side for side, count in read.items() if count < FILES} == pruned
        assert all(0 < count <= 7 for side, count in read.items() if side in pruned)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT l.id FROM {l} l JOIN {r} r ON l.k = r.k AND r.file < 2", 2),
        ("SELECT l.id FROM {l} l FULL JOIN {r} r ON l.k = r.k", 49993),
        ("SELECT l.id FROM {l} l LEFT ANTI JOIN {r} r ON l.k = r.k", 24993),
        ("SELECT l.id FROM {l} l JOIN {r} r ON l.k <=> r.k", 7),
        ("SELECT l.id FROM {l} l JOIN {r} r ON upper(l.k) = r.k", 0),
    ],
)
def test_no_row_is_lost(spark: SparkSession, left: str, right: str, query: str, rows: int) -> None:
    assert spark.sql(query.format(l=left, r=right)).count() == rows


def test_explain_names_the_join(lake: Any, left: str, right: str) -> None:
    text = str(lake.explain_pushdown(f"SELECT l.id FROM {left} l JOIN {right} r ON l.k = r.k"))
    assert f"k joins {right.removeprefix('lake.')}.k" in text


def test_three_tables(spark: SparkSession, left: str, right: str, table: Named) -> None:
    third = make(spark, table("third"), "c", 5)
    frame = spark.sql(
        f"SELECT l.id FROM {left} l JOIN {right} r ON l.k = r.k JOIN {third} t ON l.k = t.k ORDER BY 1"
    )
    assert [row.id for row in frame.collect()] == [n * ROWS + 7 for n in range(5, 10)]


def test_a_side_that_does_not_read_the_newest_snapshot_leaves_no_file_out(
    spark: SparkSession, left: str, table: Named
) -> None:
    """What its options choose by the next plan may be another state than that of this one."""
    right = make(spark, table("fourth"), "d", 5)
    spark.sql(f"INSERT INTO {right} VALUES (-1, 'later', 0)")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        older = spark.read.option("scan.snapshot-id", "1").table(right)
        assert files(spark.table(left).join(older, "k"))["left"] == FILES
        assert files(spark.table(left).join(spark.table(right), "k"))["left"] < FILES
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_searches_count_once_however_often_they_are_planned(
    spark: SparkSession, left: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "SEARCHES", searches.Searches())
    query = f"SELECT l.id FROM {left} l JOIN {right} r ON l.k = r.k WHERE l.id >= 0 AND r.file < 9"
    spark.sql(query).collect()
    assert plugins().events.flush(10)
    counted = {
        tuple(sorted((column, each.searches) for (column, _), each in table.items()))
        for table in searches.SEARCHES._counts_by_table.values()
    }
    assert {count for table in counted for _, count in table} == {1}, counted
    assert len(counted) == 2, counted


def test_hidden_rows_and_values_leave_no_file_out(world: World, left: str, right: str) -> None:
    """The files that are read of one side would tell which values the other has."""
    session, query = world.session("ann"), f"SELECT l.id FROM {left} l JOIN {right} r ON l.k = r.k"
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    world.authorizer.governs_others = False  # nor are settings the question
    every = [allow(f"{name}.*", users=["ann"]) for name in (left, right)]
    for hidden, whole in (
        (row_filter(right, "file < 2", users=["ann"]), {"left"}),
        (mask(f"{right}.k", "CUSTOM", value="upper({col})", users=["ann"]), {"left"}),
        (mask(f"{right}.file", "MASK_NULL", users=["ann"]), set()),
    ):
        world.put(*every, hidden)
        read = files(session.sql(query))
        assert {side for side, count in read.items() if count == FILES} == whole
        assert whole in (set(), read.keys())
    world.put(*every, deny(f"{right}.k", users=["ann"]))
    with pytest.raises(Exception, match=r"right_side \(columns k\) is denied"):
        session.sql(query).collect()
    # Of a join that a row filter makes, its reader knows neither the table nor the files.
    world.put(every[0], row_filter(left, f"k IN (SELECT k FROM {right})", users=["ann"]))
    alone = f"SELECT id FROM {left}"
    assert session.sql(alone).count() == 7
    explained = explain_pushdown(session, dispatcher().reports, alone)
    assert (len(explained), explained.governed) == (0, 1)
