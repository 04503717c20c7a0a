"""Planning by the index database of a table of very many files, which are not there."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median

import numpy as np
import pyarrow as pa
from harness import emit, note, timed
from pyroaring import BitMap

from lockgate.framework.index.database.index_segments import KIND
from lockgate.framework.index.database.segment_collector import part_name
from lockgate.framework.index.database.segment_kinds import Values
from lockgate.framework.index.database.segment_pruner import ByIndex
from lockgate.framework.plugins import IndexFileChanges, NewIndexFile
from lockgate.framework.store import (
    Catalog,
    CommitMessage,
    DataFileMeta,
    Schema,
    SimpleStats,
    Table,
    indexed_fields,
)
from lockgate.framework.store.manifests import manifest_files
from lockgate.framework.store.manifests.parsed_cache import ParsedCache
from lockgate.framework.store.pruning.candidates import CandidateFiles
from lockgate.framework.types import STRING
from lockgate.pushdown import Predicate, col
from lockgate.pushdown.index import Files, PartContent, sorted_pairs, write_segment

BENCH = "index"
_FILES_A_MANIFEST = 10_000
ROWS = 250_000
VALUES_A_FILE = 20


def digest(number: int) -> str:
    """Return the value of a number."""
    return hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()


def make_table(warehouse: Path, files: int) -> Table:
    """Return a table of files with 20 hashes each, none of which two files share, in one segment."""
    catalog = Catalog(warehouse)
    catalog.create_namespace("b")
    options = {"index.values.columns": "md5", "index.write.enabled": "false"}
    table = catalog.create_table(
        "b.wide", Schema.from_arrow(pa.schema([("md5", pa.string())]), options=options)
    )
    names = [f"data-{number:08}-0000-4000-8000-0123456789ab-0.orc" for number in range(files)]
    note(f"plan: {files:,} files")
    step = max(10_000, files // 10)
    for first in range(0, files, step):
        made = tuple(_file(name) for name in names[first : first + step])
        table.commit([CommitMessage((), 0, -1, made, ())])
    table.commit_index(IndexFileChanges((_segment(table, names),)))
    return table


def _file(name: str) -> DataFileMeta:
    return DataFileMeta(name, 16_000_000, ROWS, value_stats_cols=(), creation_time_millis=1_700_000_000_000)


def _segment(table: Table, names: Sequence[str]) -> NewIndexFile:
    values = pa.array([digest(number) for number in range(len(names) * VALUES_A_FILE)])
    keys = Values().keys(values, STRING)
    places = np.repeat(np.arange(len(names), dtype=np.uint64), VALUES_A_FILE)
    every = BitMap(range(len(names)))
    content = PartContent(*sorted_pairs(keys, places), every, BitMap(), every)
    (indexed,) = indexed_fields(table.schema)
    sizes = np.full(len(names), ROWS)
    data = write_segment(Files(tuple(names), sizes, sizes), {part_name(indexed): content})
    return NewIndexFile(KIND, data, len(names))


def measure(table: Table, files: int, repetitions: int) -> None:
    """Print which files are left, and how long the index takes to say so, by time of the processor."""
    absent = [digest(-number) for number in range(1, 991)]
    present = [digest(number * VALUES_A_FILE * (files // 10)) for number in range(10)]
    questions = {"point": col("md5") == digest(7), "in_1000": col("md5").isin([*absent, *present])}
    goals = {"point": 5, "in_1000": 50}
    for name, question in questions.items():
        kept = sum(len(split.files) for split in table.scan(question).splits)
        emit(BENCH, f"{name}_files_kept", kept, "files", 1 if name == "point" else 12)
        emit(BENCH, f"{name}_plan_ms", _answer_milliseconds(table, question, repetitions), "ms", goals[name])


def measure_whole_plans(table: Table, files: int, repetitions: int) -> None:
    """Print what whole plans take once manifests are in memory, and the most memory of this process."""
    point = col("md5") == digest(7)
    kept = table.scan(point).splits
    assert sum(len(split.files) for split in kept) == 1
    named = f"plan_{files // 1000}k_files"
    for metric, question, goal in (("point_s", point, 0.02), ("warm_s", None, 1.5)):
        took = [timed(partial(table.scan, question), time.process_time) for _ in range(repetitions)]
        emit(BENCH, f"{named}_{metric}", median(took), "s", goal if files >= 1_000_000 else None)
    emit(BENCH, f"{named}_memory_mb", getrusage(RUSAGE_SELF).ru_maxrss / 1024, "MB")


def measure_cold_plans(warehouse: Path, files: int) -> None:
    """Print what the first plan of a range of times takes, with and without bounds of whole manifests."""
    catalog = Catalog(warehouse)
    catalog.create_namespace("b")
    start = datetime.datetime(2026, 1, 1)
    times = [start + datetime.timedelta(minutes=number) for number in range(files + 1)]
    took = {}
    for name, options in (("plain", {}), ("bounds", {"index.bounds.columns": "at"})):
        columns = pa.schema([("at", pa.timestamp("us"))])
        table = catalog.create_table(f"b.{name}", Schema.from_arrow(columns, options=options))
        for first in range(0, files, _FILES_A_MANIFEST):
            made = tuple(
                dataclasses.replace(
                    _file(f"data-{name}-{number:08}-0.orc"),
                    value_stats=SimpleStats((times[number],), (times[number + 1],), (0,)),
                    value_stats_cols=None,
                )
                for number in range(first, min(first + _FILES_A_MANIFEST, files))
            )
            table.commit([CommitMessage((), 0, -1, made, ())])
        wanted = (col("at") >= times[files // 2]) & (col("at") < times[files // 2 + 60])
        for cache in ("_manifests", "_snapshots"):
            setattr(manifest_files, cache, ParsedCache(10_000_000))
        kept: list[int] = []
        took[name] = timed(
            lambda table=table, wanted=wanted, kept=kept: kept.append(
                sum(len(split.files) for split in table.scan(wanted).splits)
            ),
            time.process_time,
        )
        assert kept[0] in (61, 62), kept
        emit(BENCH, f"cold_range_plan_{files // 1000}k_files_{name}_s", took[name], "s")
    emit(BENCH, "cold_range_plan_ratio", took["bounds"] / took["plain"], "ratio", 0.1)


def _answer_milliseconds(table: Table, question: Predicate, repetitions: int) -> float:
    """Return what the step `index` alone takes."""
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    files = CandidateFiles(table.manifests.files(snapshot), snapshot.index_manifest, table.schema.id)
    ByIndex(table).keep_files(question, files)
    took = [
        timed(lambda: ByIndex(table).keep_files(question, files), time.process_time)
        for _ in range(repetitions)
    ]
    return 1000 * median(took)
