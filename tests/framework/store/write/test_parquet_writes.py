"""Parquet files written by Python: what is in them, what their options say, and what stays refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate import procedures
from lockgate.errors import LockgateError, OptionError, UnsupportedFormatError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.formats.parquet_output import ParquetOutput
from lockgate.framework.store.schema.unsupported_features import check_writable

MakeTable = Callable[..., Table]
ROWS = pa.table({"id": [1, 2, 3], "v": ["a", None, "c"]})


def files_of(table: Table) -> list[Path]:
    live = table.manifests.live_files(table.latest_snapshot())
    return [Path(table.paths.data_file(each.partition, each.bucket, each.file)) for each in live]


def test_ids_and_codecs_are_those_of_paimon(make_table: MakeTable) -> None:
    inner = pa.struct([("x", pa.int8())])
    columns = {"id": pa.int64(), "d": pa.decimal128(9, 2), "m": pa.list_(pa.map_(pa.string(), inner))}
    table = make_table(columns=columns, primary_keys=("id",), file_format="parquet")
    rows = {"id": [1], "d": [None], "m": [[[("k", {"x": 1})]]]}
    table.append(pa.table(rows, schema=pa.schema(list(columns.items()))))
    (path,) = files_of(table)
    found = pq.ParquetFile(path)
    assert path.suffix == ".parquet"
    assert found.metadata.row_group(0).column(0).compression == "ZSTD"
    assert found.schema.column(4).physical_type == "INT32"
    text = str(found.schema)
    # What Paimon's own writer gives a key, system columns, elements, keys and values.
    for expected in ("1073741823 _KEY_id", "2147483646 _SEQUENCE_NUMBER", "2147483645 _VALUE_KIND"):
        assert f"field_id={expected}" in text
    column = 536_870_911, 2 * 1024
    assert f"field_id={column[0] + column[1] + 1} element" in text
    assert f"field_id={column[0] - column[1] - 2} key" in text
    assert f"field_id={column[0] + column[1] + 2} value" in text
    assert table.read().to_pylist() == [{"id": 1, "d": None, "m": [[("k", {"x": 1})]]}]


@pytest.mark.parametrize(("codec", "stored"), [("gzip", "GZIP"), ("none", "UNCOMPRESSED"), ("lz4", "LZ4")])
def test_a_parquet_file_has_the_compression_of_the_table(
    make_table: MakeTable, codec: str, stored: str
) -> None:
    table = make_table(file_format="parquet", file_compression=codec)
    table.append(ROWS)
    assert pq.ParquetFile(files_of(table)[0]).metadata.row_group(0).column(0).compression == stored


def test_each_level_has_its_format(make_table: MakeTable, catalog: Catalog) -> None:
    table = make_table(
        primary_keys=("id",),
        **{"file.format.per.level": "0:parquet", "file.compression.per.level": "0:snappy"},
    )
    table.append(ROWS)
    assert pq.ParquetFile(files_of(table)[0]).metadata.row_group(0).column(0).compression == "SNAPPY"
    table.append(ROWS.slice(1).set_column(1, "v", pa.array(["x", "y"])))
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    assert [path.suffix for path in files_of(table)] == [".orc"]
    assert sorted(table.read().to_pydict()["v"]) == ["a", "x", "y"]


def test_a_format_may_change(make_table: MakeTable, catalog: Catalog) -> None:
    make_table().append(ROWS)
    table = catalog.alter_table("db.t", [SetOption("file.format", "parquet")])
    table.append(ROWS)
    assert [path.suffix for path in files_of(table)] == [".orc", ".parquet"]
    assert table.read().num_rows == 6


def test_many_rows_make_several_files(make_table: MakeTable) -> None:
    table = make_table(file_format="parquet", target__file__size="300 kb")
    rows = pa.table({"id": range(100_000), "v": [f"value {number * 7919}" for number in range(100_000)]})
    table.append(rows)
    paths = files_of(table)
    assert len(paths) > 1
    assert table.read().sort_by("id")["id"].to_pylist() == list(range(100_000))


def test_a_file_given_up_writes_no_footer() -> None:
    class Sink:
        data = b""

        def write(self, data: Any) -> int:
            self.data += bytes(data)
            return len(data)

    sink = Sink()
    schema = pa.schema([("id", pa.int64())])
    output = ParquetOutput(sink, schema, compression="zstd", field_ids={"id": 0}, group_bytes=1)
    output.write(pa.table({"id": [1]}))
    before = sink.data
    output.abort()
    assert sink.data == before


def test_encrypted_tables_stay_orc(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, keys=MemoryKeyProvider({"pii@0": b"0123456789abcdef"}))
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    catalog.create_table("db.t", Schema.from_arrow(schema, options={"orc.encrypt": "pii:v"}))
    for key, value in (("file.format", "parquet"), ("file.format.per.level", "3:parquet")):
        with pytest.raises(OptionError, match="every value in the clear"):
            catalog.alter_table("db.t", [SetOption(key, value)])
    catalog.create_table("db.plain", Schema.from_arrow(schema, options={"file.format": "parquet"}))
    with pytest.raises(OptionError, match="every value in the clear"):
        catalog.alter_table("db.plain", [SetOption("orc.encrypt", "pii:v")])


@pytest.mark.parametrize("options", [{"file.format": "parquet"}, {"file.format.per.level": "5:avro"}])
def test_others_may_give_a_table_what_is_not_written(make_table: MakeTable, options: dict[str, str]) -> None:
    table = make_table(orc_encrypt="pii:v")
    schema = dataclasses.replace(table.schema, options={**table.schema.options, **options})
    with pytest.raises(UnsupportedFormatError, match="cannot be written"):
        check_writable(schema)


def test_a_compression_for_one_compaction_fits_the_format(make_table: MakeTable, catalog: Catalog) -> None:
    table = make_table(file_format="parquet")
    table.append(ROWS)
    table.append(ROWS)
    with pytest.raises(LockgateError, match="cannot be 'zlib' for parquet files"):
        procedures.call(
            procedures.ProcedureContext(catalog), "compact", table="db.t", options="file.compression=zlib"
        )
