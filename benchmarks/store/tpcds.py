"""TPC-DS: its 99 queries on tables of a format, next to Spark's own source of that format."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from statistics import median

from harness import emit, interleaved, note, ratio
from tpcds.source import TABLES, generate, queries

from lockgate import Lake
from store.scans import BENCH

# There are 99 queries, each takes seconds, and the figure is their sum.
MOST_REPETITIONS = 3

Row = tuple[object, ...]


def tpcds(
    lake: Lake,
    scratch: Path,
    folder: Path,
    scale: float,
    formats: Iterable[str],
    asked: range,
    repetitions: int,
) -> None:
    """Print how long the queries take by the connector, relative to Spark's own source, by format.

    `folder` has the data, or gets them; Spark's own tables lie in `scratch`; `asked` are the
    numbers of the queries.
    """
    note(f"tpcds: scale {scale:g}")
    generate(folder, scale)
    texts = {number: text for number, text in queries(folder).items() if number in asked}
    for kind in formats:
        _load(lake, folder, kind, scratch / f"spark-{kind}")
        _compare(lake, kind, texts, min(repetitions, MOST_REPETITIONS))


def _load(lake: Lake, folder: Path, kind: str, own: Path) -> None:
    """Write the tables twice, by the connector and by Spark, under the same codec."""
    note(f"tpcds: writing {kind} tables")
    lake.sql(f"CREATE NAMESPACE lake.ds_{kind}")
    lake.sql(f"CREATE DATABASE spark_catalog.ds_{kind} LOCATION '{own}'")
    for name in TABLES:
        rows = lake.spark.read.parquet(str(folder / f"{name}.parquet"))
        columns = ", ".join(f"`{column.name}` {column.dataType.simpleString()}" for column in rows.schema)
        lake.sql(f"CREATE TABLE lake.ds_{kind}.{name} ({columns}) TBLPROPERTIES ('file.format' = '{kind}')")
        rows.writeTo(f"lake.ds_{kind}.{name}").append()
        rows.write.format(kind).option("compression", "zstd").saveAsTable(f"spark_catalog.ds_{kind}.{name}")


def _compare(lake: Lake, kind: str, texts: dict[int, str], repetitions: int) -> None:
    totals = {"ours": 0.0, "spark": 0.0}
    for number, text in texts.items():
        note(f"tpcds: query {number} of {kind}")
        found = {who: _run(lake, who, kind, text) for who in totals}
        if _comparable(found["ours"]) != _comparable(found["spark"]):
            raise AssertionError(f"query {number} of {kind} tables: the two sources answer differently")
        times = interleaved(
            {who: lambda who=who, text=text: _run(lake, who, kind, text) for who in totals},
            repetitions,
            warm_up=0,
        )
        baseline = f"spark.read.{kind}: {median(times['spark']):.3f} s"
        emit(
            BENCH,
            f"tpcds_q{number:02}_{kind}_ratio",
            ratio(times["ours"], times["spark"]),
            "ratio",
            baseline,
        )
        for who in totals:
            totals[who] += median(times[who])
    emit(BENCH, f"tpcds_{kind}_equal_queries", len(texts), "queries", "Spark's own answers")
    baseline = f"spark.read.{kind}: {totals['spark']:.1f} s"
    emit(BENCH, f"tpcds_{kind}_sum_s", totals["ours"], "s", baseline)
    emit(BENCH, f"tpcds_{kind}_sum_ratio", totals["ours"] / totals["spark"], "ratio", baseline)


def _run(lake: Lake, who: str, kind: str, text: str) -> list[Row]:
    catalog = "lake" if who == "ours" else "spark_catalog"
    lake.sql(f"USE {catalog}.ds_{kind}")
    return [tuple(row) for row in lake.sql(text).collect()]


def _comparable(rows: list[Row]) -> list[str]:
    """The rows in an order of their own, for ties come in any; doubles by ten digits."""
    return sorted(repr([_rounded(value) for value in row]) for row in rows)


def _rounded(value: object) -> object:
    return f"{value:.10g}" if isinstance(value, float | Decimal) else value
