"""What searches of one or two columns leave out, before and after a compaction along Hilbert's curve.

The unit is the block of rows of the index database, which are the bytes that a search does not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
from harness import emit, note

from index.events import Events
from lockgate.framework.index.database.maintenance import BuildIndex, MergeIndex
from lockgate.framework.index.database.segment_pruner import ByIndex
from lockgate.framework.store import Catalog, Table, candidate_of
from lockgate.procedures import ProcedureContext
from lockgate.procedures.builtin.compact.compact import Compact
from lockgate.pushdown import Predicate, col

BENCH = "index"
QUERIES = 250
SEARCHED = ("host", "user", "ip", "domain", "path", "md5")


def questions(rows: pa.Table, kind: str, seed: int = 5) -> Iterator[Predicate]:
    """Yield searches by one or two of time and six columns.

    Values are those of random rows (`common`) or random ones of all distinct values (`rare`).
    """
    chance = np.random.default_rng(seed)
    values = {name: rows[name].drop_null() for name in SEARCHED}
    if kind == "rare":
        values = {name: column.unique() for name, column in values.items()}
    for _ in range(QUERIES):
        names = chance.choice(("ts", *SEARCHED), int(chance.integers(1, 3)), replace=False)
        yield reduce(and_, (_one(rows, values, str(name), chance) for name in names))


def _one(
    rows: pa.Table, values: dict[str, pa.ChunkedArray], name: str, chance: np.random.Generator
) -> Predicate:
    if name == "ts":
        start = rows["ts"][int(chance.integers(len(rows)))].as_py()
        return (col("ts") >= start) & (col("ts") < start + timedelta(hours=float(chance.uniform(1, 24))))
    return col(name) == values[name][int(chance.integers(len(values[name])))].as_py()


def rates(table: Table, asked: list[Predicate]) -> np.ndarray:
    """Return which share of the rows each search leaves out."""
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    total = sum(entry.file.row_count for entry in table.manifests.live_files(snapshot))
    index = ByIndex(table)
    found = []
    for question in asked:
        left = 0
        for split in table.scan(question).splits:
            for file in split.files:
                candidate = candidate_of(table, table.schema, (), 0, file, snapshot.index_manifest)
                rows = index.rows(question, candidate)
                left += file.row_count if rows is None else len(rows)
        found.append(1 - left / total)
    return np.array(found)


def measure(catalog: Catalog, table: Table, strategy: str, columns: str) -> None:
    """Print the rates as the rows arrived, order them, and print the rates again."""
    sample = pa.concat_tables(list(Events().files(2_000_000, 250_000))[::4])
    asked = {kind: list(questions(sample, kind)) for kind in ("common", "rare")}
    _print(table, asked, "before")
    context = ProcedureContext(catalog)
    name = str(table.identifier)
    note(f"order by {strategy} of {columns}")
    given = {"order_strategy": strategy, "order_by": columns}
    (row,) = Compact().call(context, **(_defaults() | {"table": name} | given))
    note(f"shares by bounds: {row[-3:]}")
    BuildIndex().call(context, table=name, dry_run=False)
    MergeIndex().call(context, table=name, dry_run=False)
    _print(table, asked, "after")


def _defaults() -> dict[str, object]:
    return {each.name: each.default for each in Compact.parameters}


def _print(table: Table, asked: dict[str, list[Predicate]], when: str) -> None:
    for kind, each in asked.items():
        found = rates(table, each)
        prefix = "prune" if kind == "common" else "prune_rare"
        goals = (0.87, 0.85) if when == "after" else (None, None)
        emit(BENCH, f"{prefix}_p5_{when}", float(np.percentile(found, 5)), "ratio", goals[0])
        emit(BENCH, f"{prefix}_share_over_90_{when}", float(np.mean(found > 0.9)), "ratio", goals[1])
        emit(BENCH, f"{prefix}_mean_{when}", float(np.mean(found)), "ratio")
