"""Merge engines both ways: rows that both write in turn are the same to both, and after compactions."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from both_engines import Both
from datasketches import hll_sketch, update_theta_sketch
from exact_rows import exact_rows, in_order
from paimon_java import PaimonJava, PaimonTable
from pyroaring import BitMap

from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.codec.roaring64 import Roaring64

pytestmark = pytest.mark.interop

COLUMNS = [("k", "INT NOT NULL"), ("a", "INT"), ("b", "STRING"), ("g", "INT"), ("h", "INT")]
ENGINES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "partial": ({"merge-engine": "partial-update"}, ("+I",)),
    "removing": (
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        ("+I", "+I", "-D"),
    ),
    "groups": (
        {
            "merge-engine": "partial-update",
            "fields.g.sequence-group": "a",
            "fields.h.sequence-group": "b",
            "fields.a.aggregate-function": "sum",
        },
        ("+I", "+I", "-D"),
    ),
    "sums": (
        {
            "merge-engine": "aggregation",
            "fields.a.aggregate-function": "sum",
            "fields.b.aggregate-function": "listagg",
            "fields.b.ignore-retract": "true",
            "fields.g.aggregate-function": "product",
            "sequence.field": "h",
        },
        ("+I", "+I", "-D"),
    ),
    "extremes": (
        {
            "merge-engine": "aggregation",
            "fields.a.aggregate-function": "max",
            "fields.b.aggregate-function": "min",
            "fields.g.aggregate-function": "first_non_null_value",
        },
        ("+I",),
    ),
}


SETS = {"r": "rbm32", "u": "rbm64", "h": "hll_sketch", "t": "theta_sketch"}


@pytest.mark.parametrize("name", ENGINES)
def test_both_write_in_turn(paimon_java: PaimonJava, tmp_path: Path, name: str) -> None:
    options, kinds = ENGINES[name]
    theirs = PaimonTable(paimon_java, str(tmp_path), "db.t")
    theirs.create(COLUMNS, primary_keys=["k"], options={"bucket": "1", "write-only": "true", **options})
    ours = Catalog(tmp_path).load_table("db.t")
    random = Random(name)
    for step in range(8):
        kind = random.choice(kinds)
        rows = [_row(random, key) for key in random.sample(range(4), 3)]
        if step % 2:
            theirs.write(rows, kind=kind)
        else:
            _write(ours, rows, kind)
        assert in_order(exact_rows(ours.read())) == theirs.read().rows, step
    theirs.compact({"write-only": "false"})
    assert in_order(exact_rows(ours.read())) == theirs.read().rows


def _row(random: Random, key: int) -> list[Any]:
    number = [None, 1, 2, 3]
    return [
        key,
        random.choice(number),
        random.choice([None, "x", "y"]),
        random.choice(number),
        random.choice(number),
    ]


def _write(table: Table, rows: list[list[Any]], kind: str) -> None:
    types = {"b": pa.string()}
    columns = {
        name: pa.array(values, types.get(name, pa.int32()))
        for (name, _), values in zip(COLUMNS, zip(*rows, strict=True), strict=True)
    }
    kinds = pa.array([3 if kind == "-D" else 0] * len(rows), pa.int8())
    table.commit(table.write(pa.table(columns), kinds=kinds))


def test_sketches_and_bitmaps_unite_alike(both: Both) -> None:
    """Python, Spark and Paimon make the same bytes of two writes, as they lie and once compacted."""
    options = {
        "bucket": "1",
        "merge-engine": "aggregation",
        "write-only": "true",
        **{f"fields.{name}.aggregate-function": what for name, what in SETS.items()},
    }
    columns = [("k", "INT NOT NULL"), *((name, "BYTES") for name in SETS)]
    both.theirs.create(columns, primary_keys=["k"], options=options)
    ranges = [
        (range(5), range(3, 9)),
        (range(9000), range(7000, 20_000)),
        (range(0), range(40)),
        (range(3), None),
    ]
    for turn in (0, 1):
        rows = [
            [key, *(None if pair[turn] is None else as_set(what, pair[turn]).hex() for what in SETS.values())]
            for key, pair in enumerate(ranges)
        ]
        both.theirs.write(rows)
    merged = both.agree()
    assert [row[0] for row in merged] == [0, 1, 2, 3]
    both.theirs.compact({"write-only": "false"})
    both.agree(merged)


def as_set(function: str, numbers: range) -> bytes:
    """Return numbers as a value that a merge function unites."""
    found: Any
    if function == "rbm32":
        return bytes(BitMap(numbers).serialize())
    if function == "rbm64":
        # Ascending, as Paimon appends the containers of a later value.
        return Roaring64.of(number << 12 for number in numbers).serialize()
    found = update_theta_sketch() if function == "theta_sketch" else hll_sketch(12)
    for number in numbers:
        found.update(number)
    return bytes(found.compact().serialize() if function == "theta_sketch" else found.serialize_compact())
