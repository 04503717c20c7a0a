"""`explain_pushdown`: what each scan took over, what remains and why, and what each step left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from lockgate.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


@pytest.fixture(scope="module")
def parts(spark: SparkSession, shared_table: Named) -> str:
    """A table with three partitions of two files of 50 rows each."""
    name = shared_table("parts")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING, w STRING, p STRING) PARTITIONED BY (p)")
    for p in "abc":
        for start in (0, 50):
            rows = spark.range(start, start + 50).selectExpr(
                "id", "concat('v', id) AS v", "'w' AS w", f"'{p}' AS p"
            )
            rows.coalesce(1).writeTo(name).append()
    return name


def test_each_step(lake: Lake, parts: str) -> None:
    explained = lake.explain_pushdown(
        f"SELECT v FROM {parts} WHERE p = 'b' AND id < 20 AND length(w) = 1 AND v LIKE '%1'"
    )
    report = explained[0]
    assert len(explained) == 1
    assert any("p" in text for text in report.accepted)
    assert any("id" in text for text in report.skipping)
    reasons = dict(report.remaining)
    assert any("statistics" in reason for reason in reasons.values())
    assert any("length" in text.lower() for text in reasons)
    assert len(report.remaining) > len(report.skipping)
    assert set(report.columns or ()) == {"id", "v", "w"}
    assert (report.total.files, report.total.partitions, report.total.rows) == (6, 3, 300)
    assert (report.kept.files, report.kept.partitions) == (1, 1)
    assert 0 < report.kept.bytes < report.total.bytes
    partitions = next(step for step in report.steps if step.name == "partitions")
    assert (partitions.before.files, partitions.after.files) == (6, 2)
    text = str(explained)
    assert "2 of 6 files" in text
    assert "guaranteed" in text
    assert "remaining" in text
    assert explained.to_dict()["scans"][0]["table"] == report.table


def test_every_scan_is_reported(lake: Lake, parts: str) -> None:
    explained = lake.explain_pushdown(f"""
        SELECT * FROM {parts} x JOIN {parts} y ON x.id = y.id
        WHERE x.p = 'a' AND y.p IN ('b', 'c') AND x.id > (SELECT min(id) FROM {parts} WHERE p = 'c')""")
    assert sorted(report.kept.files for report in explained) == [2, 2, 4]


def test_nothing_is_run(lake: Lake, parts: str, spark: SparkSession) -> None:
    explained = lake.explain_pushdown(f"INSERT INTO {parts} SELECT * FROM {parts} WHERE p = 'a'")
    assert [report.kept.partitions for report in explained] == [1]
    lake.explain_pushdown(f"DROP TABLE {parts}")
    assert spark.table(parts).count() == 300
    with pytest.raises(InputError, match="CALL"):
        lake.explain_pushdown("CALL lake.sys.compact(table => 'db.t')")


def test_a_query_of_other_tables(lake: Lake) -> None:
    assert str(lake.explain_pushdown("SELECT * FROM range(3)")) == "No scan of a Lockgate table."
