"""TPC-H: answers next to DuckDB's, and times next to Spark's own ORC source on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from harness import emit, interleaved, note, ratio
from tpch.answers import Row, answers, differences
from tpch.queries import QUERIES
from tpch.tables import KEYS, TABLES, generate, load, query

from lockgate import Lake
from store.scans import BENCH

__all__ = ["KEYS", "tpch"]

# A query takes seconds, there are 22 of them, and the figure is their sum.
MOST_REPETITIONS = 3


def tpch(lake: Lake, folder: Path, scale: float, repetitions: int) -> None:
    """Print for each query how long it takes on plain and on encrypted tables, as ratios to Spark's own."""
    source = folder / "tpch"
    note(f"tpch: generating scale {scale:g}")
    generate(source, scale)
    note("tpch: DuckDB's answers")
    expected = answers(source, scale)
    names = {"spark": _in_orc(lake, source, folder / "tpch-orc")}
    for kind in ("plain", "encrypted"):
        note(f"tpch: writing {kind} tables")
        lake.sql(f"CREATE NAMESPACE lake.tpch_{kind}")
        names[kind] = load(lake, source, f"tpch_{kind}", encrypted=kind == "encrypted")
    totals = dict.fromkeys(names, 0.0)
    for number in QUERIES:
        for kind, seconds in _query(lake, number, names, expected[number], scale, repetitions).items():
            totals[kind] += seconds
    emit(BENCH, "tpch_equal_queries", 2 * len(QUERIES), "queries", "DuckDB's answers; plain and encrypted")
    for kind in ("plain", "encrypted"):
        baseline = f"spark.read.orc: {totals['spark']:.1f} s"
        emit(BENCH, f"tpch_{kind}_total_s", totals[kind], "s", baseline)
        emit(BENCH, f"tpch_{kind}_total_ratio", totals[kind] / totals["spark"], "ratio", baseline)


def _query(
    lake: Lake,
    number: int,
    names: Mapping[str, Mapping[str, str]],
    expected: list[Row],
    scale: float,
    repetitions: int,
) -> dict[str, float]:
    """Compare one query's answers, and print its times; returns the medians by kind of table."""
    note(f"tpch: query {number}")

    def run(kind: str) -> list[Row]:
        return [tuple(row) for row in lake.sql(query(number, names[kind], scale)).collect()]

    for kind in names:
        wrong = differences(run(kind), expected)
        if wrong:
            raise AssertionError(f"query {number} on {kind} tables: {'; '.join(wrong[:3])}")
    functions: dict[str, Callable[[], object]] = {kind: lambda kind=kind: run(kind) for kind in names}
    times = interleaved(functions, min(repetitions, MOST_REPETITIONS), warm_up=0)
    baseline = f"spark.read.orc: {median(times['spark']):.3f} s"
    for kind in ("plain", "encrypted"):
        emit(BENCH, f"tpch_q{number:02}_{kind}_ratio", ratio(times[kind], times["spark"]), "ratio", baseline)
    return {kind: median(seconds) for kind, seconds in times.items()}


def _in_orc(lake: Lake, source: Path, folder: Path) -> dict[str, str]:
    """Write the tables as ORC files of Spark's own, under the codec of Lockgate's; returns their views."""
    note("tpch: writing Spark's own ORC files")
    names = {}
    for name in TABLES:
        names[name] = f"orc_{name}"
        rows = lake.spark.read.parquet(str(source / f"{name}.parquet"))
        rows.write.option("compression", "zstd").orc(str(folder / name))
        lake.spark.read.orc(str(folder / name)).createTempView(names[name])
    return names
