"""Nothing of an encrypted value is in the clear: no value, statistic, dictionary entry or Bloom filter."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.orc.framing import unframe
from lockgate.framework.orc.layout import Compression, StreamKind
from lockgate.framework.orc.stripe import read_stripe

ROWS = 2000
# Values that are found wherever they are: long, distinct, and few enough for a dictionary.
SECRETS = [f"secret-{word}-0123456789" for word in ("alpha", "bravo", "charlie", "delta", "echo")]
NUMBERS = [0x1122334455667700 + i for i in range(5)]
DOUBLES = [1.2345678901234567e100 + i * 1e98 for i in range(5)]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": [SECRETS[i % 5] for i in range(ROWS)],
            "code": [SECRETS[i % 5].upper() for i in range(ROWS)],
            "number": pa.array([NUMBERS[i % 5] for i in range(ROWS)], pa.int64()),
            "amount": [DOUBLES[i % 5] for i in range(ROWS)],
            "blob": [SECRETS[i % 5].encode()[::-1] for i in range(ROWS)],
            "list": [[SECRETS[i % 5].swapcase()] for i in range(ROWS)],
        }
    )


def secrets() -> list[bytes]:
    found = []
    for text in SECRETS:
        found += [text.encode(), text.upper().encode(), text.encode()[::-1], text.swapcase().encode()]
    for number in NUMBERS:
        # As stored: big endian, zig-zag in runs and as a protobuf varint in statistics.
        zigzag = number << 1
        found += [number.to_bytes(8, "big")[:7], zigzag.to_bytes(8, "big")[:7], varint(zigzag)[1:]]
    found += [struct.pack("<d", double)[:7] for double in DOUBLES]
    return found


def varint(number: int) -> bytes:
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def write(table: pa.Table, encrypt: str | None, **options: Any) -> tuple[bytes, MemoryKeyProvider]:
    keys = MemoryKeyProvider({"k@0": os.urandom(16), "l@0": os.urandom(32)})
    sink = io.BytesIO()
    write_table(
        table,
        sink,
        encrypt=encrypt,
        keys=keys,
        row_index_stride=500,
        stripe_size=20_000,
        dictionary_key_size_threshold=0.9,
        bloom_filter_columns=["name", "code", "number"],
        **options,
    )
    return sink.getvalue(), keys


def unpacked(data: bytes) -> Iterator[bytes]:
    """The raw file, and everything in it that is not encrypted, decompressed."""
    yield data
    with EncryptedOrcFile(data) as file:
        tail, source = file._tail, file._source
        areas = [
            (tail.footer_offset, tail.postscript.footer_length),
            (tail.metadata_offset, tail.postscript.metadata_length),
        ]
        for index in range(tail.stripes):
            stripe = tail.footer.stripes[index]
            areas.append((stripe.offset + stripe.index_length + stripe.data_length, stripe.footer_length))
            areas += [
                (s.offset, s.length) for s in read_stripe(source, tail, index).streams if s.variant is None
            ]
        for offset, length in areas:
            yield unframe(tail.codec, bytes(source.read_at(offset, length)), tail.block_size)


ENCRYPT = "k:name,number,amount,list;l:code,blob"


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("mask", [None, "sha256:name,code,blob"])
def test_no_secret_is_in_the_clear(table: pa.Table, compression: str, mask: str | None) -> None:
    data, keys = write(table, ENCRYPT, mask=mask, compression=compression)
    for part in unpacked(data):
        for secret in secrets():
            assert secret not in part
    for material in keys._keys._keys.values():
        assert material not in data
    with EncryptedOrcFile(data, keys, strict=True) as file:
        assert file.read().equals(table)
        for variant in range(len(file._variants)):
            assert file._variants.footer_key(variant) not in data


def test_the_search_finds_what_is_not_encrypted(table: pa.Table) -> None:
    """The control: in a plain file each kind of secret is found."""
    data, _ = write(table, None, compression="none")
    parts = list(unpacked(data))
    found = [any(secret in part for part in parts) for secret in secrets()]
    assert sum(found) > len(found) / 2
    assert all(found[:20])


def test_bloom_filters_are_of_true_values_and_encrypted(table: pa.Table) -> None:
    data, keys = write(table, ENCRYPT, compression="zstd")
    with EncryptedOrcFile(data, keys) as file:
        tail = file._tail
        blooms = (StreamKind.BLOOM_FILTER, StreamKind.BLOOM_FILTER_UTF8)
        streams = [s for s in read_stripe(file._source, tail, 0).streams if s.kind in blooms]
        assert {tail.types.top_name(stream.column) for stream in streams} == {"name", "code", "number"}
        assert all(stream.variant is not None for stream in streams)


def test_equal_values_do_not_look_equal(table: pa.Table) -> None:
    """Two columns with the same values, two stripes, two files: no two streams share their bytes."""
    same = pa.table({"a": table["name"], "b": table["name"]})
    seen: set[bytes] = set()
    count = 0
    for _ in range(2):
        data, _keys = _write_same(same)
        with EncryptedOrcFile(data) as file:
            for index in range(file.num_stripes):
                for stream in read_stripe(file._source, file._tail, index).streams:
                    if stream.variant is not None and stream.length >= 16:
                        seen.add(bytes(file._source.read_at(stream.offset, 16)))
                        count += 1
    assert count > 4
    assert len(seen) == count


def _write_same(table: pa.Table) -> tuple[bytes, MemoryKeyProvider]:
    keys = MemoryKeyProvider({"k@0": bytes(16)})
    sink = io.BytesIO()
    write_table(table, sink, encrypt="k:a,b", keys=keys, compression="none", stripe_size=20_000)
    return sink.getvalue(), keys


def test_ciphertext_does_not_compress(table: pa.Table) -> None:
    data, _ = write(table, ENCRYPT, compression="none")
    with EncryptedOrcFile(data) as file:
        streams = [s for s in read_stripe(file._source, file._tail, 0).streams if s.variant is not None]
        stored = b"".join(bytes(file._source.read_at(s.offset, s.length)) for s in streams)
    assert len(zlib.compress(stored)) > 0.99 * len(stored)
    assert file._tail.codec is Compression.NONE
