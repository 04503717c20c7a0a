"""Encrypted files round-trip with keys; pyarrow, without keys, reads the masks."""

from __future__ import annotations

import datetime
import hashlib
import io
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import InputError, OptionError, UnsupportedError, UnsupportedTypeError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, OrcWriter, write_batches, write_table

CODECS = ["zstd", "snappy", "zlib", "lz4", "none"]


def read(data: bytes, keys: MemoryKeyProvider, **options: Any) -> pa.Table:
    with EncryptedOrcFile(data, keys, strict=True, timestamp_unit="us") as file:
        return file.read(**options)


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(
    codec: str, people: pa.Table, written: Callable[..., bytes], keys: MemoryKeyProvider
) -> None:
    data = written(compression=codec)
    assert read(data, keys).equals(people)

    alone = pyarrow.orc.ORCFile(io.BytesIO(data)).read()
    assert alone["ssn"].null_count == alone["salary"].null_count == people.num_rows
    hashed = [
        value and hashlib.sha256(value.encode()).hexdigest().upper() for value in people["email"].to_pylist()
    ]
    assert alone["email"].to_pylist() == hashed
    assert alone["address"].to_pylist() == people["address"].to_pylist()


def test_every_type_can_be_encrypted(
    people: pa.Table, written: Callable[..., bytes], keys: MemoryKeyProvider
) -> None:
    data = written(
        encrypt=f"pii:{','.join(people.schema.names)}", mask=None, dictionary_key_size_threshold=0.9
    )
    assert read(data, keys).equals(people)
    alone = pyarrow.orc.ORCFile(io.BytesIO(data)).read()
    assert all(column.null_count == people.num_rows for column in alone.columns)


@pytest.mark.parametrize("codec", CODECS)
def test_files_without_encryption(codec: str, people: pa.Table) -> None:
    sink = io.BytesIO()
    result = write_table(people, sink, compression=codec, stripe_size=8000)
    assert (result.size, result.row_count, result.encrypted_columns) == (len(sink.getvalue()), 1000, ())
    for source in (sink, sink.getvalue()):
        with EncryptedOrcFile(source, timestamp_unit="us") as file:
            assert (file.variants, file.masked_columns) == ([], [])
            assert file.read().equals(people)
            assert file.read(["address", "id"]).equals(people.select(["address", "id"]))


def test_batches_are_streamed_into_one_file(people: pa.Table, keys: MemoryKeyProvider) -> None:
    sink = io.BytesIO()
    result = write_batches(
        iter(people.to_batches(max_chunksize=130)),
        sink,
        schema=people.schema,
        encrypt="pii:ssn,seen",
        keys=keys,
        stripe_size=4000,
    )
    assert (result.size, result.row_count) == (len(sink.getvalue()), people.num_rows)
    assert result.encrypted_columns == ("ssn", "seen")
    with EncryptedOrcFile(sink, keys, timestamp_unit="us") as file:
        assert file.num_stripes > 3
        assert file.read().equals(people)
        assert pa.Table.from_batches(file.iter_batches()).equals(people)
        assert [s["id"].minimum for s in file.stripe_statistics] == sorted(
            s["id"].minimum for s in file.stripe_statistics
        )
        assert (file.statistics["ssn"].minimum, file.statistics["ssn"].maximum) == (
            min(people["ssn"].to_pylist()),
            max(people["ssn"].to_pylist()),
        )


@pytest.mark.parametrize("encrypt", [None, "pii:a"])
def test_no_rows(encrypt: str | None, keys: MemoryKeyProvider) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int32())])
    sink = io.BytesIO()
    assert write_batches([], sink, schema=schema, encrypt=encrypt, keys=keys).row_count == 0
    with EncryptedOrcFile(sink, keys) as file:
        assert file.num_rows == 0
        assert file.schema.equals(schema)
        assert file.read().equals(schema.empty_table())


def test_writing_again_never_uses_a_local_key_twice(written: Callable[..., bytes]) -> None:
    def local_keys(data: bytes) -> list[bytes]:
        with EncryptedOrcFile(data) as file:
            return [variant.encrypted_key for variant in file._tail.footer.encryption.variants]

    first, second = local_keys(written()), local_keys(written())
    assert len({*first, *second}) == 6


def test_a_new_key_version_is_used_and_the_old_one_still_reads(people: pa.Table) -> None:
    old = MemoryKeyProvider({"pii@0": b"0" * 16})
    new = MemoryKeyProvider({"pii@0": b"0" * 16, "pii@1": b"1" * 32})
    sinks = [io.BytesIO(), io.BytesIO()]
    for sink, keys in zip(sinks, (old, new), strict=True):
        write_table(people, sink, encrypt="pii:ssn", keys=keys)
    for sink, version in zip(sinks, ("pii@0", "pii@1"), strict=True):
        with EncryptedOrcFile(sink, new, strict=True, timestamp_unit="us") as file:
            assert str(file.variants[0].key) == version
            assert file.read().equals(people)


def test_field_ids_are_stored_as_attributes(people: pa.Table, keys: MemoryKeyProvider) -> None:
    ids = {"id": 0, "ssn": 1, "tags": 10, "address": 11, "address.street": 20, "address.number": 21}
    for encrypt in (None, "pii:ssn,tags"):
        sink = io.BytesIO()
        write_table(people, sink, encrypt=encrypt, keys=keys, field_ids=ids)
        with EncryptedOrcFile(sink, keys) as file:
            types = file._tail.footer.types
            numbers = {
                column: [a.value for a in types[column].attributes if a.key == "paimon.id"]
                for column in range(len(types))
            }
            tops = dict(zip(file.schema.names, types[0].subtypes, strict=True))
            assert numbers[tops["ssn"]] == ["1"]
            assert numbers[tops["email"]] == []
            # Elements have computed ids: Paimon's SpecialFields.getArrayElementFieldId.
            assert numbers[tops["tags"] + 1] == [str((2**31 - 1) // 4 + 10 * 1024 + 1)]
            assert [numbers[tops["address"] + step] for step in (0, 1, 2)] == [["11"], ["20"], ["21"]]
            assert file.schema.field("ssn").metadata[b"paimon.id"] == b"1"


def test_times_are_stored_as_integers_and_dictionaries_as_their_values(keys: MemoryKeyProvider) -> None:
    table = pa.table(
        {
            "t": pa.array([1, None], pa.time32("ms")),
            "d": pa.array(["a", "b"]).dictionary_encode(),
            "f": pa.array([b"ab", b"cd"], pa.binary(2)),
        }
    )
    sink = io.BytesIO()
    write_table(table, sink, encrypt="pii:d", keys=keys)
    assert read(sink.getvalue(), keys).to_pydict() == {"t": [1, None], "d": ["a", "b"], "f": [b"ab", b"cd"]}


def test_unsupported_values_are_refused(people: pa.Table, keys: MemoryKeyProvider, tmp_path: Any) -> None:
    path = tmp_path / "x.orc"
    with pytest.raises(UnsupportedTypeError, match="'a' has type uint8"):
        write_table(pa.table({"a": pa.array([1], pa.uint8())}), path)
    with pytest.raises(OptionError, match="no compression 'zst'; did you mean 'zstd'"):
        write_table(people, path, compression="zst")
    with pytest.raises(OptionError, match="no column 'idd'"):
        write_table(people, path, bloom_filter_columns=["idd"])
    with pytest.raises(InputError, match=r"write_table: sink takes .*, not int"):
        write_table(people, 3)  # type: ignore[arg-type]  # wrong on purpose
    assert not path.exists()
    with pytest.raises(InputError, match="the rows have columns"), OrcWriter(path, people.schema) as writer:
        writer.write(people.select(["id"]))
    assert not path.exists()


def test_a_failed_write_leaves_no_file(people: pa.Table, keys: MemoryKeyProvider, tmp_path: Any) -> None:
    def batches() -> Any:
        yield people
        raise RuntimeError("the source broke")

    path = tmp_path / "x.orc"
    for encrypt in (None, "pii:ssn"):
        with pytest.raises(RuntimeError, match="the source broke"):
            write_batches(batches(), path, schema=people.schema, encrypt=encrypt, keys=keys)
        assert not path.exists()


class Full:
    """A sink with room for a few bytes."""

    def __init__(self, room: int) -> None:
        self._room = room

    def write(self, data: Any) -> None:
        self._room -= memoryview(data).nbytes
        if self._room < 0:
            raise OSError("no space left")


@pytest.mark.parametrize("encrypt", [None, "pii:ssn"])
@pytest.mark.parametrize("room", [0, 3, 5000, 40000])
def test_a_full_disk_is_an_error_and_not_a_crash(
    encrypt: str | None, room: int, people: pa.Table, keys: MemoryKeyProvider
) -> None:
    """Arrow's ORC writer aborts the process if its file fails in closing."""
    with pytest.raises(OSError, match="no space left"):
        write_batches(
            people.to_batches(100),
            Full(room),
            schema=people.schema,
            encrypt=encrypt,
            keys=keys,
            stripe_size=4000,
            compression="none",
        )


# All but the last second before 1970, which ORC cannot hold.
EARLY = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59))

FLAT: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "tinyint": (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "decimal": (pa.decimal128(38, 6), st.decimals("-1e20", "1e20", places=6)),
    "short_decimal": (pa.decimal128(9, 2), st.decimals("-9999999", "9999999", places=2)),
    "string": (pa.string(), st.text(max_size=20)),
    "binary": (pa.binary(), st.binary(max_size=20)),
    "date": (pa.date32(), st.dates(datetime.date(1900, 1, 1))),
    "ntz": (pa.timestamp("us"), EARLY | st.datetimes(datetime.datetime(1970, 1, 1))),
    "ltz": (
        pa.timestamp("us", "UTC"),
        st.datetimes(datetime.datetime(1970, 1, 1), timezones=st.just(datetime.UTC)),
    ),
}


@st.composite
def flat_tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 40))
    columns: dict[str, pa.Array] = {}
    for name in draw(st.lists(st.sampled_from(sorted(FLAT)), min_size=1, max_size=6, unique=True)):
        type_, values = FLAT[name]
        drawn = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns[name] = pa.array(drawn, type_)
    return pa.table(columns)


@given(table=flat_tables(), data=st.data())
@settings(max_examples=examples(60))
def test_flat_tables_round_trip(table: pa.Table, data: st.DataObject) -> None:
    keys = MemoryKeyProvider({"a@0": b"a" * 16, "b@0": b"b" * 32})
    names = data.draw(st.lists(st.sampled_from(table.schema.names), min_size=1, unique=True))
    cut = data.draw(st.integers(0, len(names)))
    parts = [
        f"{key}:{','.join(columns)}" for key, columns in (("a", names[:cut]), ("b", names[cut:])) if columns
    ]
    masks = [name for name in names if name in ("string", "binary") and data.draw(st.booleans())]
    sink = io.BytesIO()
    write_batches(
        table.to_batches(max_chunksize=data.draw(st.integers(1, 50))),
        sink,
        schema=table.schema,
        encrypt=";".join(parts),
        mask=f"sha256:{','.join(masks)}" if masks else None,
        keys=keys,
        compression=data.draw(st.sampled_from(CODECS)),
        stripe_size=data.draw(st.sampled_from([1, 500, 64 << 20])),
    )
    assert read(sink.getvalue(), keys).equals(table)
    alone = pyarrow.orc.ORCFile(io.BytesIO(sink.getvalue()))
    assert alone.nrows == table.num_rows


def test_decimals_of_all_scales(keys: MemoryKeyProvider) -> None:
    table = pa.table(
        {"d": pa.array([Decimal("0"), Decimal("-1.5"), None, Decimal("99999.99")], pa.decimal128(7, 2))}
    )
    sink = io.BytesIO()
    write_table(table, sink, encrypt="pii:d", keys=keys)
    assert read(sink.getvalue(), keys).equals(table)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("encrypt", [None, "pii:early,late"])
@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_fractions_of_seconds_before_1970(
    unit: str, encrypt: str | None, codec: str, keys: MemoryKeyProvider
) -> None:
    """Arrow's writer stores negative nanoseconds, which other readers reject."""
    rng = random.Random(11)
    per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    numbers = [
        None if rng.random() < 0.1 else rng.randrange(-(10**9), 10**9) * per_second // 977
        for _ in range(4000)
    ]
    numbers[:2] = [-per_second, -per_second + per_second // 10000]
    table = pa.table(
        {
            "id": range(4000),
            "early": pa.array(numbers, pa.timestamp(unit)),
            "late": pa.array([n and abs(n) for n in numbers], pa.timestamp(unit, "UTC")),
        }
    )
    sink = io.BytesIO()
    write_table(
        table, sink, encrypt=encrypt, keys=keys, compression=codec, stripe_size=8000, row_index_stride=500
    )
    with EncryptedOrcFile(sink, keys, timestamp_unit="ns" if unit == "ns" else "us") as file:
        assert file.num_stripes > 1
        found = file.read()
        assert found.cast(table.schema).equals(table)
        whole, last = file.statistics["early"], file.stripe_statistics[-1]["early"]
        assert whole.minimum <= last.minimum <= last.maximum <= whole.maximum
        lowest = pc.min(found["early"].cast(pa.timestamp("us"), safe=False)).as_py()
        assert whole.minimum <= lowest <= whole.minimum + datetime.timedelta(milliseconds=2)
        assert whole.null_count == table["early"].null_count


def test_times_that_orc_confuses_are_refused(keys: MemoryKeyProvider) -> None:
    sink = io.BytesIO()
    for micros in (-1, -500_000, -999_000):
        table = pa.table({"t": pa.array([micros], pa.timestamp("us"))})
        for encrypt in (None, "pii:t"):
            with pytest.raises(UnsupportedError, match=r"'t' has a time between 1969-12-31 23:59:59\.001"):
                write_table(table, sink, encrypt=encrypt, keys=keys)
    for nested in ([{"t": -1_500_000}], [[-1_500_000]], [[("k", -1_500_000)]]):
        types = {dict: pa.struct([("t", pa.timestamp("us"))]), list: pa.list_(pa.timestamp("us"))}
        type_ = (
            types[type(nested[0])]
            if nested != [[("k", -1_500_000)]]
            else pa.map_(pa.string(), pa.timestamp("us"))
        )
        with pytest.raises(UnsupportedError, match=r"'n' has a time before 1970 .* inside a nested column"):
            write_table(pa.table({"n": pa.array(nested, type_)}), sink)
