"""Changes of a column's type: those that hold every old value, and those that are refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.ddl.schema_changes import (
    ChangeType,
)
from lockgate.framework.types import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    DataType,
    Kind,
    array,
    can_widen,
    decimal,
    sized,
    timestamp,
)
from lockgate.pushdown import col


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TINYINT, BIGINT),
        (INT, BIGINT),
        (INT, DOUBLE),
        (SMALLINT, FLOAT),
        (FLOAT, DOUBLE),
        (INT, decimal(10)),
        (BIGINT, decimal(21, 2)),
        (decimal(5, 2), decimal(9, 4)),
        (sized(Kind.VARCHAR, 3), sized(Kind.VARCHAR, 9)),
        (sized(Kind.CHAR, 3), STRING),
        (sized(Kind.BINARY, 3), BYTES),
    ],
)
def test_types_that_hold_all_values_of_another(old: DataType, new: DataType) -> None:
    assert can_widen(old, new)
    assert not can_widen(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BIGINT, DOUBLE),
        (INT, FLOAT),
        (INT, STRING),
        (STRING, INT),
        (decimal(5, 2), decimal(5, 3)),
        (decimal(5, 2), DOUBLE),
        (INT, decimal(9)),
        (DATE, timestamp(6)),
        (timestamp(3), timestamp(6)),
        (sized(Kind.CHAR, 3), sized(Kind.CHAR, 4)),
        (STRING, BYTES),
        (array(INT), array(BIGINT)),
    ],
)
def test_types_that_do_not(old: DataType, new: DataType) -> None:
    assert not can_widen(old, new)


@pytest.mark.parametrize(
    ("kind", "value", "new", "expected"),
    [
        (pa.int8(), 5, BIGINT, 5),
        (pa.int32(), 2**31 - 1, DOUBLE, 2.0**31 - 1),
        (pa.float32(), 0.5, DOUBLE, 0.5),
        (pa.int64(), 2**63 - 1, decimal(21, 2), Decimal(2**63 - 1)),
        (pa.decimal128(5, 2), Decimal("1.23"), decimal(9, 4), Decimal("1.2300")),
        (pa.decimal128(18, 2), Decimal("1.23"), decimal(38, 4), Decimal("1.2300")),
    ],
)
def test_old_values_read_as_the_wider_type(tmp_path: Path, kind, value, new: DataType, expected) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("db")
    data = pa.table({"v": pa.array([value, None], kind)})
    catalog.create_table("db.t", Schema.from_arrow(data.schema)).append(data)
    table = catalog.alter_table("db.t", [ChangeType(("v",), new)])
    assert table.read()["v"].to_pylist() == [expected, None]
    assert table.read(predicate=col("v") == value).num_rows == 1
