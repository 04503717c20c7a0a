#!/usr/bin/env python3
"""The figures of lookup joins: rates, builds, streams next to Spark's own joins, refreshes; and a soak.

Each is one JSON line on standard output. `--only` measures some parts only; `--large` makes the large
dimension smaller. `--huge` also measures partial caches on a table of so many rows; `--keep` names a
folder that keeps the tables for the next run. `--soak` runs the soak instead of everything else.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from harness import REPETITIONS, describe_machine

from lockgate.framework.store import Catalog

SMALL, LARGE = 1_000_000, 10_000_000
SIZES = (10_000, 100_000, 1_000_000)
SOAK_MINUTES = 10.0
PARTS = (
    "rates",
    "sealing",
    "hot-rows",
    "build",
    "streams",
    "cached",
    "refresh",
    "p99",
    "parsing",
    "small",
    "partial",
)


def main() -> int:
    """Measure everything, or what is asked for."""
    arguments = _arguments()
    describe_machine()
    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="lockgate-bench-lookup-"))
    try:
        if arguments.soak:
            return _soak(folder, arguments.minutes)
        catalog = Catalog(folder / "lake")
        catalog.create_namespace("b", ignore_if_exists=True)
        for label, rows in (("1m", arguments.small), ("10m", arguments.large)):
            if rows:
                _measure(catalog, folder, label, rows, arguments)
        if arguments.huge:
            _huge(folder, arguments)
    finally:
        if arguments.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _measure(catalog: Catalog, folder: Path, label: str, rows: int, arguments: argparse.Namespace) -> None:
    from lookups import builds, hot_rows, partial, rates, sealed_rows
    from lookups.dimension import make_dimension

    name, wanted, repetitions = f"b.dimension_{label}", set(arguments.only), arguments.repetitions
    table = make_dimension(catalog, name, rows)
    if "build" in wanted:
        for cache in arguments.caches:
            builds.build_times(folder / "lake", name, rows, label, cache, 3)
    if "rates" in wanted:
        for cache in arguments.caches:
            rates.rates(table, rows, label, cache, folder, repetitions)
            if label == "1m":
                rates.misses(table, rows, cache, folder, repetitions)
    if "sealing" in wanted:
        sealed_rows.sealed_rows(folder / "lake", name, rows, label, folder, repetitions)
    if "partial" in wanted:
        partial.partial_cache(catalog, table, rows, label, folder, repetitions)
        if label == "1m":
            partial.misses_among_keys(catalog, rows, repetitions)
    if "hot-rows" in wanted:
        hot_rows.hot_rows(catalog, table, rows, label, folder, repetitions)
    once = label == "1m" and wanted & {"parsing", "small"}
    if once or wanted & {"streams", "cached", "refresh", "p99"}:
        _with_spark(folder, name, label, rows, wanted, arguments)


def _huge(folder: Path, arguments: argparse.Namespace) -> None:
    from lookups.dimension import make_dimension, make_large_dimension
    from lookups.partial import partial_cache

    warehouse = folder / "huge"
    table = make_large_dimension(warehouse, "b.huge", arguments.huge)
    catalog = Catalog(folder / "whole")
    catalog.create_namespace("b", ignore_if_exists=True)
    smaller = make_dimension(catalog, "b.smaller", SMALL), SMALL
    label, repetitions = f"{arguments.huge // 1_000_000}m", arguments.repetitions
    partial_cache(Catalog(warehouse), table, arguments.huge, label, folder, repetitions, smaller)


def _with_spark(
    folder: Path, name: str, label: str, rows: int, wanted: set[str], arguments: argparse.Namespace
) -> None:
    from lookups import refreshes, small, statements, streams
    from sessions import open_lake

    lake = open_lake(folder, memory="8g")
    repetitions = arguments.repetitions
    try:
        if "parsing" in wanted and label == "1m":
            statements.parse_overhead(lake, repetitions)
        if "small" in wanted and label == "1m":
            small.small_dimensions(lake, folder, repetitions)
        if "streams" in wanted:
            cases = [(size, keys) for size in arguments.sizes for keys in arguments.keys]
            streams.versus_spark(lake, name, rows, label, folder, cases, repetitions)
        if "cached" in wanted:
            streams.versus_cached(lake, name, rows, label, folder, 100_000, repetitions)
        if "refresh" in wanted:
            refreshes.refresh_times(lake, name, rows, label, folder, repetitions)
        if "p99" in wanted and label == "1m":
            refreshes.disturbance(lake, name, rows, folder)
    finally:
        lake.spark.stop()


def _soak(folder: Path, minutes: float) -> int:
    from lookups.soak import soak
    from sessions import open_lake

    lake = open_lake(folder)
    try:
        return 1 if soak(lake, folder, minutes) else 0
    finally:
        lake.spark.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench lookup", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    parser.add_argument(
        "--caches", nargs="+", choices=("full", "memory"), default=["full", "memory"], help="kinds of caches"
    )
    parser.add_argument("--small", type=int, default=SMALL, help="rows of the small dimension; 0: none")
    parser.add_argument("--large", type=int, default=LARGE, help="rows of the large dimension; 0: none")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=list(SIZES), help="rows of a batch, for streams"
    )
    parser.add_argument(
        "--keys", nargs="+", choices=("uniform", "zipf"), default=["uniform", "zipf"], help="keys of streams"
    )
    parser.add_argument("--huge", type=int, default=0, help="rows of a table for partial caches")
    parser.add_argument("--keep", type=Path, help="folder that keeps the tables for the next run")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="runs behind each median")
    parser.add_argument("--soak", action="store_true", help="run the soak instead")
    parser.add_argument("--minutes", type=float, default=SOAK_MINUTES, help="how long the soak takes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
