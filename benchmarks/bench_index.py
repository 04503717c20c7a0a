#!/usr/bin/env python3
"""The figures of the index database: its size, what it adds to writes, what it leaves out, its plans, and
hunts in Spark next to Spark without it and DuckDB.

Each is one JSON line on standard output. Plans are of a table of 100,000 files of which only metadata is
there. Times of plans are those of the processor, since other work on the machine must not count.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from harness import describe_machine, emit, interleaved, note, ratio
from index import curves, planning, queries, ranges
from index.events import SCHEMA, Events

from lockgate.framework.index.database.maintenance import MergeIndex
from lockgate.framework.index.database.segments import entries_of, opened
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureContext
from lockgate.pushdown import Predicate, col

BENCH = "index"
GOALS = {"host": 0.001, "user": 0.001, "md5": 0.006}


def main() -> int:
    """Measure everything."""
    parser = argparse.ArgumentParser(prog="./dev bench index", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="events (default 10 million)")
    parser.add_argument("--rows-a-file", type=int, default=250_000, help="rows of a file (default 250000)")
    parser.add_argument("--files", type=int, default=100_000, help="files of plans (default 100000)")
    parser.add_argument(
        "--whole-plans", type=int, default=1_000_000, help="files of whole plans (default 1 million)"
    )
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--no-spark", action="store_true", help="leave out queries in Spark and DuckDB")
    arguments = parser.parse_args()
    describe_machine()
    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-index-"))
    try:
        table, rare = _events(folder / "lake", arguments.rows, arguments.rows_a_file, arguments.repetitions)
        files = sorted(Path(table.location).rglob("data-*.orc"))
        ranges.measure(files, folder / "ranges", arguments.repetitions)
        if not arguments.no_spark:
            queries.measure(folder, table, rare, arguments.repetitions)
        wide = planning.make_table(folder / "wide", arguments.files)
        planning.measure(wide, arguments.files, arguments.repetitions)
        many = wide
        if arguments.whole_plans != arguments.files:
            many = planning.make_table(folder / "many", arguments.whole_plans)
        planning.measure_whole_plans(many, arguments.whole_plans, arguments.repetitions)
        curves.measure(arguments.repetitions)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _events(folder: Path, rows: int, rows_a_file: int, repetitions: int) -> tuple[Table, list[str]]:
    catalog, events = Catalog(folder), Events()
    catalog.create_namespace("b")
    first = next(events.files(rows_a_file, rows_a_file))
    plain = _table(catalog, "plain", {})
    two = _table(catalog, "two", {"index.values.columns": "host,md5"})
    took = interleaved(
        {"plain": lambda: plain.append(first), "two": lambda: two.append(first)},
        repetitions,
        clock=time.process_time,
    )
    emit(BENCH, "write_ratio_two_columns", ratio(took["two"], took["plain"]), "ratio", 1.05)
    options = {"index.values.columns": "host,user,md5", "index.ngrams.columns": "command,path"}
    table = _table(catalog, "events", {**options, "index.merge-at": str(rows // rows_a_file)})
    for number, each in enumerate(events.files(rows, rows_a_file)):
        table.append(each)
        note(f"{(number + 1) * rows_a_file:,} events")
    MergeIndex().call(ProcedureContext(catalog), table="b.events", dry_run=False)
    rare = _rare(first, events.hashes)
    _sizes(table)
    _pruned(table, "like_absent_files_opened", col("command").contains("no such tool"), 0)
    _pruned(table, "like_program_files_opened", col("command").contains("\\agent"), None)
    _pruned(table, "values_rare_files_opened", col("md5") == rare[0], 1)
    return table, rare


def _rare(rows: pa.Table, usual: pa.Array) -> list[str]:
    """Return hashes that come once."""
    rare = rows["md5"].filter(pc.invert(pc.is_in(rows["md5"], usual)))
    return [str(each) for each in rare[:100].to_pylist()]


def _table(catalog: Catalog, name: str, options: dict[str, str]) -> Table:
    given = {"target-file-size": "1 gb", **options}
    return catalog.create_table(f"b.{name}", Schema.from_arrow(SCHEMA, options=given))


def _sizes(table: Table) -> None:
    """Print what each part of the index takes of the data's bytes."""
    snapshot = table.latest_snapshot()
    data = sum(entry.file.file_size for entry in table.manifests.live_files(snapshot))
    sizes: dict[str, int] = {}
    for entry in entries_of(table, snapshot):
        segment = opened(table, entry)
        for part, content in segment.parts.items() if segment is not None else ():
            name = next(each.name for each in table.schema.fields if each.id == part.field)
            sizes[f"{part.kind}_{name}"] = sizes.get(f"{part.kind}_{name}", 0) + content.size
    emit(BENCH, "data_bytes", data, "bytes")
    for name, size in sizes.items():
        kind, column = name.split("_", 1)
        emit(BENCH, f"{kind}_index_share_{column}", size / data, "ratio", GOALS.get(column))


def _pruned(table: Table, metric: str, question: Predicate, goal: float | None) -> None:
    emit(BENCH, metric, sum(len(split.files) for split in table.scan(question).splits), "files", goal)


if __name__ == "__main__":
    sys.exit(main())
