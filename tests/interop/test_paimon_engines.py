"""Merge engines both ways: rows that both write in turn are the same to both, and after compactions."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from exact_rows import exact_rows, in_order
from paimon_java import PaimonJava, PaimonTable

from lockgate.framework.store import Catalog, Table

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
