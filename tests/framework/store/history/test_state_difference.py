"""Differences of two states: the rows of the later one that the earlier one lacks, whatever came between."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

from lockgate import procedures
from lockgate.errors import InputError, OptionError, SnapshotNotFoundError, TagNotFoundError, UnsupportedError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.snapshot_selection import Between, selection_of
from lockgate.pushdown import SortKey, col

MakeTable = Callable[..., Table]
DIFF = {"incremental-between-scan-mode": "diff"}


def rows(*given: tuple[int, str]) -> pa.Table:
    return pa.table({"id": [each[0] for each in given], "v": [each[1] for each in given]})


def found(table: Table, after: int, upto: int, **wishes: object) -> list[tuple[int, str]]:
    request = ReadRequest(between=Between(after, upto, states="diff"), **wishes)  # type: ignore[arg-type]  # keywords of several types
    return sorted(tuple(row.values()) for row in table.read(request).to_pylist())


@pytest.mark.parametrize("options", [{}, {"primary_keys": ("id",), "bucket": "2"}], ids=["append", "key"])
def test_random_histories(catalog: Catalog, make_table: MakeTable, options: dict[str, object]) -> None:
    table, chosen = make_table(**options), random.Random(11)
    states: list[Counter[tuple[int, str]]] = [Counter()]
    for turn in range(12):
        written = [(key, chosen.choice("ab")) for key in chosen.sample(range(12), 4)]
        if turn % 5 == 4:
            procedures.call(
                procedures.ProcedureContext(catalog), "compact", table="db.t", compact_strategy="full"
            )
        elif turn % 4 == 3:
            table.overwrite(rows(*written))
        else:
            table.append(rows(*written))
        for number in range(len(states), table.snapshots()[-1].id + 1):
            shown = table.read(snapshot_id=number).to_pylist()
            states.append(Counter((row["id"], row["v"]) for row in shown))
    for after in range(len(states)):
        for upto in range(after, len(states)):
            expected = sorted((states[upto] - states[after]).elements())
            assert found(table, after, upto) == expected, (after, upto)


def test_tags_outlive_the_snapshots_between_them(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",))
    table.append(rows((1, "a"), (2, "a"), (3, "a")))
    table.create_tag("monday")
    table.append(rows((1, "b"), (2, "b"), (4, "b")))
    table.append(rows((2, "a")))
    table.delete(pa.table({"id": [3]}))
    table.create_tag("tuesday")
    table.append(rows((5, "c")))
    expire_snapshots(table, retain_max=1, retain_min=1)
    selected = selection_of(table, {"incremental-between": "monday,tuesday"})
    assert selected.between == Between(1, 4, states="diff")
    assert found(table, 1, 4) == [(1, "b"), (4, "b")]
    assert found(table, 1, 4, predicate=col("id") > 1, columns=("v",)) == [("b",)]
    assert len(found(table, 1, 4, limit=1)) == 1
    with pytest.raises(SnapshotNotFoundError):
        found(table, 2, 4)
    with pytest.raises(InputError, match="no order"):
        found(table, 1, 4, order=(SortKey(("id",)),))
    with pytest.raises(UnsupportedError, match=r"Table\.read"):
        table.scan(between=Between(1, 4, states="diff"))


def test_up_to_an_automatic_tag(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",))
    for number, tag in enumerate(("2024-03-01", "mine", "2024-03-02", "2024-03-04"), start=1):
        table.append(rows((number, tag)))
        table.create_tag(tag)
    between = {
        tag.name: selection_of(table, {"incremental-to-auto-tag": tag.name}).between
        for tag in table.tags()
        if tag.name != "mine"
    }
    assert between == {
        "2024-03-01": Between(1, 1, states="diff"),
        "2024-03-02": Between(1, 3, states="diff"),
        "2024-03-04": Between(3, 4, states="diff"),
    }


def test_nested_values_are_compared(catalog: Catalog, make_table: MakeTable) -> None:
    make_table()
    numbers = pa.map_(pa.string(), pa.int64())
    columns = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string())), ("m", numbers)])
    table = catalog.create_table("db.nested", Schema.from_arrow(columns, primary_keys=("id",)))
    first = [{"id": 1, "tags": ["a"], "m": [("x", 1)]}, {"id": 2, "tags": None, "m": None}]
    table.append(pa.Table.from_pylist(first, columns))
    second = [{"id": 1, "tags": ["a"], "m": [("x", 2)]}, {"id": 2, "tags": None, "m": None}]
    table.append(pa.Table.from_pylist(second, columns))
    request = ReadRequest(between=Between(1, 2, states="diff"))
    assert table.read(request).to_pylist() == second[:1]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"incremental-to-auto-tag": "2024-03-09"}, TagNotFoundError),
        ({"incremental-to-auto-tag": "mine"}, OptionError),
        ({"incremental-between": "1,3", "incremental-between-scan-mode": "differ"}, OptionError),
    ],
)
def test_what_cannot_be_meant(make_table: MakeTable, options: dict[str, str], error: type[Exception]) -> None:
    table = make_table()
    table.append(rows((1, "a")))
    table.create_tag("mine")
    with pytest.raises(error):
        selection_of(table, options)
