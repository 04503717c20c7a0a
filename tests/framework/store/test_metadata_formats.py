"""Manifests in ORC and Parquet (`manifest.format`), and in Avro with the codecs of older releases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from lockgate.errors import CorruptFileError, UnsupportedFormatError
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.codec.avro import read_container
from lockgate.framework.store.manifests.metadata_records import read_records

MakeTable = Callable[..., Table]
Write = Callable[[list[dict[str, Any]], Path], None]


def _arrow(records: list[dict[str, Any]]) -> pa.Table:
    """Records as Paimon's columns: times have no zone there, and a column of nulls has a type."""
    table = pa.Table.from_pylist(records)
    return table.cast(pa.schema([each.with_type(_typed(each.type)) for each in table.schema]))


def _typed(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_typed(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_typed(kind.value_type))
    return pa.string() if pa.types.is_null(kind) else kind


def _no_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _no_nulls(each) for name, each in value.items() if each is not None}
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


def _as_orc(records: list[dict[str, Any]], path: Path) -> None:
    pyarrow.orc.write_table(_arrow([_no_nulls(record) for record in records]), path)


def _as_parquet(records: list[dict[str, Any]], path: Path) -> None:
    pq.write_table(_arrow([_no_nulls(record) for record in records]), path)


def _as_avro(codec: str) -> Write:
    def write(records: list[dict[str, Any]], path: Path) -> None:
        with path.open("rb") as file:
            schema = fastavro.reader(file).writer_schema
        with path.open("wb") as file:
            fastavro.writer(file, schema, records, codec=codec)

    return write


WRITERS: dict[str, Write] = {
    "orc": _as_orc,
    "parquet": _as_parquet,
    "avro snappy": _as_avro("snappy"),
    "avro null": _as_avro("null"),
}


def rewritten(catalog: Catalog, table: Table, write: Write, option: str | None = None) -> Table:
    """Store a table's manifests and lists otherwise, with the sizes that their records tell."""
    folder = Path(table.location) / "manifest"
    for path in sorted(folder.iterdir(), key=lambda each: each.name.startswith("manifest-list")):
        records = read_container(path.read_bytes(), str(path))
        for record in records:
            if "_FILE_SIZE" in record:
                record["_FILE_SIZE"] = (folder / record["_FILE_NAME"]).stat().st_size
        write(records, path)
    for path in (Path(table.location) / "snapshot").glob("snapshot-*"):
        snapshot = json.loads(path.read_text())
        for name in ("base", "delta"):
            snapshot[f"{name}ManifestListSize"] = (folder / snapshot[f"{name}ManifestList"]).stat().st_size
        path.write_text(json.dumps(snapshot))
    if option is not None:
        path = Path(table.location) / "schema" / "schema-0"
        schema = json.loads(path.read_text())
        schema["options"]["manifest.format"] = option
        path.write_text(json.dumps(schema))
    # Parsed metadata is kept in memory by its path, and never changes there; so the table moves.
    moved = Path(catalog.warehouse) / "moved.db" / "t"
    moved.parent.mkdir()
    Path(table.location).rename(moved)
    return catalog.load_table("moved.t")


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_rows_are_read_whatever_the_format_of_manifests(
    catalog: Catalog, make_table: MakeTable, kind: str
) -> None:
    columns = {"id": pa.int64(), "p": pa.string(), "v": pa.string()}
    table = make_table(columns=columns, primary_keys=("id", "p"), partition_keys=("p",), bucket="2")
    for number in range(3):
        ids = list(range(number * 5, number * 5 + 10))
        rows = {"id": ids, "p": [f"p{each % 3}" for each in ids], "v": [f"{number}"] * 10}
        table.append(pa.table(rows))
    table.create_tag("third")
    expected = table.read().sort_by("id").to_pylist()
    before = table.scan().report.steps
    option = kind if kind in ("orc", "parquet") else None
    table = rewritten(catalog, table, WRITERS[kind], option)
    assert table.read().sort_by("id").to_pylist() == expected
    assert table.read(tag="third").num_rows == len(expected)
    assert table.scan().report.steps == before
    rows = pa.table({"id": [99], "p": ["p1"], "v": ["new"]})
    if option is None:
        table.append(rows)
        assert table.read().num_rows == len(expected) + 1
        return
    with pytest.raises(
        UnsupportedFormatError, match=f"option 'manifest.format' = '{option}' is not supported"
    ):
        table.append(rows)


@pytest.mark.parametrize("kind", ["orc", "parquet"])
@pytest.mark.parametrize("cut", [4, 40, -1])
def test_a_cut_file_is_called_damaged(tmp_path: Path, kind: str, cut: int) -> None:
    path = tmp_path / "manifest"
    WRITERS[kind]([{"_FILE_NAME": "a", "_FILE_SIZE": 1}] * 100, path)
    with pytest.raises(CorruptFileError, match="manifest-1 is damaged or truncated: "):
        read_records(path.read_bytes()[:cut], "manifest-1")


def test_a_file_of_no_known_format() -> None:
    with pytest.raises(CorruptFileError, match="m is not an Avro, ORC or Parquet file"):
        read_records(b"hello", "m")
