#!/usr/bin/env python3
"""The figures of the index database: its size, what it adds to writes, what it leaves out, its plans, and
hunts in Spark next to Spark without it and DuckDB.

Each is one JSON line on standard output. `--only` measures some parts only; with `--folder` they share a
warehouse that stays. Plans are of a table of 100,000 files of which only metadata is there. Times of plans
are those of the processor, since other work on the machine must not count.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from harness import describe_machine
from index import chinese, curves, planning, pruning, queries, ranges, spark_order, spark_writes, tables

PARTS = (
    "writes",
    "spark-writes",
    "sizes",
    "ranges",
    "queries",
    "plans",
    "whole-plans",
    "cold-plans",
    "curves",
    "spark-order",
    "pruning",
    "chinese",
)
OF_EVENTS = {"sizes", "ranges", "queries", "pruning"}


def main() -> int:
    """Measure everything, or what is asked for."""
    arguments = _arguments()
    describe_machine()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="lockgate-bench-index-"))
    try:
        _measure(folder, set(arguments.only), arguments)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _measure(folder: Path, wanted: set[str], arguments: argparse.Namespace) -> None:
    repetitions, rows_a_file = arguments.repetitions, arguments.rows_a_file
    if "writes" in wanted:
        tables.measure_writes(folder / "writes", rows_a_file, repetitions)
    if "spark-writes" in wanted:
        spark_writes.measure(folder / "spark-writes", arguments.spark_rows, rows_a_file, repetitions)
    if wanted & {"plans", "whole-plans"}:
        _plans(folder, wanted, arguments)
    if "cold-plans" in wanted:
        planning.measure_cold_plans(folder / "cold", 2 * arguments.files)
    if "curves" in wanted:
        curves.measure(repetitions)
    if "spark-order" in wanted:
        spark_order.measure(folder / "spark-order", arguments.rows)
    if "chinese" in wanted:
        chinese.measure(*arguments.titles)
    if wanted & OF_EVENTS:
        _events(folder, wanted, arguments)


def _events(folder: Path, wanted: set[str], arguments: argparse.Namespace) -> None:
    repetitions, rows_a_file = arguments.repetitions, arguments.rows_a_file
    table = tables.make_events(folder / "lake", arguments.rows, rows_a_file)
    rare = tables.rare_hashes(tables.first_events(rows_a_file))
    files = sorted(Path(table.location).rglob("data-*.orc"))
    if "sizes" in wanted:
        tables.measure_sizes(table, rare)
    if "ranges" in wanted:
        ranges.measure(files, folder / "ranges", repetitions)
    if "queries" in wanted:
        queries.measure(folder, table, rare, repetitions)
    if "pruning" in wanted:
        catalog = tables.catalog_in(folder / "lake")
        pruning.measure(catalog, table, arguments.strategy, arguments.order_by)


def _plans(folder: Path, wanted: set[str], arguments: argparse.Namespace) -> None:
    repetitions = arguments.repetitions
    if "plans" in wanted:
        wide = planning.make_table(folder / "wide", arguments.files)
        planning.measure(wide, arguments.files, repetitions)
    if "whole-plans" in wanted:
        many = planning.make_table(folder / "many", arguments.whole_plans)
        planning.measure_whole_plans(many, arguments.whole_plans, repetitions)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench index", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts (default all)")
    parser.add_argument("--folder", type=Path, help="folder of the tables, which stay there")
    parser.add_argument("--rows", type=int, default=10_000_000, help="events (default 10 million)")
    parser.add_argument("--rows-a-file", type=int, default=250_000, help="rows of a file (default 250000)")
    parser.add_argument(
        "--spark-rows", type=int, default=2_000_000, help="events that Spark writes (default 2 million)"
    )
    parser.add_argument("--files", type=int, default=100_000, help="files of plans (default 100000)")
    parser.add_argument(
        "--whole-plans", type=int, default=1_000_000, help="files of whole plans (default 1 million)"
    )
    parser.add_argument(
        "--titles",
        type=int,
        nargs=2,
        default=(16, 25_000),
        metavar=("FILES", "ROWS"),
        help="files of Chinese titles, and titles of each (default 16 25000)",
    )
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--strategy", default="hilbert", help="order of the part pruning (default hilbert)")
    parser.add_argument("--order-by", default="host,path", help="its columns (default host,path)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
