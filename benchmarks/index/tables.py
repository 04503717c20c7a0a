"""The table of events that the benchmark of indexes asks, its size, and what an index adds to writes."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from harness import emit, interleaved, note, ratio

from index.events import SCHEMA, TOOLS, Events
from lockgate.framework.index.database.index_segments import entries_of, opened
from lockgate.framework.index.database.maintenance import MergeIndex
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureContext
from lockgate.pushdown import Predicate, col

BENCH = "index"
GOALS = {"host": 0.001, "user": 0.001, "md5": 0.006}
INDEXED = {
    "index.values.columns": "host,user,ip,domain,path,md5",
    "index.ngrams.columns": "command,path",
}


def catalog_in(folder: Path) -> Catalog:
    """Return the catalog of a warehouse, with a namespace."""
    catalog = Catalog(folder)
    if not (folder / "b.db").exists():
        catalog.create_namespace("b")
    return catalog


def make_events(folder: Path, rows: int, rows_a_file: int) -> Table:
    """Return the indexed events of a warehouse; they are written if it has none."""
    catalog = catalog_in(folder)
    if (folder / "b.db" / "events").exists():
        return catalog.load_table("b.events")
    # A block has as many rows before an order of them as afterwards.
    options = {"index.merge-at": str(rows // rows_a_file), "index.block-rows": str(rows_a_file)}
    table = make_table(catalog, "events", {**INDEXED, **options})
    for number, each in enumerate(Events().files(rows, rows_a_file)):
        table.append(each)
        note(f"{(number + 1) * rows_a_file:,} events")
    MergeIndex().call(ProcedureContext(catalog), table="b.events", dry_run=False)
    return table


def make_table(catalog: Catalog, name: str, options: dict[str, str]) -> Table:
    """Make a table of events that puts each append into one file."""
    given = {"target-file-size": "1 gb", **options}
    return catalog.create_table(f"b.{name}", Schema.from_arrow(SCHEMA, options=given))


def first_events(rows: int) -> pa.Table:
    """Return the first events, as many as one file has."""
    return next(Events().files(rows, rows))


def rare_hashes(rows: pa.Table) -> list[str]:
    """Return hashes that come once."""
    rare = rows["md5"].filter(pc.invert(pc.is_in(rows["md5"], Events().hashes)))
    return [str(each) for each in rare[:100].to_pylist()]


def measure_writes(folder: Path, rows_a_file: int, repetitions: int) -> None:
    """Print what an index of two columns adds to an append, by time of the processor."""
    catalog, rows = catalog_in(folder), first_events(rows_a_file)
    plain = make_table(catalog, "plain", {})
    two = make_table(catalog, "two", {"index.values.columns": "host,md5"})
    runs = {"plain": lambda: plain.append(rows), "two": lambda: two.append(rows)}
    took = interleaved(runs, repetitions, clock=time.process_time)
    emit(BENCH, "write_ratio_two_columns", ratio(took["two"], took["plain"]), "ratio", 1.05)


def measure_sizes(table: Table, rare: list[str]) -> None:
    """Print what each part of the index takes of the data's bytes, and the files that some searches open."""
    snapshot = table.latest_snapshot()
    live = table.manifests.live_files(snapshot)
    data = sum(entry.file.file_size for entry in live)
    sizes: dict[str, int] = {}
    for entry in entries_of(table, snapshot):
        segment = opened(table, entry)
        for part, content in segment.parts.items() if segment is not None else ():
            name = next(each.name for each in table.schema.fields if each.id == part.field)
            sizes[f"{part.kind}_{name}"] = sizes.get(f"{part.kind}_{name}", 0) + content.size
    emit(BENCH, "data_bytes", data, "bytes")
    emit(BENCH, "data_bytes_a_row", data / sum(entry.file.row_count for entry in live), "bytes")
    for name, size in sizes.items():
        kind, column = name.split("_", 1)
        goal = GOALS.get(column) if kind == "values" else None
        emit(BENCH, f"{kind}_index_share_{column}", size / data, "ratio", goal)
    files = len(live)
    opened_of = {
        "like_absent_files_opened": (col("command").contains("no such tool"), 0),
        "values_rare_files_opened": (col("md5") == rare[0], 1),
    }
    for metric, (question, goal) in opened_of.items():
        emit(BENCH, metric, _files(table, question), "files", goal)
    # Hunters type names of tools that few events have, and of programs that many files have.
    for metric, texts in (("like_rare_pruned", TOOLS), ("like_program_pruned", ["agent2", "vault1"])):
        left = [_files(table, col("command").contains(text)) / files for text in texts]
        emit(BENCH, metric, 1 - sum(left) / len(left), "ratio")


def _files(table: Table, question: Predicate) -> int:
    return sum(len(split.files) for split in table.scan(question).splits)
