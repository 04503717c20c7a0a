"""Data files of other formats: chosen by name, damaged ones named, plain ones encrypted by compaction."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from converted_tables import to_parquet

from lockgate import procedures
from lockgate.errors import CorruptFileError, UnsupportedFormatError
from lockgate.framework import types as t
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.formats.data_file import FileFormat, format_of
from lockgate.framework.store.formats.plain_data_files import open_plain_file


def test_the_format_is_in_the_name() -> None:
    assert format_of("data-1.orc") is FileFormat.ORC
    assert format_of("data-1.zstd.parquet") is FileFormat.PARQUET
    assert format_of("/a/b.orc/data-1.AVRO") is FileFormat.AVRO
    for name in ("data-1.csv", "data-1", "data.parquet.zst"):
        with pytest.raises(UnsupportedFormatError, match=r"cannot be read, only orc, parquet, avro"):
            format_of(name)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"x" * 100 + b"PAR1", b"no parquet at all"])
def test_a_file_that_is_no_parquet(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"a\.parquet cannot be read as a Parquet file"):
        open_plain_file(LocalFileSystem(), str(path), FileFormat.PARQUET, {})


def test_pages_that_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [f"value {number}" for number in range(5000)]}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[100:2000] = bytes(1900)
    path.write_bytes(content)
    with (
        open_plain_file(LocalFileSystem(), str(path), FileFormat.PARQUET, {}) as file,
        pytest.raises(CorruptFileError, match=r"a\.parquet"),
    ):
        list(file.iter_batches(["a"]))


def test_a_column_whose_name_has_a_dot(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = pa.table({"a": [{"b": 1}], "a.b": [2], "c": [3]})
    pq.write_table(rows, path)
    with open_plain_file(LocalFileSystem(), str(path), FileFormat.PARQUET, {}) as file:
        assert pa.Table.from_batches(file.iter_batches(["c", "a.b"])).to_pydict() == {"c": [3], "a.b": [2]}
        assert pa.Table.from_batches(file.iter_batches(["a"])).to_pylist() == [{"a": {"b": 1}}]


def test_early_timestamps_of_96_bits(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    early = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)]
    pq.write_table(
        pa.table({"a": pa.array(early, pa.timestamp("us"))}), path, use_deprecated_int96_timestamps=True
    )
    with open_plain_file(LocalFileSystem(), str(path), FileFormat.PARQUET, {}) as file:
        assert [row["a"] for batch in file.iter_batches(["a"]) for row in batch.to_pylist()] == early


def test_values_of_avro(tmp_path: Path) -> None:
    """As Paimon writes them: timestamps the other way round, odd maps as lists of records."""
    path = tmp_path / "a.avro"
    entry = {
        "type": "record",
        "name": "entry",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}],
    }
    schema = {
        "type": "record",
        "name": "row",
        "fields": [
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
            {"name": "here", "type": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}]},
            {"name": "m", "type": ["null", {"type": "array", "items": entry}]},
            {
                "name": "d",
                "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
            },
        ],
    }
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3, 4000)
    utc = moment.replace(tzinfo=datetime.UTC)
    with path.open("wb") as file:
        fastavro.writer(
            file,
            schema,
            [
                {"at": utc, "here": moment, "m": [{"key": 1, "value": None}], "d": Decimal("1.25")},
                {"at": None, "here": None, "m": None, "d": None},
            ],
        )
    types = {
        "at": t.timestamp(6),
        "here": t.timestamp_ltz(3),
        "m": t.map_of(t.INT, t.STRING),
        "d": t.decimal(9, 2),
        "later": t.INT,
    }
    with open_plain_file(LocalFileSystem(), str(path), FileFormat.AVRO, types) as opened:
        assert opened.num_rows == 2
        assert opened.schema.names == ["at", "here", "m", "d"]
        rows = pa.Table.from_batches(opened.iter_batches(["d", "m", "here", "at"])).to_pylist()
    assert rows == [
        {"d": Decimal("1.25"), "m": [(1, None)], "here": utc, "at": moment},
        {"d": None, "m": None, "here": None, "at": None},
    ]
    with (
        open_plain_file(LocalFileSystem(), str(path), FileFormat.AVRO, {"at": t.INT}) as wrong,
        pytest.raises(CorruptFileError, match="not of its column's type"),
    ):
        list(wrong.iter_batches(["at"]))


def test_a_plain_parquet_file_is_encrypted_by_compaction(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, keys=MemoryKeyProvider({"pii@0": b"0123456789abcdef"}))
    catalog.create_namespace("d")
    schema = Schema.from_arrow(
        pa.schema([("id", pa.int64()), ("ssn", pa.string())]), options={"orc.encrypt": "pii:ssn"}
    )
    table = catalog.create_table("d.t", schema)
    table.append(pa.table({"id": [1, 2], "ssn": ["123-45", "678-90"]}))
    to_parquet(table)
    assert sorted(table.read()["ssn"].to_pylist()) == ["123-45", "678-90"]
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="d.t")
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    names = [entry.file.file_name for entry in table.manifests.live_files(snapshot)]
    assert [format_of(name) for name in names] == [FileFormat.ORC]
    assert sorted(table.read()["ssn"].to_pylist()) == ["123-45", "678-90"]
    masked = Catalog(tmp_path).load_table("d.t")
    with pytest.warns(UserWarning, match="ssn"):
        assert masked.read()["ssn"].to_pylist() == [None, None]
