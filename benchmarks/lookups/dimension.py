"""The dimension that lookups are measured on, and the keys it is asked for."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from harness import note

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureContext, call
from lockgate.pushdown import col

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("t", pa.timestamp("us")),
        ("d", pa.decimal128(18, 2)),
        ("s", pa.string()),
        ("u", pa.string()),
    ]
)
VALUES = tuple(SCHEMA.names[1:])
BUCKETS = 2
# One in so many keys is not in the table.
MISS_EVERY = 10
_WRITE_ROWS = 1_000_000
# A large table has more, and larger files, of which none has keys of another's range.
_LARGE_BUCKETS, _LARGE_WRITE_ROWS = 16, 5_000_000
_WRITERS = 2
_ZIPF = 1.3

Keys = Literal["uniform", "zipf"]


def rows(ids: Any, salt: int = 0) -> pa.Table:
    """Rows of eight columns, about 90 bytes each, with nulls; `salt` tells versions of a row apart."""
    n = len(ids)
    text = pa.array(ids).cast(pa.string())
    nulls = pa.array(ids % 10 == 3)
    values = [
        pa.array(ids),
        pa.array((ids % 1000).astype(np.int32)),
        pa.array(ids * 1.5 + salt),
        pa.array(ids / 7, mask=ids % 10 == 3),
        pa.array(ids * 1_000_003, pa.timestamp("us")),
        pa.array(ids % 100_000, pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 2)),
        pa.compute.binary_join_element_wise("name of ", text, ""),
        pa.compute.if_else(nulls, pa.scalar(None, pa.string()), pa.array(["some text"] * n)),
    ]
    return pa.table(values, schema=SCHEMA)


def make_dimension(
    catalog: Catalog, name: str, count: int, options: Mapping[str, str] | None = None, step: int = 1
) -> Table:
    """A compacted primary-key table of `count` ids: 0, `step`, twice `step` and so on."""
    if catalog.table_exists(name):
        table = catalog.load_table(name)
        newest = table.latest_snapshot()
        if newest is not None and newest.total_record_count == count:
            return table  # a run before has kept it
        catalog.drop_table(name)
    note(f"dimension {name}: writing and compacting {count:,} rows")
    given = {"bucket": str(BUCKETS), **(options or {})}
    table = catalog.create_table(name, Schema.from_arrow(SCHEMA, primary_keys=("id",), options=given))
    for start in range(0, count, _WRITE_ROWS):
        table.append(rows(np.arange(start, min(count, start + _WRITE_ROWS)) * step))
    call(ProcedureContext(catalog), "compact", table=name)
    return catalog.load_table(name)


def make_large_dimension(warehouse: Path, name: str, count: int) -> Table:
    """The same rows in as many files as a table of this size has; only what a run before has not written.

    Each commit has a range of ids of its own, so no compaction has anything to merge.
    """
    catalog = Catalog(warehouse)
    catalog.create_namespace("b", ignore_if_exists=True)
    if not catalog.table_exists(name):
        schema = Schema.from_arrow(
            SCHEMA, primary_keys=("id",), options={"bucket": str(_LARGE_BUCKETS), "write-only": "true"}
        )
        catalog.create_table(name, schema)
    table = catalog.load_table(name)
    every = range(0, count, _LARGE_WRITE_ROWS)
    written = set(table.read(predicate=col("id").isin(every), columns=["id"]).column("id").to_pylist())
    starts = [start for start in every if start not in written]
    if starts:
        note(f"dimension {name}: writing {len(starts)} of {len(every)} commits")
        context = multiprocessing.get_context("spawn")
        with context.Pool(_WRITERS) as pool:
            ranges = [(warehouse, name, start, min(count, start + _LARGE_WRITE_ROWS)) for start in starts]
            pool.starmap(_append_range, ranges, chunksize=1)
    return catalog.load_table(name)


def _append_range(warehouse: Path, name: str, start: int, end: int) -> None:
    Catalog(warehouse).load_table(name).append(rows(np.arange(start, end)))


def keys(distribution: Keys, count: int, size: int, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """`size` ids, most of them of the table's `count`, one in `MISS_EVERY` of none.

    By Zipf's law the few most wanted ids are spread over the table.
    """
    random = np.random.default_rng(seed)
    if distribution == "uniform":
        drawn = random.integers(0, count, size)
    else:
        drawn = random.zipf(_ZIPF, size) * 7_919 % count
    missing = random.random(size) < 1 / MISS_EVERY
    return np.where(missing, drawn + count, drawn)


def batch(ids: Any) -> pa.RecordBatch:
    """The ids as a batch to look up."""
    return pa.RecordBatch.from_arrays([pa.array(ids)], ["id"])


def in_folder(folder: Path, measure: Callable[[Path], None]) -> None:
    """Measure in a folder that is removed afterwards, for large files add up."""
    folder.mkdir(parents=True)
    try:
        measure(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
