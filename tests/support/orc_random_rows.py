"""Random tables of every flat type, and random predicates on them."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lockgate.pushdown import AlwaysFalse, AlwaysTrue, Comparison, Not, Op, Predicate, all_of, any_of

WORDS = ["apple", "banana", "cherry", "été", "", "zz", "zzz", "a" * 1200, "a" * 1200 + "b"]
MICROS = 10**6
_ORDERED = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ_NULL_SAFE]
_TEXT = [Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS]

Maker = Callable[[random.Random], Any]
FLAT: dict[str, tuple[pa.DataType, Maker]] = {
    "flag": (pa.bool_(), lambda r: r.random() < 0.5),
    "tiny": (pa.int8(), lambda r: r.choice([1, 1, 1, r.randrange(-128, 128)])),
    "small": (pa.int16(), lambda r: r.randrange(-3000, 3000)),
    "int": (pa.int32(), lambda r: r.choice([5, 5, 5, r.randrange(-(2**31), 2**31)])),
    "big": (pa.int64(), lambda r: r.choice([7, r.randrange(100), r.randrange(-(2**63), 2**63)])),
    # Mostly small with rare outliers: what the writer stores as patched runs.
    "patched": (pa.int64(), lambda r: r.randrange(50) if r.random() < 0.95 else r.randrange(10**12)),
    "float": (pa.float32(), lambda r: r.choice([math.nan, -0.0, 0.0, 0.1, r.uniform(-9, 9), math.inf])),
    "double": (pa.float64(), lambda r: r.choice([math.nan, -0.0, 0.0, 0.1, r.gauss(0, 9), -math.inf])),
    "text": (pa.string(), lambda r: r.choice([*WORDS, f"{r.randrange(999):03d}" * r.randrange(9)])),
    "word": (pa.string(), lambda r: r.choice(WORDS[:6])),
    "raw": (pa.binary(), lambda r: r.randbytes(r.randrange(12))),
    "day": (pa.date32(), lambda r: datetime.date(1931, 1, 1) + datetime.timedelta(r.randrange(40_000))),
    "moment": (pa.timestamp("us"), lambda r: r.randrange(2 * 10**15)),
    "early": (pa.timestamp("us"), lambda r: r.randrange(-62 * 10**15, -MICROS)),
    "instant": (pa.timestamp("us", "UTC"), lambda r: r.randrange(2 * 10**15) // 10**3 * 10**3),
    "amount": (pa.decimal128(12, 2), lambda r: Decimal(r.randrange(-(10**6), 10**6)).scaleb(-2)),
    "huge": (pa.decimal128(38, 6), lambda r: Decimal(r.randrange(-(10**30), 10**30)).scaleb(-6)),
}


def column(rng: random.Random, name: str, rows: int, *, ordered: bool = False) -> pa.Array:
    """Random values of one of `FLAT`, some null; `ordered` ones are clustered, so that statistics exclude."""
    type_, make = FLAT[name]
    nulls = rng.choice([0.0, 0.0, 0.1, 0.9])
    drawn = [None if rng.random() < nulls else make(rng) for _ in range(rows)]
    array = pa.array(drawn, type_)
    if ordered:
        array = array.take(pa.compute.sort_indices(array))
    if rng.random() < 0.3 and rows:  # a stretch of nulls, as long as several row groups
        start = rng.randrange(rows)
        mask = pa.array([start <= row < start + rows // 2 for row in range(rows)])
        array = pa.compute.if_else(mask, pa.scalar(None, type_), array)
    return array


def table(rng: random.Random, rows: int, names: list[str]) -> pa.Table:
    """A table with a running `id` and the columns `names` of `FLAT`."""
    columns: dict[str, Any] = {"id": pa.array(range(rows), pa.int64())}
    for name in names:
        columns[name] = column(rng, name, rows, ordered=rng.random() < 0.5)
    return pa.table(columns)


def literal(rng: random.Random, values: pa.ChunkedArray, name: str) -> pa.Scalar:
    """Most often one of the column's values, else one that might be, or null."""
    type_ = values.type
    if rng.random() < 0.05:
        return pa.scalar(None, type_)
    if len(values) and rng.random() < 0.7:
        return values[rng.randrange(len(values))]
    if name == "id":
        return pa.scalar(rng.randrange(-5, len(values) + 5), type_)
    return pa.scalar(FLAT[name][1](rng), type_)


def comparison(rng: random.Random, rows: pa.Table) -> Predicate:
    """A random comparison that suits the type of a random column."""
    name = rng.choice(rows.schema.names)
    values = rows[name]
    kind = rng.random()
    if kind < 0.1:
        return Comparison(rng.choice([Op.IS_NULL, Op.IS_NOT_NULL]), (name,))
    if kind < 0.3:
        picks = tuple(literal(rng, values, name) for _ in range(rng.randrange(4)))
        return Comparison(Op.IN, (name,), picks)
    if pa.types.is_string(values.type) and kind < 0.6:
        text = rng.choice(WORDS)
        part = text[: rng.randrange(len(text) + 1)] if rng.random() < 0.8 else "no such text"
        node = Comparison(rng.choice(_TEXT), (name,), (pa.scalar(part),))
        return Not(node) if rng.random() < 0.3 else node
    return Comparison(rng.choice(_ORDERED), (name,), (literal(rng, values, name),))


def predicate(rng: random.Random, rows: pa.Table, depth: int = 2) -> Predicate:
    """A random tree of comparisons."""
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return comparison(rng, rows)
    if kind < 0.4:
        return rng.choice([AlwaysTrue(), AlwaysFalse()])
    if kind < 0.55:
        return Not(predicate(rng, rows, depth - 1))
    parts = [predicate(rng, rows, depth - 1) for _ in range(rng.randrange(1, 4))]
    return all_of(*parts) if kind < 0.8 else any_of(*parts)


def plain(rows: pa.Table) -> pa.Table:
    """The rows in a form in which NaN equals NaN, but -0.0 does not equal 0.0."""
    rows = rows.combine_chunks()
    for index, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            bits = pa.int32() if field.type == pa.float32() else pa.int64()
            values = pa.chunked_array([chunk.view(bits) for chunk in rows.column(index).chunks], bits)
            rows = rows.set_column(index, field.name, values)
    return rows
