"""Which columns leave files out by single values, and in which buckets all rows of a table are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.codec.simple_stats import SimpleStats
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.scan.file_layout import Bucketing, common_bucketing, selective_columns
from lockgate.pushdown import col, describe

MakeTable = Callable[..., Table]
COLUMNS = {"id": pa.int64(), "n": pa.int64(), "part": pa.string(), "f": pa.float64()}


def fill(table: Table, files: int = 8) -> Table:
    """`id` grows from file to file, each has one `part` of two, and all values of `n`."""
    for start in range(0, files * 10, 10):
        ids = list(range(start, start + 10))
        table.append(
            pa.table(
                {"id": ids, "n": range(10), "part": [f"p{start % 20}"] * 10, "f": [float(i) for i in ids]}
            )
        )
    return table


def files_of(table: Table) -> Any:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return table.manifests.files(snapshot)


def test_columns_whose_files_differ(make_table: MakeTable) -> None:
    table = fill(make_table(columns=COLUMNS))
    assert selective_columns(table, files_of(table), list(COLUMNS)) == ["id", "part"]
    assert selective_columns(table, files_of(table), ["n", "f"]) == []
    parted = fill(make_table("p", COLUMNS, partition_keys=("part",)))
    assert selective_columns(parted, files_of(parted), list(COLUMNS)) == ["id", "part"]
    single = fill(make_table("s", COLUMNS), files=1)
    assert selective_columns(single, files_of(single), list(COLUMNS)) == []


def test_a_table_with_a_key(make_table: MakeTable) -> None:
    """Values of other columns leave out no single file: another one may hold an older row of the key."""
    table = fill(make_table(columns=COLUMNS, primary_keys=("n", "part"), bucket="1"))
    assert selective_columns(table, files_of(table), list(COLUMNS)) == ["part"]
    by_id = fill(make_table("k", COLUMNS, primary_keys=("id",), bucket="1"))
    assert selective_columns(by_id, files_of(by_id), list(COLUMNS)) == ["id"]
    spread = fill(make_table("b", COLUMNS, primary_keys=("n",), bucket="4"))
    assert selective_columns(spread, files_of(spread), list(COLUMNS)) == ["n"]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({"bucket": "4", "bucket__key": "id"}, Bucketing("id", 4)),
        ({"bucket": "4", "primary_keys": ("part",)}, Bucketing("part", 4)),
        ({"bucket": "4", "bucket__key": "id,part"}, None),
        ({"bucket": "4", "bucket__key": "f"}, None),
        ({}, None),
    ],
)
def test_a_scan_tells_buckets_that_all_files_have(
    make_table: MakeTable, layout: dict[str, Any], expected: Bucketing | None
) -> None:
    table = fill(make_table(columns=COLUMNS, **layout), files=2)
    assert common_bucketing(table.schema, files_of(table)) == expected
    assert table.scan().bucketing == expected


def test_buckets_of_two_counts(make_table: MakeTable, catalog: Catalog) -> None:
    table = fill(make_table(columns=COLUMNS, partition_keys=("part",), bucket="2", bucket__key="id"))
    assert table.scan().bucketing == Bucketing("id", 2)
    catalog.alter_table("db.t", [SetOption("bucket", "4")])
    table = catalog.load_table("db.t")
    assert table.scan().bucketing is None
    whole = table.read(predicate=col("part") == "p0")
    table.overwrite(whole, {"part": "p0"})
    assert table.scan().bucketing is None
    table.overwrite(table.read(predicate=col("part") == "p10"), {"part": "p10"})
    assert table.scan().bucketing == Bucketing("id", 4)


def test_long_lists(
    make_table: MakeTable, data_file: Callable[..., Any], message: Callable[..., Any]
) -> None:
    """What is compared is a sorted list with columns of bounds, not each value with each file."""
    table = make_table()
    files = [
        data_file(f"f{at}.orc", value_stats=SimpleStats((at * 100,), (at * 100 + 49,), (0,)))
        for at in range(4000)
    ]
    table.commit([message(*files)])
    few = col("id").isin([5, 199, 320_010, 320_060])
    assert sum(len(split.files) for split in table.scan(few).splits) == 2
    many = col("id").isin([*range(320_050, 320_100), *range(0, 400_000, 20), 2**62])
    assert sum(len(split.files) for split in table.scan(many).splits) == 4000
    others = col("id").isin([at * 100 + rest for at in range(4000) for rest in (60, 70, 80, 90, 99)])
    assert table.scan(others).splits == ()
    assert describe(many).endswith(", ... 20,051 values)")
