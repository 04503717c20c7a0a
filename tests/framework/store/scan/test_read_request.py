"""A request says what the parameters of each way to read say, and is taken by all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.snapshot_selection import Between
from lockgate.pushdown import SortKey, col, count

PARTS: dict[str, Any] = {"columns": ["id"], "predicate": col("id") > 1, "snapshot_id": 1, "limit": 1}
REQUEST = ReadRequest(**PARTS)

WAYS: dict[str, Callable[..., Any]] = {
    "scan": lambda table, *given, **parts: table.read(table.scan(*given, **parts)).to_pylist(),
    "read": lambda table, *given, **parts: table.read(*given, **parts).to_pylist(),
    "read_batches": lambda table, *given, **parts: [
        row for batch in table.read_batches(*given, **parts) for row in batch.to_pylist()
    ],
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two snapshots of two rows each."""
    catalog = Catalog(tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", Schema.from_arrow(pa.schema([("id", pa.int64()), ("v", pa.string())]))
    )
    table.append(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    table.append(pa.table({"id": [3, 4], "v": ["c", "d"]}))
    return table


@pytest.mark.parametrize("way", WAYS)
def test_a_request_reads_what_its_parts_read(table: Table, way: str) -> None:
    assert WAYS[way](table, REQUEST) == WAYS[way](table, **PARTS) == [{"id": 2}]
    with pytest.raises(InputError, match="give either it or them"):
        WAYS[way](table, REQUEST, columns=["v"])


def test_a_request_says_what_no_parameter_of_read_says(table: Table) -> None:
    added = ReadRequest(between=Between(1, 2), order=(SortKey(("id",)),))
    assert sorted(row["id"] for row in table.read(added).to_pylist()) == [3, 4]


def test_a_plan_is_not_read_with_other_wishes(table: Table) -> None:
    with pytest.raises(InputError, match="give either it or them"):
        table.read(table.scan(), strict=True)


def test_aggregates_take_the_snapshot_of_a_request(table: Table) -> None:
    answers = [
        table.aggregate([count()], predicate=ReadRequest(snapshot_id=1)),
        table.aggregate([count()], snapshot_id=1),
    ]
    assert [answer.rows.column(0).to_pylist() for answer in answers if answer.rows] == [[2], [2]]
    with pytest.raises(InputError, match="give either it or them"):
        table.aggregate([count()], predicate=REQUEST, tag="t")


def test_system_tables_take_a_request(table: Table) -> None:
    assert table.system("files", ReadRequest(snapshot_id=1)) == table.system("files", snapshot_id=1)
    assert table.system("files", ReadRequest(snapshot_id=1)).num_rows == 1
    with pytest.raises(InputError, match="give either it or them"):
        table.system("files", ReadRequest(snapshot_id=1), limit=1)
