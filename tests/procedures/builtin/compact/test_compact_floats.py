"""Compaction where partitions are NaN and keys are zeros of either sign."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lockgate.framework.store import Catalog, Schema, Table

Run = Callable[..., Any]


def _table(catalog: Catalog, **options: Any) -> Table:
    columns = pa.schema([("f", pa.float64()), ("id", pa.int64())])
    return catalog.create_table("db.floats", Schema.from_arrow(columns, **options))


def _rows(ids: list[int], floats: list[float]) -> pa.Table:
    return pa.table({"f": pa.array(floats, pa.float64()), "id": pa.array(ids, pa.int64())})


def _ids(catalog: Catalog) -> list[int]:
    return sorted(catalog.load_table("db.floats").read()["id"].to_pylist())


def test_files_of_a_partition_of_nan_are_compacted(catalog: Catalog, run: Run) -> None:
    table = _table(catalog, partition_keys=("f",))
    for number in range(6):
        table.append(_rows([number], [float("nan")]))
    run("compact", table="db.floats")
    compacted = catalog.load_table("db.floats")
    (entry,) = compacted.manifests.live_files(compacted.latest_snapshot())
    assert math.isnan(entry.partition[0])
    assert _ids(catalog) == [0, 1, 2, 3, 4, 5]


def test_a_deleted_zero_stays_deleted(catalog: Catalog, run: Run) -> None:
    table = _table(catalog, primary_keys=("f",), options={"bucket": "1"})
    table.append(_rows([1, 2], [-0.0, 1.0]))
    table.append(_rows([3], [0.0]))
    table.delete(pa.table({"f": pa.array([0.0])}))
    run("compact", table="db.floats")
    assert _ids(catalog) == [2]
