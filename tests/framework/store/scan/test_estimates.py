"""What an optimizer may believe of columns, by statistics of files alone."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn
from lockgate.framework.store.scan.estimates import ColumnEstimate, estimate_columns
from lockgate.framework.types import INT
from lockgate.pushdown import col

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("d", pa.date32()),
        ("n", pa.decimal128(6, 2)),
        ("s", pa.string()),
        ("x", pa.float64()),
        ("p", pa.int32()),
    ]
)


def rows(ids: list[int], p: int | None) -> pa.Table:
    day = datetime.date(1970, 1, 2)
    return pa.table(
        {
            "id": [None, *ids],
            "d": [day] * (len(ids) + 1),
            "n": [Decimal(1), *(Decimal(number) for number in ids)],
            "s": ["a"] * (len(ids) + 1),
            "x": [0.5] * (len(ids) + 1),
            "p": [p] * (len(ids) + 1),
        }
    ).cast(SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog(str(tmp_path))
    made.create_namespace("db")
    return made


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, partition_keys=["p"]))
    made.append(rows([3, 9, 4], 1))
    made.append(rows([5], None))
    return made


def test_bounds_nulls_and_how_many_differ(table: Table) -> None:
    assert estimate_columns(table.scan(), SCHEMA.names) == {
        "id": ColumnEstimate(2, 3, 9, 4),
        "d": ColumnEstimate(0, 1, 1, 1),
        "n": ColumnEstimate(0, 100, 900, 6),
        "s": ColumnEstimate(0, None, None, None),
        "p": ColumnEstimate(2, 1, 1, 1),
    }


def test_only_files_that_are_left_count(table: Table) -> None:
    found = estimate_columns(table.scan(col("p") == 1), ["id", "p"])
    assert found == {"id": ColumnEstimate(1, 3, 9, 3), "p": ColumnEstimate(0, 1, 1, 1)}
    assert estimate_columns(table.scan(col("p") == 7), ["id"]) == {}


def test_a_column_that_files_lack(catalog: Catalog, table: Table) -> None:
    added = catalog.alter_table("db.t", [AddColumn(("y",), INT)])
    assert estimate_columns(added.scan(), ["y"]) == {"y": ColumnEstimate(6, None, None, 0)}


def test_statistics_that_are_not_kept(catalog: Catalog) -> None:
    table = catalog.create_table("db.u", Schema.from_arrow(SCHEMA, options={"metadata.stats-mode": "counts"}))
    table.append(rows([1, 2], 1))
    assert estimate_columns(table.scan(), ["id", "s"]) == {
        "id": ColumnEstimate(1, None, None, None),
        "s": ColumnEstimate(0, None, None, None),
    }
