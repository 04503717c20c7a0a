"""Deletion vectors: what they cost a scan, and what they spare a DELETE."""

from __future__ import annotations

from functools import partial
from statistics import median

from harness import emit, interleaved, note, ratio

from lockgate import Lake
from store.scans import COLUMNS, aggregate, everything

BENCH = "store"
VECTORS = "TBLPROPERTIES ('deletion-vectors.enabled' = 'true')"


def make_tables(lake: Lake, source: str, names: dict[str, str]) -> None:
    """Copy the rows of a table, by name of the copy and its properties."""
    for name, properties in names.items():
        lake.sql(f"CREATE TABLE lake.b.{name} ({COLUMNS}) {properties}")
        lake.sql(f"INSERT INTO lake.b.{name} SELECT * FROM lake.{source}")


def scan_ratio(lake: Lake, source: str, repetitions: int) -> None:
    """Read a table of which 10 % are deleted by vectors, over the same table compacted."""
    note("deletion vectors: scans")
    make_tables(lake, source, {"marked": VECTORS, "compacted": VECTORS})
    for name in ("marked", "compacted"):
        lake.sql(f"DELETE FROM lake.b.{name} WHERE id % 10 = 3")
    lake.call("compact", table="b.compacted")
    for metric, query in (("dv_scan_ratio", everything), ("dv_aggregate_ratio", aggregate)):
        times = interleaved(
            {name: partial(query, lake.table(f"b.{name}")) for name in ("marked", "compacted")}, repetitions
        )
        emit(BENCH, metric, ratio(times["marked"], times["compacted"]), "ratio", "the table compacted")
        emit(BENCH, metric.replace("ratio", "seconds"), median(times["marked"]), "s")


def delete_ratio(lake: Lake, source: str, repetitions: int) -> None:
    """DELETE 0.1 % of the rows, spread over all files, by vectors over rewriting files."""
    note("deletion vectors: DELETE")
    make_tables(lake, source, {"by_vectors": VECTORS, "by_files": ""})
    runs = iter(range(2 * (repetitions + 1)))

    def delete(name: str) -> None:
        lake.sql(f"DELETE FROM lake.b.{name} WHERE id % 1000 = {next(runs)}")

    names = ("by_vectors", "by_files")
    times = interleaved({name: partial(delete, name) for name in names}, repetitions)
    emit(BENCH, "dv_delete_ratio", ratio(times["by_vectors"], times["by_files"]), "ratio", "rewriting files")
    emit(BENCH, "dv_delete_seconds", median(times["by_vectors"]), "s")
