"""Reading: projections, batches, masks, strictness, files of older schemas and of other writers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    InputError,
    KeyMissingError,
    MaskedDataWarning,
    SnapshotExpiredError,
    UnsupportedError,
)
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import MASKED, write_table
from lockgate.framework.store import Catalog, CommitMessage, DataFileMeta, Schema, Table
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.schema.evolution import convert
from lockgate.framework.types import BIGINT, INT, STRING, DataField, array, row
from lockgate.pushdown import col

RawRows = Callable[..., pa.Table]

SCHEMA = pa.schema(
    [pa.field("id", pa.int64()), pa.field("ssn", pa.string(), nullable=False), pa.field("v", pa.int32())]
)
KEYS = MemoryKeyProvider({"pii@0": bytes(range(16))})
ENCRYPT = {"bucket": "1", "orc.encrypt": "pii:ssn"}


def make_catalog(folder: Path, keys: MemoryKeyProvider | None = None) -> Catalog:
    catalog = Catalog(str(folder), keys=keys)
    catalog.create_namespace("db", ignore_if_exists=True)
    return catalog


def create(folder: Path, keys: MemoryKeyProvider | None = None, **layout: Any) -> Table:
    return make_catalog(folder, keys).create_table("db.t", Schema.from_arrow(SCHEMA, **layout))


def make_rows(*ids: int, v: int = 0) -> pa.Table:
    return pa.table({"id": ids, "ssn": [f"s{i}" for i in ids], "v": [v] * len(ids)}).cast(SCHEMA)


def alter(table: Table, change: Any) -> None:
    """Store a next schema, as another engine's ALTER TABLE does."""
    last = table.schema_of(table.schema.id)
    content = last.to_json()
    content["id"] = last.id + 1
    change(content)
    (Path(table.location) / "schema" / f"schema-{last.id + 1}").write_text(json.dumps(content))


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(make_rows(1, 2))
    found = table.read(columns=["v", "id"])
    assert found.column_names == ["v", "id"]
    assert table.read(columns=["v", "v"]).column_names == ["v"]
    assert table.read(columns=["v"], predicate=col("id") == 2).to_pydict() == {"v": [0]}
    assert table.read().schema == SCHEMA


@pytest.mark.parametrize("layout", [{}, {"primary_keys": ["id"], "options": {"bucket": "1"}}])
def test_rows_can_be_counted_without_columns(tmp_path: Path, layout: dict[str, Any]) -> None:
    table = create(tmp_path, **layout)
    table.append(make_rows(1, 2))
    table.append(make_rows(2, 3))
    rows = 3 if layout else 4
    assert table.read(columns=[]).num_rows == rows
    assert table.read(columns=[], predicate=col("id") > 2).num_rows == 1
    assert table.read(columns=[]).num_columns == 0


def test_batches_have_the_declared_schema(tmp_path: Path) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "2"})
    table.append(make_rows(*range(50)))
    table.append(make_rows(*range(25), v=1))
    batches = list(table.read_batches(predicate=col("v") == 1))
    assert pa.Table.from_batches(batches).num_rows == 25
    assert all(batch.schema == table.schema.arrow_schema for batch in batches)


def test_a_plan_is_read_as_it_is(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(make_rows(1, 2))
    plan = table.scan(col("id") == 1, columns=["v"], limit=5)
    table.append(make_rows(1))
    assert table.read(plan).num_rows == 1
    with pytest.raises(InputError, match="either it or them"):
        table.read(plan, columns=["id"])


def test_masks_are_marked_unless_strict(tmp_path: Path, raw_rows: RawRows) -> None:
    create(tmp_path, KEYS, primary_keys=["id"], options=ENCRYPT).append(make_rows(1, 2))
    assert make_catalog(tmp_path, KEYS).load_table("db.t").read(strict=True)["ssn"].to_pylist() == [
        "s1",
        "s2",
    ]
    table = make_catalog(tmp_path).load_table("db.t")
    with pytest.warns(MaskedDataWarning, match="ssn"):
        found = table.read()
    assert found["ssn"].null_count == 2
    assert found.schema.field("ssn").metadata == {MASKED: b"nullify"}
    assert found.schema.field("id").metadata is None
    with pytest.warns(MaskedDataWarning):
        (batch,) = table.read_batches()
    assert MASKED in batch.schema.field("ssn").metadata
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.read(columns=["id", "v"]).num_rows == 2
    with pytest.raises(KeyMissingError):
        table.read(strict=True)
    with pytest.raises(KeyMissingError):
        next(table.read_batches(strict=True))
    (split,) = table.scan().splits
    with pytest.raises(KeyMissingError):
        raw_rows(table, split.files[0])


def test_a_strict_read_fails_before_the_first_file(tmp_path: Path) -> None:
    plain = create(tmp_path, KEYS)
    plain.append(make_rows(1))
    alter(plain, lambda content: content["options"].update({"orc.encrypt": "pii:ssn"}))
    make_catalog(tmp_path, KEYS).load_table("db.t").append(make_rows(2))
    table = make_catalog(tmp_path).load_table("db.t")
    batches = table.read_batches(strict=True)
    with pytest.raises(KeyMissingError):
        next(batches)


def test_files_have_the_system_columns(tmp_path: Path, raw_rows: RawRows) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    table.append(make_rows(2, 1))
    table.delete(pa.table({"id": [1]}))
    files = [file for split in table.scan().splits for file in split.files]
    found = [raw_rows(table, file) for file in files]
    assert found[0].column_names == ["_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "ssn", "v"]
    assert found[1].to_pylist() == [
        {"_KEY_id": 1, "_SEQUENCE_NUMBER": 2, "_VALUE_KIND": 3, "id": 1, "ssn": "", "v": None}
    ]


def test_columns_are_found_by_id_and_cast(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        fields = content["fields"]
        fields[0]["name"], fields[1]["name"] = "number", "id"
        fields[2]["type"] = "DOUBLE"
        fields.append({"id": 3, "name": "new", "type": "STRING"})
        content |= {"highestFieldId": 3, "primaryKeys": ["number"]}

    create(tmp_path, primary_keys=["id"], options={"bucket": "1"}).append(make_rows(1, 2, v=7))
    alter(make_catalog(tmp_path).load_table("db.t"), change)
    table = make_catalog(tmp_path).load_table("db.t")
    table.append(pa.table({"number": [2, 3], "id": ["S2", "S3"], "v": [0.5, 0.5], "new": ["x", "y"]}))
    assert table.read().sort_by("number").to_pylist() == [
        {"number": 1, "id": "s1", "v": 7.0, "new": None},
        {"number": 2, "id": "S2", "v": 0.5, "new": "x"},
        {"number": 3, "id": "S3", "v": 0.5, "new": "y"},
    ]
    assert table.read(columns=["new"], predicate=col("new").is_null()).num_rows == 1


def test_a_cast_that_fails_names_the_column(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["fields"][1]["type"] = "INT"

    table = create(tmp_path)
    table.append(make_rows(1))
    alter(table, change)
    with pytest.raises(UnsupportedError, match="column 'ssn' cannot be read as INT"):
        make_catalog(tmp_path).load_table("db.t").read()


def test_structs_are_rebuilt_by_id() -> None:
    inner = row((DataField(5, "x", INT), DataField(6, "y", STRING)))
    before = row((DataField(1, "a", INT), DataField(2, "b", STRING), DataField(4, "in", inner)))
    inner = row((DataField(6, "y", STRING), DataField(5, "z", INT)))
    after = row(
        (
            DataField(2, "a", STRING),
            DataField(3, "c", INT),
            DataField(1, "b", BIGINT),
            DataField(4, "in", inner),
        )
    )
    column = pa.chunked_array([[{"a": 1, "b": "x", "in": {"x": 7, "y": "seven"}}, None]])
    assert convert(column, before, after, "s").to_pylist() == [
        {"a": "x", "c": None, "b": 1, "in": {"y": "seven", "z": 7}},
        None,
    ]
    listed = pa.chunked_array([[[{"a": 1, "b": "x"}]]])
    assert convert(listed, array(row(before.fields[:2])), array(row(after.fields[:2])), "s").to_pylist() == [
        [{"a": "x", "c": None}]
    ]


def foreign_file(table: Table, rows: pa.Table, bucket: int = 0, **meta: Any) -> None:
    """Commit a file laid out by another writer."""
    file = DataFileMeta("data-foreign-0.orc", 0, rows.num_rows, **meta)
    path = Path(table.paths.data_file((), bucket, file))
    path.parent.mkdir(parents=True, exist_ok=True)
    size = write_table(rows, path).size
    file = DataFileMeta("data-foreign-0.orc", size, rows.num_rows, **meta)
    table.commit([CommitMessage((), bucket, table.schema.bucket_count, (file,))])


def test_a_file_without_key_columns_is_merged_by_its_values(tmp_path: Path) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    table.append(make_rows(1, 2))
    thin = make_rows(2, 3, v=5).add_column(0, "_VALUE_KIND", pa.array([0, 0], pa.int8()))
    thin = thin.add_column(0, "_SEQUENCE_NUMBER", pa.array([9, 10], pa.int64()))
    foreign_file(table, thin, min_key=(2,), max_key=(3,), min_sequence_number=9, max_sequence_number=10)
    assert table.read().sort_by("id")["v"].to_pylist() == [0, 5, 5]


def test_a_null_where_none_may_be_is_an_error(tmp_path: Path) -> None:
    table = create(tmp_path)
    foreign_file(table, pa.table({"id": [1], "ssn": pa.array([None], pa.string()), "v": [1]}))
    with pytest.raises(CorruptFileError, match="'ssn' is NOT NULL"):
        table.read()
    with pytest.raises(ColumnNotFoundError):
        table.read(columns=["x"])


@pytest.mark.parametrize("strict", [False, True])
def test_a_read_whose_files_have_expired_says_so(tmp_path: Path, strict: bool) -> None:
    table = create(tmp_path, KEYS, primary_keys=["id"], options=ENCRYPT)
    table.append(make_rows(1, 2))
    plan = table.scan(ReadRequest(strict=strict))
    for split in plan.splits:
        for path in split.paths:
            Path(path).unlink()
    with pytest.raises(CorruptFileError, match=r"data-.*\.orc is missing, although snapshot 1 of "):
        table.read(plan)
    table.overwrite(make_rows(3))
    with pytest.raises(SnapshotExpiredError, match=r"data-.*\.orc does not exist: .* expired"):
        table.read(plan)
