"""Rows that delete: what their files hold, so that other writers can merge them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError, KeyMissingError
from lockgate.framework.keys import create_key_file
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.merge.merge import RowKind
from lockgate.framework.types import DataField, parse_type
from lockgate.pushdown import col

STRUCT = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])
VALUES: dict[str, tuple[pa.DataType, Any, Any]] = {
    "bool": (pa.bool_(), True, False),
    "tiny": (pa.int8(), 5, 0),
    "int": (pa.int32(), 5, 0),
    "long": (pa.int64(), -5, 0),
    "float": (pa.float32(), 0.5, 0.0),
    "double": (pa.float64(), 0.5, 0.0),
    "decimal": (pa.decimal128(9, 2), Decimal("1.25"), Decimal("0.00")),
    "text": (pa.string(), "née", ""),
    "bytes": (pa.binary(), b"\x01", b""),
    "day": (pa.date32(), dt.date(2024, 2, 29), dt.date(1970, 1, 1)),
    "time": (pa.timestamp("us"), dt.datetime(2024, 2, 29, 1), dt.datetime(1970, 1, 1)),
    "instant": (
        pa.timestamp("us", "UTC"),
        dt.datetime(2024, 2, 29, 1, tzinfo=dt.UTC),
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    ),
    "list": (pa.list_(pa.int32()), [1], []),
    "map": (pa.map_(pa.string(), pa.int32()), [("k", 1)], []),
    "struct": (STRUCT, {"a": 1, "b": "x"}, {"a": 0, "b": None}),
}


def columns(*, nullable: bool) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=nullable) for name, (kind, _, _) in VALUES.items()])


def schema(*, nullable: bool = False, **options: str) -> Schema:
    key = [pa.field("id", pa.int64(), nullable=False), pa.field("q", pa.int32(), nullable=False)]
    arrow = pa.schema([*key, *columns(nullable=nullable), pa.field("note", pa.string())])
    return Schema.from_arrow(arrow, primary_keys=["id"], options={"bucket": "1", **options})


def rows(ids: list[int]) -> pa.Table:
    made = {name: pa.array([value] * len(ids), kind) for name, (kind, value, _) in VALUES.items()}
    return pa.table({"id": ids, "q": pa.array(ids, pa.int32()), **made, "note": ["kept"] * len(ids)})


def deletions(table: Table) -> list[dict[str, Any]]:
    """The rows of files that delete."""
    found = []
    for split in table.scan().splits:
        for path in split.paths:
            with EncryptedOrcFile((table.file_system, path), keys=table.keys) as file:
                found += [row for row in file.read().to_pylist() if row["_VALUE_KIND"] == RowKind.DELETE]
    return found


def values_in(row: dict[str, Any]) -> list[Any]:
    return [row[name] for name in VALUES]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", schema())
    made.append(rows([1, 2, 3]))
    return made


def test_deletions_by_key_have_no_null_where_none_may_be(table: Table) -> None:
    table.delete(pa.table({"id": [2, 99]}))
    assert [row["id"] for row in deletions(table)] == [2, 99]
    for row in deletions(table):
        assert values_in(row) == [neutral for _, _, neutral in VALUES.values()]
        assert (row["q"], row["note"]) == (0, None)
    assert table.read(columns=["id"]).to_pydict() == {"id": [1, 3]}


def test_deletions_by_a_condition_hold_the_row(table: Table) -> None:
    table.delete(col("q") >= 2)
    for row in deletions(table):
        assert values_in(row) == [value for _, value, _ in VALUES.values()]
        assert (row["q"], row["note"]) == (row["id"], "kept")
    assert table.read(columns=["id"]).to_pydict() == {"id": [1]}


def test_deletions_that_look_up_their_age_hold_the_row(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema(**{"sequence.field": "q"}))
    table.append(rows(list(range(3000))))
    table.append(rows([5000]))
    table.delete(pa.table({"id": [7, 5000, 6000]}))
    assert [(row["id"], row["q"], row["note"]) for row in deletions(table)] == [
        (7, 7, "kept"),
        (5000, 5000, "kept"),
    ]
    table.delete(pa.table({"id": list(range(10, 2990))}))  # more keys than a condition lists
    assert table.read(columns=["id"]).num_rows == 3000 - 1 - 2980


def test_rows_given_with_kinds(table: Table) -> None:
    given = pa.table({"id": [1, 2], "q": pa.array([1, 2], pa.int32())})
    with pytest.raises(InputError, match="NOT NULL"):
        table.write(given, kinds=pa.array([RowKind.DELETE, RowKind.INSERT], pa.int8()))
    table.commit(table.write(given, kinds=pa.array([RowKind.DELETE, RowKind.UPDATE_BEFORE], pa.int8())))
    (row,) = deletions(table)
    assert values_in(row) == [neutral for _, _, neutral in VALUES.values()]
    assert table.read(columns=["id"]).to_pydict() == {"id": [3]}


def test_an_age_is_never_made_up(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema(nullable=True, **{"sequence.field": "q"}))
    with pytest.raises(InputError, match=r"'q' of 'sequence.field' is NOT NULL"):
        table.write(pa.table({"id": [1]}), kinds=pa.array([RowKind.DELETE], pa.int8()))


def test_nullable_columns_stay_null(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema(nullable=True))
    table.append(rows([1]))
    table.delete(pa.table({"id": [1]}))
    (row,) = deletions(table)
    assert values_in(row) == [None] * len(VALUES)


def test_fixed_lengths(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    fields = [
        DataField(0, "id", parse_type("INT NOT NULL")),
        DataField(1, "c", parse_type("CHAR(3) NOT NULL")),
        DataField(2, "b", parse_type("BINARY(2) NOT NULL")),
        DataField(3, "v", parse_type("VARCHAR(3) NOT NULL")),
    ]
    table = catalog.create_table("db.t", Schema(fields, primary_keys=["id"], options={"bucket": "1"}))
    table.delete(pa.table({"id": pa.array([1], pa.int32())}))
    (row,) = deletions(table)
    assert (row["c"], row["b"], row["v"]) == ("   ", b"\0\0", "")


def test_values_of_deletions_are_encrypted(tmp_path: Path) -> None:
    keys = create_key_file(tmp_path / "keys.json", ["pii"])
    options = {"orc.encrypt": "pii:text,note"}
    catalog = Catalog(str(tmp_path / "lake"), keys=keys)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema(**options))
    secret = "a-name-that-nobody-else-has"
    given = rows([1, 2])
    place = given.schema.get_field_index("text")
    table.append(given.set_column(place, "text", pa.array([secret, secret])))
    table.delete(col("id") == 1)
    (row,) = deletions(table)
    assert row["text"] == secret
    stored = [file.read_bytes() for file in (tmp_path / "lake").rglob("*") if file.is_file()]
    assert not any(secret.encode() in text for text in stored)
    stranger = Catalog(str(tmp_path / "lake")).load_table("db.t")
    before = sorted(str(file) for file in (tmp_path / "lake").rglob("*"))
    for which in (col("id") == 2, pa.table({"id": [2]})):
        with pytest.raises(KeyMissingError):
            stranger.delete(which)
    assert sorted(str(file) for file in (tmp_path / "lake").rglob("*")) == before
