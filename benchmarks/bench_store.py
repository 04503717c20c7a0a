#!/usr/bin/env python3
"""The figures of the table store: planning scans of many files, scans and writes next to Spark's own, merges.

Each is one JSON line on standard output. `--only` measures some parts only, `--rows` and `--files` make the
scanned table smaller, `--scale` the tables of TPC-H and TPC-DS, `--keys` those next to Paimon's own Spark
connector, whose jar LOCKGATE_PAIMON_SPARK_JAR names where Maven does not have it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from harness import describe_machine
from sessions import open_lake
from store import plans
from store.versus_paimon import versus_paimon

ROWS, FILES = 20_000_000, 200
REPETITIONS = 7
KEYS = 10_000_000
FORMATS = ("orc", "parquet")
PARTS = (
    *("plan", "spark-plan", "scan", "insert", "merge", "engines", "tpch", "shuffle-join", "vectors"),
    *("parquet", "streams", "tpcds", "paimon-core", "versus-paimon"),
)


def main() -> int:
    """Measure everything, or what is asked for."""
    arguments = _arguments()
    describe_machine()
    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-store-"))
    try:
        wanted = set(arguments.only)
        if wanted & {"plan", "spark-plan"}:
            plans.make_table(folder / "lake")
        if "plan" in wanted:
            plans.in_python(folder / "lake", arguments.repetitions)
        if wanted - {"plan", "versus-paimon"}:
            _with_spark(folder, wanted, arguments)
        if "versus-paimon" in wanted:
            # In processes of their own: two Sparks next to this one would not find memory enough.
            versus_paimon(folder / "versus-paimon", arguments.keys, arguments.repetitions)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _with_spark(folder: Path, wanted: set[str], arguments: argparse.Namespace) -> None:  # noqa: C901 - one branch for each benchmark
    from store import merges, paimon_core, scans, shuffle_joins, spark_plans, streams, tpcds, tpch, vectors

    # Spark broadcasts tables of millions of rows in queries of TPC-DS.
    lake = open_lake(folder, "4g" if "tpcds" in wanted else "2g", keys=tpch.KEYS)
    rows, files, repetitions = arguments.rows, arguments.files, arguments.repetitions
    try:
        if "spark-plan" in wanted:
            spark_plans.in_spark(lake, repetitions)
        if wanted & {"scan", "insert", "vectors"}:
            facts = scans.make_facts(lake, rows, files)
            if "scan" in wanted:
                scans.scan_ratios(facts, repetitions)
            if "insert" in wanted:
                scans.insert_ratio(facts, folder, repetitions)
            if "vectors" in wanted:
                vectors.scan_ratio(lake, facts.name, repetitions)
                vectors.delete_ratio(lake, facts.name, repetitions)
        if "parquet" in wanted:
            scans.scan_ratios(scans.make_facts(lake, rows, files, "parquet"), repetitions)
        if "merge" in wanted:
            merges.merge_read(lake, rows, repetitions)
        if "streams" in wanted:
            streams.stream_reads(lake, rows, repetitions)
        if "engines" in wanted:
            merges.engine_reads(lake, rows, repetitions)
        if "shuffle-join" in wanted:
            shuffle_joins.bloom_ratio(lake, repetitions)
        if "tpch" in wanted:
            tpch.tpch(lake, folder, arguments.scale, repetitions)
        if "paimon-core" in wanted:
            paimon_core.paimon_core(lake, folder, arguments.keys, repetitions)
        if "tpcds" in wanted:
            made = arguments.tpcds or folder / "tpcds"
            first, last = arguments.queries
            asked = range(first, last + 1)
            tpcds.tpcds(lake, folder, made, arguments.scale, arguments.formats, asked, repetitions)
    finally:
        lake.spark.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench store", description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=ROWS, help=f"rows of the scanned table (default {ROWS:,})"
    )
    parser.add_argument("--files", type=int, default=FILES, help=f"its files (default {FILES})")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="runs behind each median")
    parser.add_argument("--scale", type=float, default=1, help="scale of TPC-H (default 1, about 1 GB)")
    parser.add_argument("--tpcds", type=Path, help="folder that keeps the data of TPC-DS for the next run")
    parser.add_argument(
        "--queries", type=int, nargs=2, default=(1, 99), metavar=("FIRST", "LAST"), help="of TPC-DS"
    )
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS), help="of TPC-DS")
    parser.add_argument("--keys", type=int, default=KEYS, help=f"keys next to Paimon (default {KEYS:,})")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
