"""COUNT, MIN and MAX from metadata, and why not."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import ColumnNotFoundError, InputError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn, ChangeType
from lockgate.framework.types import BIGINT, INT, STRING
from lockgate.pushdown import (
    Aggregate,
    AggregatePushDown,
    Function,
    RemainingAggregate,
    col,
    count,
    largest,
    smallest,
)

MakeTable = Callable[..., Table]
COLUMNS = {"id": pa.int64(), "v": pa.string(), "day": pa.date32()}
DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 3)]


def rows(ids: list[int | None], day: dt.date | None = DAYS[0], v: str | None = "x") -> pa.Table:
    many = {"id": ids, "v": [v] * len(ids), "day": [day] * len(ids)}
    return pa.Table.from_pydict(many, pa.schema(list(COLUMNS.items())))


def answer(table: Table, *aggregates: Aggregate, **wishes: Any) -> list[dict[str, Any]]:
    found = table.aggregate(aggregates, **wishes)
    assert found.rows is not None, found.push_down.remaining
    assert found.push_down.applied
    return found.rows.to_pylist()


def why(table: Table, aggregate: Aggregate, **wishes: Any) -> str:
    """Return why an aggregate is not answered."""
    found = table.aggregate([aggregate, count()], **wishes)
    assert found.rows is None
    assert not found.push_down.applied
    return next(item.reason for item in found.push_down.remaining if item.text == str(aggregate))


def test_an_empty_table_has_one_row(make_table: MakeTable) -> None:
    table = make_table(columns=COLUMNS, partition_keys=("day",))
    empty = [{"COUNT(*)": 0, "COUNT(id)": 0, "MIN(id)": None, "MAX(day)": None}]
    wishes = (count(), count("id"), smallest("id"), largest("day"))
    assert answer(table, *wishes) == empty
    table.append(rows([1]))
    assert answer(table, *wishes, predicate=col("day") == DAYS[2]) == empty
    assert answer(table, count(), group_by=["day"], predicate=col("day") == DAYS[2]) == []


def test_partitions_are_groups(make_table: MakeTable) -> None:
    table = make_table(columns=COLUMNS, partition_keys=("day",))
    table.append(rows([3, 1, None]))
    table.append(rows([2**62, 7], day=DAYS[1], v=None))
    table.append(rows([9, None], day=None))
    found = answer(table, count(), count("id"), count("v"), smallest("id"), largest("id"), group_by=["day"])
    assert sorted(found, key=lambda row: str(row["day"])) == [
        {"day": DAYS[0], "COUNT(*)": 3, "COUNT(id)": 2, "COUNT(v)": 3, "MIN(id)": 1, "MAX(id)": 3},
        {"day": DAYS[1], "COUNT(*)": 2, "COUNT(id)": 2, "COUNT(v)": 0, "MIN(id)": 7, "MAX(id)": 2**62},
        {"day": None, "COUNT(*)": 2, "COUNT(id)": 1, "COUNT(v)": 2, "MIN(id)": 9, "MAX(id)": 9},
    ]
    assert answer(table, count("day"), smallest("day"), largest("day")) == [
        {"COUNT(day)": 5, "MIN(day)": DAYS[0], "MAX(day)": DAYS[1]}
    ]
    assert answer(table, count(), predicate=col("day").is_null()) == [{"COUNT(*)": 2}]


def test_the_report_tells(make_table: MakeTable) -> None:
    table = make_table(columns=COLUMNS, partition_keys=("day",))
    for day in DAYS:
        table.append(rows([1], day=day))
    report = table.aggregate([count()], predicate=col("day") > DAYS[0]).report
    assert "aggregate    COUNT(*)  answered from metadata, no file is read" in report.render()
    assert (report.total.files, report.kept.files) == (3, 2)
    refused = table.aggregate([largest("v"), count()])
    assert "MAX(v)  remains because column v is STRING: its bounds may be cut" in refused.report.render()
    assert refused.push_down.accepted == (count(),)
    assert refused.report.to_dict()["aggregates"][0]["aggregate"] == "MAX(v)"


def test_what_is_exact(make_table: MakeTable) -> None:
    kinds = {"i": pa.int32(), "c": pa.decimal128(6, 3), "d": pa.date32(), "t": pa.timestamp("ms")}
    table = make_table(columns=kinds)
    values: dict[str, list[Any]] = {
        "i": [5, -(2**31), None],
        "c": [Decimal("-0.001"), Decimal("111.321"), None],
        "d": [dt.date(1969, 12, 31), None, dt.date(2024, 2, 29)],
        "t": [dt.datetime(1960, 1, 1, 0, 0, 0, 7000), None, dt.datetime(2024, 1, 1)],
    }
    table.append(pa.Table.from_pydict(values, pa.schema(list(kinds.items()))))
    wishes = [each(name) for name in kinds for each in (smallest, largest)]
    expected = {
        str(each(name)): pick(value for value in found if value is not None)
        for name, found in values.items()
        for each, pick in ((smallest, min), (largest, max))
    }
    assert answer(table, *wishes) == [expected]
    found = table.aggregate(wishes).rows
    assert found is not None
    assert found.schema.types == [kind for kind in kinds.values() for _ in range(2)]


def test_what_may_be_inexact(make_table: MakeTable) -> None:
    kinds = {
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.binary(),
        "t": pa.timestamp("us"),
        "n": pa.struct([("x", pa.int32())]),
        "d": pa.date32(),
    }
    table = make_table(columns=kinds)
    first = {"f": math.nan, "s": "a", "b": b"a", "t": None, "n": {"x": 1}, "d": dt.date(1582, 10, 14)}
    table.append(pa.Table.from_pylist([first], pa.schema(list(kinds.items()))))
    assert "NaN" in why(table, largest("f"))
    assert "cut" in why(table, smallest("s"))
    assert "cut" in why(table, largest("b"))
    assert "rounded" in why(table, largest("t"))
    assert "not used" in why(table, largest("n"))
    assert "1582" in why(table, smallest("d"))
    assert "inside" in why(table, Aggregate(Function.COUNT, ("n", "x")))
    assert answer(table, count("f"), count("s"), count("t")) == [
        {"COUNT(f)": 1, "COUNT(s)": 1, "COUNT(t)": 0}
    ]
    with pytest.raises(ColumnNotFoundError):
        table.aggregate([count("nothing")])
    with pytest.raises(InputError, match="needs a column"):
        Aggregate(Function.MIN)


def test_filters_and_groups_of_rows_remain(make_table: MakeTable) -> None:
    table = make_table(columns=COLUMNS, partition_keys=("day",))
    table.append(rows([1, 2]))
    assert "a filter remains" in why(table, largest("id"), predicate=col("id") > 1)
    assert "a filter remains" in why(
        table, largest("id"), predicate=(col("day") == DAYS[0]) | (col("id") > 1)
    )
    assert "grouped by" in why(table, largest("id"), group_by=["id"])


def test_a_grouping_without_aggregates(make_table: MakeTable) -> None:
    table = make_table(columns=COLUMNS, partition_keys=("day",))
    for day in DAYS:
        table.append(rows([1], day=day))
    found = answer(table, group_by=["day"], predicate=col("day") > DAYS[0])
    assert sorted(row["day"] for row in found) == DAYS[1:]
    refused = table.aggregate([], group_by=["id"])
    assert refused.rows is None
    assert str(refused.push_down.remaining[0]).startswith("GROUP BY id because files hold several values")


def test_missing_statistics(make_table: MakeTable) -> None:
    plain = make_table("plain", columns=COLUMNS, metadata_stats__mode="counts")
    plain.append(rows([1, None]))
    assert "no statistics" in why(plain, smallest("id"))
    assert answer(plain, count("id")) == [{"COUNT(id)": 1}]
    bare = make_table("bare", columns=COLUMNS, metadata_stats__mode="none")
    bare.append(rows([1, None]))
    assert "no statistics" in why(bare, count("id"))
    assert answer(bare, count()) == [{"COUNT(*)": 2}]


def test_rows_that_must_be_merged(
    make_table: MakeTable, compact: Callable[[Table], None], catalog: Catalog
) -> None:
    table = make_table(columns=COLUMNS, primary_keys=("id",), bucket="2")
    table.append(rows([1, 2, 3, 4]))
    assert "several files" in why(table, count())
    table.append(rows([4, 5]))
    table.delete(pa.table({"id": pa.array([1], pa.int64())}))
    compact(table)
    wishes = (count(), smallest("id"), largest("id"), count("v"))
    assert answer(table, *wishes) == [{"COUNT(*)": 4, "MIN(id)": 2, "MAX(id)": 5, "COUNT(v)": 4}]
    table.delete(pa.table({"id": pa.array([5], pa.int64())}))
    assert "deleted" in why(table, count())
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert answer(table, count(), snapshot_id=snapshot.id - 1) == [{"COUNT(*)": 4}]


def test_only_partitions_to_merge_are_refused(
    make_table: MakeTable, compact: Callable[[Table], None]
) -> None:
    table = make_table(columns=COLUMNS, primary_keys=("id", "day"), partition_keys=("day",), bucket="1")
    table.append(rows([1, 2]))
    compact(table)
    table.append(rows([3], day=DAYS[1]))
    assert answer(table, count(), predicate=col("day") == DAYS[0]) == [{"COUNT(*)": 2}]
    assert "several files" in why(table, count())


def test_evolved_columns(make_table: MakeTable, catalog: Catalog) -> None:
    table = make_table(columns={"id": pa.int32(), "v": pa.string()})
    table.append(pa.table({"id": pa.array([1, None], pa.int32()), "v": ["9", "10"]}))
    catalog.alter_table("db.t", [ChangeType(("id",), BIGINT), AddColumn(("new",), INT)])
    table = catalog.load_table("db.t")
    assert answer(table, smallest("id"), count("new"), largest("new")) == [
        {"MIN(id)": 1, "COUNT(new)": 0, "MAX(new)": None}
    ]
    table.append(pa.table({"id": [2**40], "v": ["11"], "new": pa.array([5], pa.int32())}))
    assert answer(table, largest("id"), count("new"), largest("new")) == [
        {"MAX(id)": 2**40, "COUNT(new)": 1, "MAX(new)": 5}
    ]
    assert table.schema.field("v").type == STRING


def test_encrypted_columns(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, keys=MemoryKeyProvider({"pii@0": bytes(16)}))
    catalog.create_namespace("db")
    schema = Schema.from_arrow(pa.schema(list(COLUMNS.items())), options={"orc.encrypt": "pii:id"})
    table = catalog.create_table("db.t", schema)
    table.append(rows([1, 2]))
    assert "encrypted" in why(table, largest("id"))
    assert "encrypted" in why(Catalog(tmp_path).load_table("db.t"), count("id"))
    assert answer(table, count(), count("v")) == [{"COUNT(*)": 2, "COUNT(v)": 2}]


def test_an_answer_holds_all_or_nothing() -> None:
    assert AggregatePushDown((count(),)).applied
    remaining = RemainingAggregate("SUM(id)", "sums are not kept")
    assert not AggregatePushDown((count(),), (remaining,)).applied
    assert str(remaining) == "SUM(id) because sums are not kept"
