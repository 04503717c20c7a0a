"""ORDER BY with LIMIT: the files that are left out hold none of the first rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import ColumnNotFoundError
from lockgate.framework.store import Table
from lockgate.framework.store.manifests.manifest import DataFileMeta, FileKind, ManifestEntry
from lockgate.framework.store.pruning.split import Section
from lockgate.framework.store.pruning.topn import FileExtent, first_of_order
from lockgate.pushdown import SortKey, col

MakeTable = Callable[..., Table]


def first(values: list[int | None], limit: int, *, descending: bool, nulls_first: bool) -> list[int | None]:
    """Sort as SQL does."""
    nulls: list[int | None] = [value for value in values if value is None]
    others = sorted((value for value in values if value is not None), reverse=descending)
    return [*nulls, *others][:limit] if nulls_first else [*others, *nulls][:limit]


contents = st.lists(st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=6)


@given(contents, st.integers(0, 8), st.booleans(), st.booleans(), st.data())
def test_what_is_left_out_comes_later(
    files: list[list[int | None]], limit: int, descending: bool, nulls_first: bool, data: st.DataObject
) -> None:
    entry = ManifestEntry(FileKind.ADD, (), 0, 1, DataFileMeta("a.orc", 1, 1))
    bucket = [Section((entry,), merge=False) for _ in files]
    extents = {}
    for section, values in zip(bucket, files, strict=True):
        present = [value for value in values if value is not None]
        known = bool(present) and data.draw(st.booleans(), "bounds are known")
        counted = data.draw(st.booleans(), "rows can be counted")
        slack = data.draw(st.integers(0, 1), "bounds are wider than the values")
        extents[id(section)] = FileExtent(
            low=min(present) - slack if known else None,
            high=max(present) + slack if known else None,
            values=len(present) if counted else 0,
            nulls=len(values) - len(present) if counted else 0,
            may_be_null=None in values or data.draw(st.booleans(), "nulls are not known"),
            may_have_values=bool(present),
        )
    kept = first_of_order([bucket], extents, limit, descending=descending, nulls_first=nulls_first)
    left = {id(section) for found in ([bucket] if kept is None else kept) for section in found}
    rest = [
        value
        for section, values in zip(bucket, files, strict=True)
        if id(section) in left
        for value in values
    ]
    every = [value for values in files for value in values]
    wishes: dict[str, Any] = {"descending": descending, "nulls_first": nulls_first}
    assert first(rest, limit, **wishes) == first(every, limit, **wishes)


@pytest.fixture
def numbers(make_table: MakeTable) -> Table:
    """Ten files of ten rows each: 0 to 9, 10 to 19, and so on."""
    table = make_table(columns={"id": pa.int64(), "v": pa.string(), "f": pa.float64()})
    for start in range(0, 100, 10):
        ids = list(range(start, start + 10))
        table.append(pa.table({"id": ids, "v": [f"v{i:02d}" for i in ids], "f": [float(i) for i in ids]}))
    return table


def files(table: Table, *order: SortKey, limit: int, **wishes: Any) -> int:
    plan = table.scan(order=order, limit=limit, **wishes)
    return sum(len(split.files) for split in plan.splits)


def test_file_indexes_skip_files(numbers: Table) -> None:
    assert files(numbers, SortKey(("id",)), limit=5) == 1
    assert files(numbers, SortKey(("id",), descending=True, nulls_first=False), limit=15) == 2
    assert files(numbers, SortKey(("v",), descending=True), limit=10) == 1
    assert files(numbers, SortKey(("v",)), SortKey(("id",)), limit=11) == 2
    assert files(numbers, SortKey(("id",)), limit=1000) == 10
    assert files(numbers, SortKey(("id",)), limit=0) == 0
    plan = numbers.scan(order=[SortKey(("id",), descending=True, nulls_first=False)], limit=3)
    assert plan.limit is None
    assert sorted(numbers.read(plan)["id"].to_pylist()) == list(range(90, 100))
    assert plan.report.steps[-1].by == "ORDER BY id DESC NULLS LAST LIMIT 3"
    assert "order        id DESC NULLS LAST" in plan.report.render()


def test_where_nothing_is_known_nothing_is_left_out(numbers: Table) -> None:
    assert files(numbers, SortKey(("f",)), limit=5) == 10
    plan = numbers.scan(order=[SortKey(("f",))], limit=5)
    assert plan.report.limit_note == "no file left out: statistics do not order f"
    assert files(numbers, SortKey(("id",)), limit=5, predicate=col("v") > "v50") == 5
    with pytest.raises(ColumnNotFoundError):
        numbers.scan(order=[SortKey(("none",))], limit=5)


def test_partition_columns_order_too(make_table: MakeTable) -> None:
    table = make_table(columns={"id": pa.int64(), "p": pa.int32()}, partition_keys=("p",))
    for p in (3, 1, None, 2):
        table.append(pa.table({"id": [1, 2], "p": pa.array([p, p], pa.int32())}))
    plan = table.scan(order=[SortKey(("p",), descending=True, nulls_first=False)], limit=3)
    assert {split.partition["p"] for split in plan.splits} == {3, 2}
    plan = table.scan(order=[SortKey(("p",))], limit=2)
    assert {split.partition["p"] for split in plan.splits} == {None}
    plan = table.scan(order=[SortKey(("p",))], limit=2, predicate=col("p") > 1)
    assert {split.partition["p"] for split in plan.splits} == {2}


def test_files_that_merge_are_not_counted(make_table: MakeTable, compact: Callable[[Table], None]) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(pa.table({"id": [1, 2, 3], "v": ["a", "a", "a"]}))
    compact(table)
    table.append(pa.table({"id": [11, 12], "v": ["a", "a"]}))
    table.append(pa.table({"id": [21, 22], "v": ["a", "a"]}))
    assert files(table, SortKey(("id",)), limit=3) == 1
    assert files(table, SortKey(("id",)), limit=4) == 3
    assert files(table, SortKey(("id",), descending=True), limit=1) == 3
