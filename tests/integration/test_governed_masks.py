"""A mask of a policy gives the same by Python as in a query of Spark, for values of every type."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from governed_world import World
from ranger_world import allow, mask

from lockgate.framework.access import Principal
from lockgate.framework.store import Catalog, Schema

if TYPE_CHECKING:
    from lockgate import Lake

D = decimal.Decimal
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [0, 99, -99, 100, -128]),
    "small": (pa.int16(), [0, 9999, -9999, 10000, -(2**15)]),
    "whole": (pa.int32(), [0, 10**9 - 1, 1 - 10**9, 10**9, -(2**31)]),
    "big": (pa.int64(), [-42, 10**18 - 1, 1 - 10**18, 10**18, -(2**63)]),
    "single": (pa.float32(), [0.0, 1.5, float("nan"), float("inf")]),
    "double": (pa.float64(), [0.5, -1.0, 123.456]),
    "money": (pa.decimal128(10, 2), [D("1.50"), D("-99.99")]),
    "word": (pa.string(), ["Ab1 $.", "ß–é«x»", "", "東京🙂", "12-34"]),
    "blob": (pa.binary(), [b"", b"abc"]),
    "day": (pa.date32(), [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.date(1, 1, 1)]),
    "wall": (pa.timestamp("us"), [datetime.datetime(2024, 12, 31, 23, 59, 59, 5)]),
    "list": (pa.list_(pa.int32()), [[1, 22], []]),
    "parts": (pa.struct([("a", pa.string())]), [{"a": "x1"}]),
}
ROWS = max(len(values) for _, values in VALUES.values()) + 1


@pytest.mark.parametrize("name", ["MASK", "MASK_HASH", "MASK_NULL"])
def test_python_masks_as_spark_does(
    world: World, lake: Lake, lake_folder: Path, table: Callable[[str], str], name: str
) -> None:
    full = table(f"masks_{name.lower()}")
    rows = pa.table(
        {
            column: pa.array([*values, *[None] * (ROWS - len(values))], kind)
            for column, (kind, values) in VALUES.items()
        }
    )
    short = full.removeprefix("lake.")
    lake.catalog.create_table(short, Schema.from_arrow(rows.schema)).append(rows)
    world.put(
        allow(f"{full}.*", users=["ann"]),
        *(mask(f"{full}.{column}", name, users=["ann"]) for column in VALUES),
    )
    plain = Catalog(str(lake_folder / "warehouse"), principal=Principal("ann"))
    by_python = [tuple(row.values()) for row in plain.load_table(short).read().to_pylist()]
    assert sorted(map(repr, by_python)) == sorted(
        repr(tuple(bytes(each) if isinstance(each, bytearray) else each for each in row))
        for row in world.session("ann").table(full).collect()
    )
    assert by_python != [tuple(row.values()) for row in rows.to_pylist()]
