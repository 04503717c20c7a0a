"""All types of ORC that Arrow supports: in each codec, in many stripes, empty, and from other writers."""

from __future__ import annotations

import datetime
import io
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.errors import MaskedDataWarning, UnsupportedFormatError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.layout import Compression
from lockgate.pushdown import col

CODECS = ["zstd", "snappy", "zlib", "lz4", "none"]
ROWS = 3000
DAY = datetime.date(1969, 12, 25)
# No time of these is in the last second before 1970, which ORC cannot hold.
MOMENT = datetime.datetime(1969, 12, 1)


def values(make: Any, nulls: int = 13) -> list[Any]:
    return [None if row % nulls == 0 else make(row) for row in range(ROWS)]


def every_type() -> pa.Table:
    rng = random.Random(5)
    person = pa.struct([("name", pa.string()), ("age", pa.int8())])
    columns = {
        "boolean": pa.array(values(lambda i: i % 3 == 0), pa.bool_()),
        "byte": pa.array(values(lambda i: i % 256 - 128), pa.int8()),
        "short": pa.array(values(lambda i: i * 21 - 32_768), pa.int16()),
        "int": pa.array(values(lambda i: rng.randrange(-(2**31), 2**31)), pa.int32()),
        "long": pa.array(values(lambda i: rng.randrange(-(2**63), 2**63)), pa.int64()),
        "float": pa.array(values(lambda i: i / 8), pa.float32()),
        "double": pa.array(values(lambda i: [i / 7, float("inf"), -0.0][i % 3]), pa.float64()),
        "string": pa.array(values(lambda i: f"wörd {rng.random()}"), pa.string()),
        "dictionary": pa.array(values(lambda i: ["", "a", "bb"][i % 3]), pa.string()),
        "binary": pa.array(values(lambda i: rng.randbytes(i % 9)), pa.binary()),
        "date": pa.array(values(lambda i: DAY + datetime.timedelta(days=i)), pa.date32()),
        "timestamp": pa.array(
            values(lambda i: MOMENT + datetime.timedelta(minutes=i * 37, milliseconds=i * 3)),
            pa.timestamp("ns"),
        ),
        "instant": pa.array(
            values(lambda i: MOMENT + datetime.timedelta(minutes=i * 41, microseconds=i * 1001)),
            pa.timestamp("ns", "UTC"),
        ),
        "decimal9": pa.array(values(lambda i: Decimal(i * 13 - 9000).scaleb(-2)), pa.decimal128(9, 2)),
        "decimal38": pa.array(
            values(lambda i: Decimal(rng.randrange(-(10**38) + 1, 10**38)).scaleb(-10)), pa.decimal128(38, 10)
        ),
        "list": pa.array(values(lambda i: list(range(i % 4))), pa.list_(pa.int32())),
        "map": pa.array(
            values(lambda i: [(f"k{j}", j) for j in range(i % 3)]), pa.map_(pa.string(), pa.int64())
        ),
        "struct": pa.array(values(lambda i: {"name": None if i % 5 else f"n{i}", "age": i % 100}), person),
        "deep": pa.array(
            values(lambda i: [[{"name": "x", "age": i % 5}], [], None]), pa.list_(pa.list_(person))
        ),
        "nothing": pa.nulls(ROWS, pa.string()),
    }
    return pa.table(columns)


TYPES = every_type()


@pytest.mark.parametrize("codec", CODECS)
def test_every_type(codec: str, keys: MemoryKeyProvider) -> None:
    half = TYPES.schema.names[::2]
    encrypt = f"pii:{','.join(half[::2])};fin:{','.join(half[1::2])}"
    sink = io.BytesIO()
    write_table(
        TYPES, sink, encrypt=encrypt, keys=keys, compression=codec, stripe_size=60_000, row_index_stride=500
    )
    with EncryptedOrcFile(sink, keys, strict=True, threads=2) as file:
        assert file.num_stripes > 2
        table = file.read()
        assert table.equals(TYPES)
        assert table.schema.equals(TYPES.schema)
        table.validate(full=True)
        for name in TYPES.schema.names:
            assert file.read([name]).equals(TYPES.select([name])), name
        assert file.read(predicate=col("long").is_null()).equals(TYPES.filter(TYPES["long"].is_null()))
    clear = [name for name in TYPES.schema.names if name not in half]
    with EncryptedOrcFile(sink) as file:
        with pytest.warns(MaskedDataWarning, match="read as masks"):
            masked = file.read()
        assert masked.select(clear).equals(TYPES.select(clear))
        assert all(masked[name].null_count == ROWS for name in half)


def test_a_union() -> None:
    """Arrow writes dense unions and reads sparse ones."""
    kinds = pa.array([row % 2 for row in range(100)], pa.int8())
    places = pa.array([row // 2 for row in range(100)], pa.int32())
    children = [pa.array(range(50)), pa.array([f"text {row}" for row in range(50)])]
    union = pa.UnionArray.from_dense(kinds, places, children)
    rows = pa.table({"id": range(100), "either": union, "ssn": [f"{row}" for row in range(100)]})
    sink = io.BytesIO()
    pyarrow.orc.write_table(rows, sink)
    for source in (sink, sink.getvalue()):
        with EncryptedOrcFile(source) as file:
            assert file.read()["either"].to_pylist() == union.to_pylist()
            assert file.read(["either"])["either"].to_pylist() == union.to_pylist()
            assert file.read(["ssn", "id"]).equals(rows.select(["ssn", "id"]))


@pytest.mark.parametrize("codec", CODECS)
def test_an_empty_file(codec: str, keys: MemoryKeyProvider) -> None:
    empty = TYPES.schema.empty_table()
    sink = io.BytesIO()
    write_table(empty, sink, encrypt="pii:string;fin:long,struct", keys=keys, compression=codec)
    with EncryptedOrcFile(sink, keys, strict=True) as file:
        assert (file.num_rows, list(file.iter_batches())) == (0, [])
        assert file.read().equals(empty)
        assert file.read(["struct.age", "long"]).schema.names == ["struct", "long"]
        assert file.read(predicate=col("long") == 1).num_rows == 0
        assert file.stripe_statistics == []


def test_a_file_without_columns() -> None:
    sink = io.BytesIO()
    pyarrow.orc.write_table(pa.table({"a": [1, 2, 3]}), sink)
    with EncryptedOrcFile(sink) as file:
        table = file.read([])
        assert (table.num_rows, table.num_columns) == (3, 0)
        assert [batch.num_columns for batch in file.iter_batches([])] == [0] * len(
            list(file.iter_batches([]))
        )


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", ["0.11", "0.12"])
def test_plain_files_of_other_writers(codec: str, version: str) -> None:
    """Run-length encodings of both versions of the format."""
    flat = TYPES.select(TYPES.schema.names[:10])
    sink = io.BytesIO()
    compression = "uncompressed" if codec == "none" else codec
    pyarrow.orc.write_table(flat, sink, file_version=version, compression=compression, stripe_size=50_000)
    for source in (sink.getvalue(), sink):
        with EncryptedOrcFile(source, threads=2) as file:
            assert file.read().equals(flat)
            assert file.read(["int"], predicate=col("byte") == 5).equals(
                flat.filter(pa.compute.equal(flat["byte"], 5)).select(["int"])
            )
            assert file.integrity == "absent"
            assert file.variants == []


@pytest.mark.parametrize("codec", ["LZO", "BROTLI"])
def test_unsupported_codecs(codec: str) -> None:
    sink = io.BytesIO()
    pyarrow.orc.write_table(pa.table({"a": [1]}), sink)
    data = sink.getvalue()
    length = data[-1]
    postscript = proto.PostScript.FromString(data[-1 - length : -1])
    postscript.compression = Compression[codec]
    changed = postscript.SerializeToString()
    with pytest.raises(UnsupportedFormatError, match=f"compressed with {codec}, .* rewrite it with ZSTD"):
        EncryptedOrcFile(data[: -1 - length] + changed + bytes([len(changed)]))


@pytest.mark.parametrize("most", [1, 3000, 20_000])
def test_a_stripe_is_decoded_in_parts(
    most: int, keys: MemoryKeyProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockgate.framework.orc.read.stripe_decoder.PART_BYTES", most)
    late = pa.array([datetime.datetime(9000, 1, 1), None, MOMENT] * 1000, pa.timestamp("us"))
    rows = TYPES.append_column("late", late).append_column("a.b", TYPES["int"])
    sink = io.BytesIO()
    write_table(rows, sink, encrypt="pii:string,late;fin:struct", keys=keys)
    with EncryptedOrcFile(sink.getvalue(), keys, timestamp_unit="us") as file:
        schema = file.schema
        assert file.read().equals(rows.cast(schema, safe=False))
        some = ["late", "a.b", "struct", "byte"]
        assert file.read(some).equals(
            rows.select(some).cast(pa.schema([schema.field(name) for name in some]))
        )
    with EncryptedOrcFile(sink.getvalue(), keys) as file:
        assert file.read(["struct.age"])["struct"].to_pylist() == [
            None if value is None else {"age": value["age"]} for value in TYPES["struct"].to_pylist()
        ]
