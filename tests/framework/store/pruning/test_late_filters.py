"""Filters that nobody asks again after the merge: no row of the table is lost, and none comes back."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import plan_scan
from lockgate.procedures import ProcedureContext
from lockgate.procedures.builtin.compact.compact import Compact
from lockgate.pushdown import AlwaysTrue, Comparison, Op, Or, Predicate, col, filter_table

SCHEMA = pa.schema(
    [("id", pa.int32()), ("b", pa.string()), ("p", pa.string()), ("n", pa.int64()), ("s", pa.int32())]
)
LAYOUTS: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
    "one bucket": (["id"], [], {"bucket": "1"}),
    "buckets": (["id", "b"], [], {"bucket": "3"}),
    "bucket key": (["id", "b"], [], {"bucket": "2", "bucket-key": "b"}),
    "partitions": (["p", "id"], ["p"], {"bucket": "2"}),
    "sequence": (["id"], [], {"bucket": "1", "sequence.field": "s"}),
    "sequence, descending": (
        ["id"],
        [],
        {"bucket": "2", "sequence.field": "s", "sequence.field.sort-order": "descending"},
    ),
}
numbers = itertools.count()


class Work:
    """A table that is changed at random, small files and large."""

    def __init__(self, folder: Path, layout: str, seed: int) -> None:
        self.pick = random.Random(seed)
        keys, partitions, options = LAYOUTS[layout]
        catalog = Catalog(str(folder))
        catalog.create_namespace("db", ignore_if_exists=True)
        schema = Schema.from_arrow(SCHEMA, primary_keys=keys, partition_keys=partitions, options=options)
        self.table: Table = catalog.create_table(f"db.t{next(numbers)}", schema)
        self.context = ProcedureContext(catalog)
        self.keys = keys

    def rows(self) -> pa.Table:
        start, span = self.pick.randrange(60), self.pick.choice([1, 1, 2, 5, 40, 80])
        ids = range(start, start + span, self.pick.choice([1, 1, 7]))
        return pa.table(
            {
                "id": list(ids),
                "b": [self.pick.choice("xy") for _ in ids],
                "p": [self.pick.choice("uv") for _ in ids],
                "n": [self.pick.randrange(1000) for _ in ids],
                "s": [self.pick.randrange(100) for _ in ids],
            },
            schema=SCHEMA,
        )

    def change(self) -> None:
        rows, choice = self.rows(), self.pick.random()
        if choice < 0.3:
            self.table.delete(rows.select(list(dict.fromkeys((*self.keys, "s")))))
        elif choice < 0.4:
            Compact().call(self.context, **_arguments(str(self.table.identifier)))
        else:
            self.table.append(rows)

    def predicate(self) -> Predicate:
        first = self.pick.randrange(90)
        atoms: list[Predicate] = [
            Comparison(Op.EQ, ("id",), (pa.scalar(first, pa.int32()),)),
            Comparison(Op.IN, ("id",), tuple(pa.scalar(first + at, pa.int32()) for at in (0, 3, 31))),
            col("id") < first,
            col("b") == self.pick.choice("xyz"),
            col("p") == "u",
            col("n") < 300,
        ]
        one, other = self.pick.sample(atoms, 2)
        return self.pick.choice([one, one, one & other, Or((one, other)), ~one])


def _arguments(name: str) -> dict[str, Any]:
    given = {
        parameter.name: parameter.default for parameter in Compact.parameters if parameter.name != "table"
    }
    return {**given, "table": name}


def as_rows(table: pa.Table) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in table.to_pylist()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_fail_never_come_back(tmp_path: Path, layout: str) -> None:
    left_out = 0
    for seed in range(3):
        work = Work(tmp_path, layout, seed)
        for _ in range(8):
            work.change()
        table = work.table
        every = table.read()
        files = sum(len(split.files) for split in table.scan().splits)
        for _ in range(10):
            late, pushed = work.predicate(), work.pick.choice([None, work.predicate()])
            plan = plan_scan(
                table, ReadRequest(predicate=AlwaysTrue() if pushed is None else pushed), late=late
            )
            wanted = every if pushed is None else filter_table(every, pushed)
            found = as_rows(table.read(plan))
            assert found <= as_rows(wanted), f"seed {seed}: older versions came back"
            assert found >= as_rows(filter_table(wanted, late)), f"seed {seed}: rows are missing"
            left_out += files - sum(len(split.files) for split in plan.splits)
    assert left_out > 10, "a late filter that leaves nothing out tests nothing"


def one_bucket(tmp_path: Path, **options: str) -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    given = Schema.from_arrow(SCHEMA, primary_keys=["id"], options={"bucket": "1", **options})
    return catalog.create_table("db.t", given)


def rows(*ids: int, n: int = 0, s: int = 0) -> pa.Table:
    count = len(ids)
    return pa.table(
        {"id": list(ids), "b": ["x"] * count, "p": ["u"] * count, "n": [n] * count, "s": [s] * count},
        schema=SCHEMA,
    )


def names(table: Table, late: Predicate) -> list[list[int]]:
    """The least and largest keys of the files that are read."""
    plan = plan_scan(table, late=late)
    return sorted([*file.min_key, *file.max_key] for split in plan.splits for file in split.files)


def test_newer_files_come_along_and_older_ones_stay_out(tmp_path: Path) -> None:
    table = one_bucket(tmp_path)
    table.append(rows(*range(100)))
    table.append(rows(*range(100, 200)))
    table.append(rows(50, 150))  # newer than both
    table.append(rows(27))
    table.append(rows(180))
    assert names(table, col("id") == 3) == [[0, 99], [27, 27], [50, 150]]
    assert names(table, col("id") == 160) == [[50, 150], [100, 199], [180, 180]]
    assert names(table, col("id") == 180) == [[50, 150], [100, 199], [180, 180]]
    assert names(table, col("id") == 300) == []
    exact = plan_scan(table, ReadRequest(predicate=col("id") == 3))
    assert [len(split.files) for split in exact.splits] == [1], (
        "a filter that is asked again takes files singly"
    )


def test_with_sequence_fields_every_file_may_be_newer(tmp_path: Path) -> None:
    table = one_bucket(tmp_path, **{"sequence.field": "s"})
    table.append(rows(*range(100), s=5))
    table.append(rows(*range(100, 200), s=5))
    table.append(rows(50, 150, s=1))
    table.append(rows(250, s=1))
    assert names(table, col("id") == 3) == [[0, 99], [50, 150], [100, 199]]
    assert names(table, col("id") == 250) == [[250, 250]]


def test_partitions_and_buckets_fall_as_a_whole(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    given = Schema.from_arrow(SCHEMA, primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "4"})
    table = catalog.create_table("db.t", given)
    for n in range(3):
        table.append(rows(*range(40), n=n))
    assert len(plan_scan(table).splits) == 4
    assert len(plan_scan(table, late=col("id") == 7).splits) == 1
    assert len(plan_scan(table, late=col("p") == "v").splits) == 0
    counted = {step.name for step in plan_scan(table, late=col("id") == 7).report.steps}
    assert counted == {"buckets", "keys", "statistics"}
