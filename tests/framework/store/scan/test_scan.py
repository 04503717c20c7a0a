"""What each step of a scan leaves out, what it must not, and what it says about it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    ColumnNotFoundError,
    InputError,
    SnapshotNotFoundError,
    UnsupportedError,
    UnsupportedTypeError,
)
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.pruning.pruners import EntryStatistics, possible_values
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import apply_filters, plan_scan
from lockgate.framework.types import INT
from lockgate.pushdown import AlwaysFalse, ColumnStatistics, all_of, any_of, col, from_json

SCHEMA = pa.schema([("id", pa.int32()), ("day", pa.date32()), ("v", pa.int64()), ("s", pa.string())])
DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 3)]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog(str(tmp_path))
    made.create_namespace("db")
    return made


def create(catalog: Catalog, **layout: Any) -> Table:
    return catalog.create_table("db.t", Schema.from_arrow(SCHEMA, **layout))


def make_rows(ids: list[int], *, v: int = 0, day: dt.date = DAYS[0], s: str | None = None) -> pa.Table:
    count = len(ids)
    return pa.table({"id": ids, "day": [day] * count, "v": [v] * count, "s": [s] * count}).cast(SCHEMA)


def files(table: Table, *args: Any, **options: Any) -> int:
    return sum(len(split.files) for split in table.scan(*args, **options).splits)


def test_an_empty_table(catalog: Catalog) -> None:
    table = create(catalog)
    plan = table.scan(col("v") > 1, limit=3)
    assert plan.snapshot_id is None
    assert plan.splits == ()
    assert plan.row_count == plan.total_bytes == 0
    assert table.read(plan).schema == SCHEMA
    assert "empty table" in plan.report.render()


def test_partitions_are_pruned_and_guaranteed(catalog: Catalog) -> None:
    table = create(catalog, partition_keys=["day"])
    for day in DAYS:
        table.append(make_rows([1, 2], day=day))
    plan = table.scan(col("day") > DAYS[0])
    assert {split.partition["day"] for split in plan.splits} == set(DAYS[1:])
    assert plan.report.accepted == ("day > DATE '2024-01-01'",)
    assert plan.report.remaining == ()
    assert [step.name for step in plan.report.steps] == ["partitions"]
    assert (plan.report.total.partitions, plan.report.kept.partitions) == (3, 2)
    # A condition that joins partition and data is asked of each partition for what is left of it.
    assert files(table, (col("day") == DAYS[0]) | (col("v") > 5)) == 1
    assert files(table, ~((col("day") == DAYS[0]) | (col("v") <= 5))) == 0
    assert files(table, col("day") == dt.date(2030, 1, 1)) == 0
    assert files(table, AlwaysFalse()) == 0


def test_buckets_are_found_by_hash(catalog: Catalog) -> None:
    table = create(catalog, primary_keys=["id"], options={"bucket": "8"})
    table.append(make_rows(list(range(100))))
    assert files(table) == 8
    for one in (0, 7, 42):
        plan = table.scan(col("id") == one)
        assert len(plan.splits) == 1
        assert table.read(plan)["id"].to_pylist() == [one]
    assert files(table, col("id").isin([1, 2, None])) <= 2
    assert files(table, (col("id") == 1) & (col("id") == 2)) == 0
    assert files(table, (col("id") == 1) | (col("v") == 0)) == 8
    assert files(table, col("id") == 1.5) == 0
    assert files(table, col("id") == 2**40) == 0
    assert files(table, col("id") > 1) == 8


def test_a_bucket_is_computed_with_the_count_of_its_time(catalog: Catalog) -> None:
    table = create(catalog, primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "2"})
    table.append(make_rows([1, 2, 3, 4, 5]))
    path = Path(table.location) / "schema" / "schema-0"
    schema = json.loads(path.read_text())
    schema["options"]["bucket"] = "5"
    path.with_name("schema-1").write_text(json.dumps({**schema, "id": 1}))
    rescaled = catalog.load_table("db.t")
    rescaled.append(make_rows([1, 2, 3, 4, 5], day=DAYS[1]))
    for one in range(1, 6):
        assert rescaled.read(predicate=col("id") == one).num_rows == 2


def test_possible_values() -> None:
    one = all_of(col("a").isin([1, 2, 3]), any_of(col("a") == 2, col("a") == 5.0))
    assert possible_values(one, "a", INT) == {2}
    assert possible_values(~(col("a") != 4), "a", INT) == {4}
    assert possible_values(col("a").eq_null_safe(None), "a", INT) == {None}
    assert possible_values(col("a").is_null(), "a", INT) == {None}
    assert possible_values(col("a") == None, "a", INT) == frozenset()  # noqa: E711 - a predicate, not a question about None
    assert possible_values(col("b") == 4, "a", INT) is None
    assert possible_values(col("a") == "x", "a", INT) is None


def test_an_older_row_does_not_come_back(catalog: Catalog, compact: Callable[[Table], None]) -> None:
    """Statistics of values leave out one of two overlapping files never, of which one hides the other's
    rows."""
    table = create(catalog, primary_keys=["id"], options={"bucket": "1"})
    table.append(make_rows([1, 2, 3], v=1))
    compact(table)
    table.append(make_rows([2], v=100))
    assert table.read(predicate=(col("v") < 50) & (col("id") == 2)).num_rows == 0
    assert files(table, col("v") < 50) == 2
    assert files(table, col("v") > 500) == 0  # no file of the section can match
    compact(table)
    assert files(table, col("v") < 50) == 1


def test_files_are_left_out_by_key(catalog: Catalog) -> None:
    table = create(catalog, primary_keys=["id"], options={"bucket": "1"})
    table.append(make_rows([1, 2, 3]))
    table.append(make_rows([2, 3, 4], v=1))
    table.append(make_rows([10, 11]))
    plan = table.scan(col("id") == 11)
    assert [step.name for step in plan.report.steps] == ["buckets", "keys", "statistics"]
    assert plan.report.total.files == 3
    assert files(table, col("id") == 11) == 1
    assert files(table, col("id") == 3) == 2
    assert files(table, (col("id") == 1) & (col("v") == 7)) == 0
    assert table.read(predicate=col("id") == 4)["v"].to_pylist() == [1]


def test_sections_are_split_and_clean_files_are_not_merged(
    catalog: Catalog, compact: Callable[[Table], None]
) -> None:
    table = create(catalog, primary_keys=["id"], options={"bucket": "1"})
    table.append(make_rows([1, 2, 3]))
    compact(table)
    assert [split.merge for split in table.scan().splits] == [False]
    table.append(make_rows([10]))
    assert sorted(split.merge for split in table.scan().splits) == [False, True]
    table.append(make_rows([3]))
    table.delete(pa.table({"id": pa.array([10], pa.int32())}))
    assert sorted(table.read()["id"].to_pylist()) == [1, 2, 3]
    assert table.scan().merge_plan is not None


def test_append_files_are_left_out_by_value(catalog: Catalog) -> None:
    table = create(catalog)
    for v, s in ((1, "a" * 40), (2, "b" * 40), (3, None)):
        table.append(make_rows([1, 2], v=v, s=s))
    assert files(table, col("v") >= 2) == 2
    assert files(table, col("s").starts_with("a")) == 1
    assert files(table, col("s") == "a" * 40) == 1
    assert files(table, col("s").is_null()) == 1
    assert files(table, col("s").is_not_null()) == 2
    plan = table.scan(col("v") >= 2)
    assert plan.report.skipping == ("v >= 2",)
    assert "only skip files" in plan.report.remaining[0][1]


@pytest.mark.parametrize("mode", ["none", "counts"])
def test_columns_without_bounds_leave_nothing_out(catalog: Catalog, mode: str) -> None:
    table = create(catalog, options={"metadata.stats-mode": mode})
    table.append(make_rows([1], v=1))
    assert files(table, col("v") > 100) == 1
    assert files(table, col("v").is_null()) == (1 if mode == "none" else 0)


def evolved(catalog: Catalog, change: Any) -> Table:
    """A table with one file of schema 0 and a changed schema 1."""
    table = create(catalog)
    table.append(make_rows([1, 2], v=9, s="10"))
    path = Path(table.location) / "schema" / "schema-0"
    schema = json.loads(path.read_text())
    change(schema["fields"])
    schema |= {"id": 1, "highestFieldId": 9}
    path.with_name("schema-1").write_text(json.dumps(schema))
    return catalog.load_table("db.t")


def test_a_renamed_column_is_found_by_its_id(catalog: Catalog) -> None:
    def change(fields: list[dict[str, Any]]) -> None:
        fields[2]["name"], fields[3]["name"] = "s", "v"

    table = evolved(catalog, change)
    assert table.read(columns=["s", "v"]).to_pydict() == {"s": [9, 9], "v": ["10", "10"]}
    assert files(table, col("s") == 9) == 1
    assert files(table, col("s") == 8) == 0


def test_statistics_of_another_type_are_not_used(catalog: Catalog) -> None:
    def change(fields: list[dict[str, Any]]) -> None:
        fields[3]["type"] = "INT"

    table = evolved(catalog, change)
    assert table.read(predicate=col("s") > 9)["s"].to_pylist() == [10, 10]
    assert files(table, col("s") > 100) == 1
    (split,) = table.scan().splits
    statistics = EntryStatistics(split.files[0], table.schema, table.schema_of)
    assert set(statistics) == {("id",), ("day",), ("v",)}
    assert len(statistics) == 3


def test_a_new_column_is_null_in_old_files(catalog: Catalog) -> None:
    def change(fields: list[dict[str, Any]]) -> None:
        fields.append({"id": 9, "name": "added", "type": "STRING"})
        del fields[2]

    table = evolved(catalog, change)
    assert table.read()["added"].to_pylist() == [None, None]
    assert files(table, col("added") == "x") == 0
    assert files(table, col("added").is_null()) == 1
    (split,) = table.scan().splits
    statistics = EntryStatistics(split.files[0], table.schema, table.schema_of)
    assert statistics[("added",)] == ColumnStatistics(null_count=2)


def test_a_limit_reads_only_enough_files(catalog: Catalog) -> None:
    table = create(catalog, partition_keys=["day"])
    for day in DAYS:
        table.append(make_rows([1, 2], day=day))
    assert files(table, limit=0) == 0
    assert files(table, limit=2) == 1
    assert files(table, limit=3) == 2
    assert table.read(limit=3).num_rows == 3
    assert files(table, col("day") > DAYS[0], limit=1) == 1
    plan = table.scan(col("id") == 2, limit=1)
    assert plan.report.limit_note == "no file left out: a filter remains to be applied to rows"
    assert sum(len(split.files) for split in plan.splits) == 3
    assert table.read(plan).num_rows == 1
    with pytest.raises(InputError, match="negative"):
        table.scan(limit=-1)


def test_a_limit_counts_no_rows_that_merge(catalog: Catalog) -> None:
    table = create(catalog, primary_keys=["id"], options={"bucket": "1"})
    table.append(make_rows([1, 2, 3]))
    table.delete(pa.table({"id": pa.array([1, 2], pa.int32())}))
    assert table.read(limit=1)["id"].to_pylist() == [3]
    assert files(table, limit=1) == 2


def test_other_snapshots(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(make_rows([1]))
    table.append(make_rows([2]))
    assert table.read(snapshot_id=1)["id"].to_pylist() == [1]
    assert table.scan(snapshot_id=1).snapshot_id == 1
    with pytest.raises(SnapshotNotFoundError):
        table.scan(snapshot_id=9)


def test_what_does_not_fit_is_refused(catalog: Catalog) -> None:
    table = create(catalog)
    with pytest.raises(ColumnNotFoundError, match="day"):
        table.scan(columns=["dya"])
    with pytest.raises(ColumnNotFoundError):
        table.scan(col("w") == 1)
    with pytest.raises(UnsupportedTypeError):
        table.scan(col("v") == "1")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("data-evolution.enabled", "true"),
        ("merge-engine", "newest-wins"),
        ("sequence.field", "gone"),
    ],
)
def test_tables_that_would_be_read_wrong_are_refused(catalog: Catalog, option: str, value: str) -> None:
    table = create(catalog, primary_keys=["id"], options={"bucket": "1"})
    path = Path(table.location) / "schema" / "schema-0"
    schema = json.loads(path.read_text())
    schema["options"][option] = value
    path.write_text(json.dumps(schema))
    with pytest.raises(UnsupportedError, match=value):
        catalog.load_table("db.t").scan()


def test_filters_of_an_engine(catalog: Catalog) -> None:
    table = create(catalog, partition_keys=["day"])
    table.append(make_rows([1, 2]))
    nodes: list[dict[str, Any]] = [
        {"op": "=", "args": [{"col": ["day"]}, {"value": 19723, "type": "date"}]},
        {"op": ">", "args": [{"col": ["v"]}, {"value": 5, "type": "long"}]},
        {"op": "CAST", "args": []},
    ]
    answer = apply_filters(table, [from_json(node) for node in nodes])
    assert answer.remaining[-1].reason == "it cannot be expressed as a predicate"
    answer = answer.with_reasons([None, None, "CAST is not pushed"])
    assert [(item.index, item.guaranteed) for item in answer.accepted] == [(0, True), (1, False)]
    assert [(item.index, item.reason) for item in answer.remaining] == [
        (1, "statistics of column v only skip files, the rows are not checked"),
        (2, "CAST is not pushed"),
    ]
    plan = plan_scan(table, ReadRequest(predicate=answer.pushed), push_down=answer)
    assert plan.report.remaining[1] == ("?", "CAST is not pushed")
    assert json.loads(json.dumps(plan.report.to_dict()))["accepted"] == ["day = DATE '2024-01-01'"]
    assert plan.splits == ()
