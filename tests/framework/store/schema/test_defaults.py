"""Defaults of columns: constants of SQL, as schemas keep them, as writers fill them in."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.ddl.schema_changes import AddColumn, ChangeDefault, ChangeType, RenameColumn
from lockgate.framework.store.schema.defaults import default_sql, default_value, with_stored_default
from lockgate.framework.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    DataField,
    DataType,
    Kind,
    array,
    decimal,
    map_of,
    row,
    sized,
    timestamp,
    timestamp_ltz,
)

DAY, NOON = datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1, 12)
PAIR = row((DataField(1, "x", INT), DataField(2, "y", STRING)))


@pytest.mark.parametrize(
    ("kind", "sql", "stored", "value", "again"),
    [
        (INT, "5", "5", 5, "5"),
        (BIGINT, "- 5L", "-5", -5, "-5"),
        (DOUBLE, "1.5e3D", "1500.0", 1500.0, "1500.0"),
        (decimal(5, 2), "1.5BD", "1.50", Decimal("1.50"), "1.50"),
        (BOOLEAN, "TRUE", "true", True, "true"),
        (STRING, "'a'", "'a'", "a", "'a'"),
        (STRING, "'it''s'", "'it's'", "it's", "'it\\'s'"),
        (STRING, r'"a\\b\"c"', "'a\\b\"c'", 'a\\b"c', "'a\\\\b\"c'"),
        (STRING, "''", "''", "", "''"),
        (sized(Kind.VARCHAR, 3), "'abc'", "'abc'", "abc", "'abc'"),
        (DATE, "DATE '2024-03-01'", "'2024-03-01'", DAY, "DATE '2024-03-01'"),
        (timestamp(6), "TIMESTAMP_NTZ'2024-03-01 12:00:00'", "'2024-03-01 12:00:00'", NOON, None),
        (array(INT), "ARRAY(1, NULL)", "ARRAY(1, NULL)", [1, None], "ARRAY(1, NULL)"),
        (array(STRING), "array()", "array()", [], "array()"),
        (map_of(STRING, INT), "MAP('a', 1)", "MAP('a', 1)", [("a", 1)], "MAP('a', 1)"),
        (PAIR, "STRUCT(1, 'b')", "STRUCT(1, 'b')", {"x": 1, "y": "b"}, "STRUCT(1, 'b')"),
        (PAIR, "named_struct('y', 'b', 'x', 1)", None, {"x": 1, "y": "b"}, None),
        (INT, "NULL", None, None, None),
    ],
)
def test_constants_become_defaults_of_their_type(
    kind: DataType, sql: str, stored: str | None, value: Any, again: str | None
) -> None:
    field = with_stored_default(DataField(0, "c", kind, default=sql))
    assert stored is None or field.default == stored
    assert default_value(field) == value
    assert again is None or default_sql(field) == again
    assert with_stored_default(DataField(0, "c", kind, default=default_sql(field))) == field


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        (INT, "current_date()"),
        (INT, "1 + 1"),
        (INT, "'x'"),
        (INT, "1.5"),
        (INT, "99999999999"),
        (INT, "true"),
        (INT, ""),
        (INT, "ARRAY(1)"),
        (DATE, "DATE '2024-13-01'"),
        (decimal(5, 2), "1.505"),
        (sized(Kind.VARCHAR, 2), "'abc'"),
        (STRING, "'abc"),
        (STRING, "abc"),
        (array(INT), "ARRAY(1, 'x')"),
        (array(INT), "ARRAY(1"),
        (array(INT), "MAP(1, 2)"),
        (map_of(STRING, INT), "MAP('a')"),
        (PAIR, "STRUCT(1)"),
        (PAIR, "named_struct('y', 'b', 'z', 1)"),
    ],
)
def test_what_is_no_constant_of_the_type(kind: DataType, sql: str) -> None:
    with pytest.raises(InputError, match=r"DEFAULT.*column 'c'"):
        with_stored_default(DataField(0, "c", kind, default=sql))


@pytest.mark.parametrize("kind", [timestamp_ltz(6), BYTES])
def test_types_whose_text_means_different_things(kind: DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"'c'.*different ways"):
        with_stored_default(DataField(0, "c", kind, default="'2024-03-01'"))


def fields() -> tuple[DataField, ...]:
    return (
        DataField(0, "id", INT),
        DataField(1, "a", STRING, default="'x'"),
        DataField(2, "b", array(INT), default="ARRAY(1, 2)"),
    )


def test_rows_without_the_column_get_the_default(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", Schema(fields()))
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    catalog.alter_table("db.t", [ChangeDefault(("a",), "'y'"), ChangeDefault(("b",), None)])
    catalog.alter_table("db.t", [RenameColumn(("a",), "c")])
    table = catalog.load_table("db.t")
    table.append(pa.table({"id": pa.array([2], pa.int32())}))
    table.append(pa.table({"id": pa.array([3], pa.int32()), "c": pa.nulls(1, pa.string())}))
    assert sorted(map(tuple, (row.values() for row in table.read().to_pylist()))) == [
        (1, "x", [1, 2]),
        (2, "y", None),
        (3, None, None),
    ]
    stored = json.loads((tmp_path / "db.db/t/schema/schema-0").read_text())["fields"]
    assert [field.get("defaultValue") for field in stored] == [None, "'x'", "ARRAY(1, 2)"]


def test_a_default_goes_with_the_type(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    catalog.create_table("db.t", Schema((DataField(0, "id", INT, default="7"), DataField(1, "a", INT))))
    changed = catalog.alter_table("db.t", [ChangeType(("id",), BIGINT), AddColumn(("s",), PAIR)])
    assert default_value(changed.schema.field("id")) == 7
    with pytest.raises(InputError, match="only a whole column"):
        catalog.alter_table("db.t", [ChangeDefault(("s", "x"), "1")])
    with pytest.raises(InputError, match="no INT"):
        catalog.alter_table("db.t", [ChangeDefault(("a",), "'x'")])


def test_an_encrypted_column_has_none(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path), keys=MemoryKeyProvider({"pii@0": b"0" * 16}))
    catalog.create_namespace("db")
    with pytest.raises(InputError, match=r"'a'.*shows"):
        catalog.create_table("db.t", Schema(fields(), options={"orc.encrypt": "pii:a"}))
