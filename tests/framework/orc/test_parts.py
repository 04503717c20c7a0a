"""Parts of the ORC codec: ciphers, framing, options, masks, statistics."""

from __future__ import annotations

import io
import random
import zlib
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import ColumnNotFoundError, OptionError, UnsupportedFormatError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.keys.local_key_cipher import unwrap
from lockgate.framework.orc import (
    EncryptedOrcFile,
    Mask,
    parse_encrypt,
    parse_encryption,
    parse_mask,
    write_batches,
)
from lockgate.framework.orc.encryption.stream_cipher import crypt, initial_counter
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame, unframe
from lockgate.framework.orc.format.layout import Compression, TypeKind
from lockgate.framework.orc.format.merge_statistics import merge_statistics
from lockgate.framework.orc.format.orc_statistics import column_statistics

SCHEMA = pa.schema(
    [
        ("ssn", pa.string()),
        ("email", pa.string()),
        ("salary", pa.int64()),
        ("st", pa.struct([("a", pa.int8())])),
    ]
)


def test_apache_vectors() -> None:
    """From orc-core's TestCryptoUtils and TestHadoopKeyProvider."""
    assert initial_counter(0x234567, 8, 0x123456).hex() == "23456700081234560000000000000000"
    assert initial_counter(0x234567, 8, 0x123456, 0x1234 * 16).hex() == "23456700081234560000000000001234"
    master = bytes(range(0x10, 0x20))
    local = unwrap(master, bytes.fromhex("c7ab4fbb38f4deadd0b359e2212a9532"))
    assert local.hex() == "c7a1d0417b2472441a58c7724ad4beb3"


@given(st.binary(max_size=200), st.integers(0, 100))
def test_the_cipher_can_start_anywhere(data: bytes, offset: int) -> None:
    whole = crypt(b"k" * 16, 5, 1, 1, bytes(offset) + data)
    assert crypt(b"k" * 16, 5, 1, 1, data, offset) == whole[offset:]


@given(
    st.binary(max_size=1000),
    st.integers(1, 300),
    st.sampled_from([c for c in Compression if c not in (3, 6)]),
)
def test_frames_round_trip(data: bytes, block: int, codec: Compression) -> None:
    assert unframe(codec, frame(codec, data, block), block) == data


def compressed(codec: Compression, data: bytes) -> bytes:
    if codec is Compression.ZLIB:
        deflater = zlib.compressobj(wbits=-15)
        return deflater.compress(data) + deflater.flush()
    name = {Compression.SNAPPY: "snappy", Compression.LZ4: "lz4_raw", Compression.ZSTD: "zstd"}[codec]
    return pa.Codec(name).compress(data, asbytes=True)


CODECS = [Compression.ZLIB, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


@pytest.mark.parametrize("codec", CODECS)
@given(st.lists(st.binary(max_size=30), max_size=60))
@settings(max_examples=examples(50))
def test_compressed_chunks(codec: Compression, parts: list[bytes]) -> None:
    data = b"".join(part * 3 for part in parts)
    chunk = compressed(codec, data)
    framed = (len(chunk) << 1).to_bytes(3, "little") + chunk
    assert unframe(codec, framed + framed, max(len(data), 1)) == data + data


@pytest.mark.parametrize("codec", CODECS)
def test_broken_chunks(codec: Compression) -> None:
    data = bytes(range(256)) * 20
    chunk = compressed(codec, data)
    framed = (len(chunk) << 1).to_bytes(3, "little") + chunk
    for broken in (framed[:2], framed[:-1], framed + b"\0"):
        with pytest.raises(ValueError, match=r"cut off|past the end|does not decompress"):
            unframe(codec, broken, 1 << 18)
    with pytest.raises(ValueError, match="more than the 100 bytes of a block"):
        unframe(codec, framed, 100)
    rng = random.Random(1)
    for _ in range(200):
        noise = rng.randbytes(rng.randrange(1, 60))
        try:
            unframe(codec, (len(noise) << 1).to_bytes(3, "little") + noise, 1 << 18)
        except ValueError:
            continue


def test_unsupported_codecs_are_refused() -> None:
    with pytest.raises(UnsupportedFormatError, match="BROTLI compression is not supported"):
        unframe(Compression.BROTLI, b"\0\0\0", 10)


def test_options_are_parsed() -> None:
    assert parse_encrypt("pii:ssn, email ; fin:salary") == {"ssn": "pii", "email": "pii", "salary": "fin"}
    assert parse_encrypt(None) == parse_encrypt("") == {}
    assert parse_mask("nullify:ssn;sha256:email") == {"ssn": Mask.NULLIFY, "email": Mask.SHA256}
    both = parse_encryption("pii:ssn,email", "sha256:email", SCHEMA)
    assert (both.columns, both.mask_of("ssn"), both.mask_of("email")) == (
        ["ssn", "email"],
        Mask.NULLIFY,
        Mask.SHA256,
    )
    assert not parse_encryption(None, None, SCHEMA)


@pytest.mark.parametrize(
    ("encrypt", "mask", "error", "message"),
    [
        ("ssn", None, OptionError, "orc.encrypt: 'ssn' is not written as in 'pii:ssn,email;fin:salary'"),
        (":ssn", None, OptionError, "is not written as in"),
        ("pii:ssn,,email", None, OptionError, "a column is missing in 'pii:ssn,,email'"),
        ("pii:ssn;fin:ssn", None, OptionError, "column 'ssn' is named twice"),
        ("pii:emial", None, ColumnNotFoundError, "no column 'emial'; did you mean 'email'"),
        ("pii:st.b", None, ColumnNotFoundError, "no column 'st.b'; did you mean 'st.a'"),
        ("pii:ssn", "sha255:ssn", OptionError, "'ssn': there is no mask 'sha255'; did you mean 'sha256'"),
        ("pii:ssn", "nullify:email", OptionError, "column 'email' is not encrypted"),
        (
            "pii:salary",
            "sha256:salary",
            OptionError,
            "sha256 masks strings and binaries, but column 'salary' is int64",
        ),
    ],
)
def test_options_are_checked(encrypt: str, mask: str | None, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_encryption(encrypt, mask, SCHEMA)


def test_sha256_of_binaries_is_the_digest(keys: MemoryKeyProvider) -> None:
    import hashlib

    table = pa.table({"b": [b"x", None, b""], "l": pa.array(["é", None, ""], pa.large_string())})
    sink = io.BytesIO()
    write_batches([table], sink, schema=table.schema, encrypt="pii:b,l", mask="sha256:b,l", keys=keys)
    with EncryptedOrcFile(sink) as file, pytest.warns(UserWarning, match="read as masks"):
        masked = file.read().to_pydict()
    assert masked["b"] == [hashlib.sha256(b"x").digest(), None, hashlib.sha256(b"").digest()]
    assert masked["l"] == [
        hashlib.sha256(text).hexdigest().upper() if text is not None else None
        for text in ("é".encode(), None, b"")
    ]


VALUES: dict[str, tuple[pa.DataType, Callable[[random.Random], object]]] = {
    "int": (pa.int64(), lambda rng: rng.randrange(-(2**63), 2**63)),
    "double": (pa.float64(), lambda rng: rng.gauss(0, 1e9)),
    "string": (pa.string(), lambda rng: "".join(rng.choices("aé€𐍈z", k=rng.randrange(6)))),
    "decimal": (pa.decimal128(20, 3), lambda rng: Decimal(rng.randrange(-(10**15), 10**15)).scaleb(-3)),
    "bool": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "binary": (pa.binary(), lambda rng: rng.randbytes(rng.randrange(5))),
    "date": (pa.date32(), lambda rng: rng.randrange(-10000, 10000)),
    "time": (pa.timestamp("us"), lambda rng: rng.randrange(0, 2**50)),
    "list": (pa.list_(pa.int8()), lambda rng: [1] * rng.randrange(4)),
}


def test_merged_statistics_equal_those_of_one_file(keys: MemoryKeyProvider) -> None:
    """A file written in parts has the statistics that Arrow would have written for all rows at once."""
    rng = random.Random(5)
    columns = {
        name: pa.array([None if rng.random() < 0.2 else make(rng) for _ in range(600)], pa.int32()).cast(
            type_
        )
        if name == "date"
        else pa.array([None if rng.random() < 0.2 else make(rng) for _ in range(600)], type_)
        for name, (type_, make) in VALUES.items()
    }
    table = pa.table({**columns, "nothing": pa.nulls(600, pa.int32())})
    files = []
    for stripe_size in (500, 64 << 20):
        sink = io.BytesIO()
        write_batches(
            table.to_batches(max_chunksize=100),
            sink,
            schema=table.schema,
            encrypt="pii:string",
            keys=keys,
            stripe_size=stripe_size,
        )
        files.append(EncryptedOrcFile(sink, keys))
    parts, whole = files
    assert parts.num_stripes > whole.num_stripes == 1
    assert parts.statistics == whole.statistics
    for merged, single in zip(parts._tail.footer.statistics, whole._tail.footer.statistics, strict=True):
        for message in (merged, single):
            message.ClearField("bytes_on_disk")
            message.timestamp_statistics.ClearField("minimum_nanos")
            message.timestamp_statistics.ClearField("maximum_nanos")
            message.double_statistics.ClearField("sum")
            message.int_statistics.ClearField("sum")
            # Arrow's writer counts some children of null lists, so the totals differ with the batches.
            message.collection_statistics.ClearField("total_children")
        assert merged == single


def test_merging_omits_values_that_a_part_lacks() -> None:
    known = proto.ColumnStatistics(number_of_values=1)
    known.int_statistics.minimum = known.int_statistics.maximum = known.int_statistics.sum = 5
    unknown = proto.ColumnStatistics(number_of_values=2, has_null=True)
    empty = proto.ColumnStatistics(number_of_values=0, has_null=True)
    merged = merge_statistics([known, unknown])
    assert (merged.number_of_values, merged.has_null) == (3, True)
    assert not merged.int_statistics.HasField("minimum")
    merged = merge_statistics([known, empty])
    assert (merged.int_statistics.minimum, merged.int_statistics.sum, merged.has_null) == (5, 5, True)
    huge = proto.ColumnStatistics(number_of_values=1)
    huge.int_statistics.minimum = huge.int_statistics.maximum = huge.int_statistics.sum = 2**63 - 1
    assert not merge_statistics([huge, known]).int_statistics.HasField("sum")


def test_nan_makes_bounds_unknown() -> None:
    statistics = proto.ColumnStatistics(number_of_values=2)
    statistics.double_statistics.minimum = float("nan")
    statistics.double_statistics.maximum = 1.0
    found = column_statistics(proto.Type(kind=TypeKind.DOUBLE), statistics, 2)
    assert (found.minimum, found.maximum, found.null_count) == (None, None, 0)
    merged = merge_statistics([statistics, statistics])
    assert not merged.double_statistics.HasField("minimum")
