"""Encrypted files have no value, statistic, dictionary entry or Bloom filter in the clear."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.errors import OptionError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.orc.format.chunks import unframe
from lockgate.framework.orc.format.layout import Compression, StreamKind
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.read.stripe_statistics import read_metadata

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
            "part": [
                {"open": i, "shut": SECRETS[i % 5].title(), "list": [NUMBERS[i % 5]]} for i in range(ROWS)
            ],
            "map": pa.array(
                [[(SECRETS[i % 5].replace("-", "+"), DOUBLES[i % 5])] for i in range(ROWS)],
                pa.map_(pa.string(), pa.float64()),
            ),
        }
    )


def secrets() -> list[bytes]:
    found = []
    for text in SECRETS:
        found += [text.encode(), text.upper().encode(), text.encode()[::-1], text.swapcase().encode()]
        found += [text.title().encode(), text.replace("-", "+").encode()]
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
        bloom_filter_columns=["name", "code", "number", "part.shut"],
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


ENCRYPT = "k:name,number,amount,list,part.shut,map._key;l:code,blob,part.list._elem,map._value"
# Keys of a map are never null, so theirs is masked always.
KEYS = "redact:map._key"
MASKS = {
    "nullify": KEYS,
    "sha256": "sha256:name,code,blob,part.shut,map._key,list",
    "redact": "redact:name,code,number,amount,blob,list,part.shut,part.list._elem,map._key,map._value",
    "parameters": "redact,`Xx9$%&`,`2000 _ _`,`0:1`:name,code,part.shut,map._key;redact,Xx7:number,amount",
}


@pytest.mark.parametrize("compression", ["none", "zstd", "snappy", "zlib", "lz4"])
@pytest.mark.parametrize("mask", MASKS)
def test_no_secret_is_in_the_clear(table: pa.Table, compression: str, mask: str) -> None:
    data, keys = write(table, ENCRYPT, mask=MASKS[mask], compression=compression)
    for part in unpacked(data):
        assert [secret for secret in secrets() if secret in part] == []
    for material in keys._keys._keys.values():
        assert material not in data
    with EncryptedOrcFile(data, keys, strict=True) as file:
        assert file.read().equals(table)
        for variant in range(len(file._variants)):
            assert file._variants.footer_key(variant) not in data


def test_statistics_in_the_clear_are_of_masks(table: pa.Table) -> None:
    """Bounds, sums and counts in the clear equal those of a file with only the masks."""
    data, _ = write(table, ENCRYPT, mask=KEYS)
    with EncryptedOrcFile(data) as file:
        shown, metadata = file._tail, read_metadata(file._source, file._tail)
    masks = pyarrow.orc.ORCFile(io.BytesIO(data)).read()
    plain, _ = write(pa.Table.from_arrays(masks.columns, schema=table.schema), None)
    with EncryptedOrcFile(plain) as file:
        for column in range(len(file._tail.types)):
            found, expected = shown.footer.statistics[column], file._tail.footer.statistics[column]
            assert _without_size(found) == _without_size(expected)
    assert metadata is not None
    name = shown.types.top_level("name")
    assert all(not stripe.col_stats[name].number_of_values for stripe in metadata.stripe_stats)


def _without_size(statistics: Any) -> Any:
    statistics.ClearField("bytes_on_disk")
    return statistics


@pytest.mark.parametrize("hide", [False, True])
def test_the_number_of_distinct_values_can_be_hidden(table: pa.Table, hide: bool) -> None:
    keys = MemoryKeyProvider({"k@0": os.urandom(16), "l@0": os.urandom(32)})
    sink = io.BytesIO()
    write_table(table, sink, encrypt=ENCRYPT, mask=KEYS, keys=keys, hide_cardinality=hide)
    with EncryptedOrcFile(sink, keys, strict=True) as file:
        footer = read_stripe(file._source, file._tail, 0).footer
        assert file.read().equals(table)
    encodings = [*footer.columns, *(each for variant in footer.encryption for each in variant.encoding)]
    sizes = {encoding.dictionary_size for encoding in encodings}
    # Five distinct texts are shown as such; an encoding without a dictionary has the kinds 0 and 2.
    assert (5 in sizes) is not hide
    assert all(encoding.kind in (0, 2) for encoding in encodings) is hide
    with pytest.raises(OptionError, match="hide_cardinality writes without dictionaries"):
        write_table(table, sink, hide_cardinality=True, dictionary_key_size_threshold=0.5)


def test_the_search_finds_secrets_in_a_plain_file(table: pa.Table) -> None:
    """Control test: the search finds each kind of secret in a plain file."""
    data, _ = write(table, None, compression="none")
    parts = list(unpacked(data))
    found = [any(secret in part for part in parts) for secret in secrets()]
    assert sum(found) > len(found) / 2
    assert all(found[:30])


def test_bloom_filters_are_of_true_values_and_encrypted(table: pa.Table) -> None:
    data, keys = write(table, ENCRYPT, mask=KEYS, compression="zstd")
    with EncryptedOrcFile(data, keys) as file:
        tail = file._tail
        blooms = (StreamKind.BLOOM_FILTER, StreamKind.BLOOM_FILTER_UTF8)
        streams = [s for s in read_stripe(file._source, tail, 0).streams if s.kind in blooms]
        assert {tail.types.top_name(stream.column) for stream in streams} == {
            "name",
            "code",
            "number",
            "part",
        }
        assert all(stream.variant is not None for stream in streams)


def test_equal_values_have_different_ciphertext(table: pa.Table) -> None:
    """Equal values in two columns, stripes or files have different ciphertext."""
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
    data, _ = write(table, ENCRYPT, mask=KEYS, compression="none")
    with EncryptedOrcFile(data) as file:
        streams = [s for s in read_stripe(file._source, file._tail, 0).streams if s.variant is not None]
        stored = b"".join(bytes(file._source.read_at(s.offset, s.length)) for s in streams)
    assert len(zlib.compress(stored)) > 0.99 * len(stored)
    assert file._tail.codec is Compression.NONE
