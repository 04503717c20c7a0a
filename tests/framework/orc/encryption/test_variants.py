"""Which variant a column is read from, and what happens without its key.

They are put together by hand here: writers make neither several variants of one column nor one of all rows.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lockgate.errors import (
    EncryptionKeyError,
    KeyDeniedError,
    KeyMissingError,
    KeyServiceError,
    MaskedDataWarning,
    WrongKeyError,
)
from lockgate.framework.keys import KeyMetadata, MemoryKeyProvider
from lockgate.framework.orc import MASKED, EncryptedOrcFile, write_table
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.layout import INDEX_KINDS, Compression
from lockgate.framework.orc.format.stripe import Stream, read_stripe
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.isolation.decoder import ArrowDecoder
from lockgate.framework.orc.read.stripe_decoder import StripeDecoder
from lockgate.framework.orc.sources.random_access import MemorySource
from lockgate.pushdown import col

A, B = os.urandom(16), os.urandom(32)
BLOCK = 64 * 1024
TRUE = pa.table(
    {
        "id": range(500),
        "ssn": [f"{i:09d}" for i in range(500)],
        "addr": [None if i % 9 == 0 else {"zip": f"{i:05d}", "city": f"city {i % 7}"} for i in range(500)],
    }
)
# What anyone sees, and what the second of two variants holds, so that one can tell them apart.
MASKED_ROWS = pa.table(
    {
        "id": range(500),
        "ssn": pa.nulls(500, pa.string()),
        "addr": pa.array(
            [None if i % 9 == 0 else {"zip": None, "city": None} for i in range(500)], TRUE["addr"].type
        ),
    }
)
OTHER = TRUE.set_column(1, "ssn", [["other"] * 500])
SSN, ADDR, ZIP, CITY = 2, 3, 4, 5


@dataclass
class Variant:
    """A column encrypted with a key: its values come from `rows`."""

    root: int
    name: str
    master: bytes
    rows: pa.Table = field(default_factory=lambda: TRUE)
    # Whether the stripe has another local key than the footer, as in merged files.
    merged: bool = False

    def __post_init__(self) -> None:
        self.encrypted = os.urandom(len(self.master))
        self.stripe_encrypted = os.urandom(len(self.master)) if self.merged else self.encrypted

    def local(self, encrypted: bytes) -> bytes:
        return ctr(self.master, encrypted[:16], encrypted)


def ctr(key: bytes, counter: bytes, data: bytes) -> bytes:
    return Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor().update(data)


def crypt(variant: Variant, column: int, kind: int, stripe: int, data: bytes) -> bytes:
    counter = column.to_bytes(3, "big") + kind.to_bytes(2, "big") + stripe.to_bytes(3, "big") + bytes(8)
    encrypted = variant.encrypted if kind > 100 else variant.stripe_encrypted
    return ctr(variant.local(encrypted), counter, data)


def plain(rows: pa.Table) -> tuple[MemorySource, Any, Any]:
    sink = io.BytesIO()
    write_table(rows, sink, compression="zstd", row_index_stride=100)
    source = MemorySource(sink.getvalue(), "plain")
    tail = read_tail(source)
    assert tail.stripes == 1
    return source, tail, read_stripe(source, tail, 0)


def put_together(variants: Sequence[Variant]) -> bytes:
    """One stripe of `MASKED_ROWS` with `variants`, which are sorted by key name as the format asks."""
    source, tail, stripe = plain(MASKED_ROWS)
    truths = [plain(variant.rows) for variant in variants]
    out, lengths = bytearray(b"ORC"), []
    footer = proto.StripeFooter(columns=stripe.footer.columns, writer_timezone="GMT")
    for variant, (_, its_tail, truth) in zip(variants, truths, strict=True):
        columns = its_tail.types.subtree(variant.root)
        footer.encryption.add(encoding=[truth.footer.columns[column] for column in columns])
    for index in (True, False):
        start = len(out)

        def chosen(streams: Sequence[Stream], columns: range, index: bool = index) -> list[Stream]:
            return [s for s in streams if s.column in columns and (s.kind in INDEX_KINDS) is index]

        for stream in chosen(stripe.streams, range(len(tail.types))):
            out += source.read_at(stream.offset, stream.length)
            footer.streams.add(kind=stream.kind, column=stream.column, length=stream.length)
        plain_end = len(out)
        for variant, listed, (bytes_of, its_tail, truth) in zip(
            variants, footer.encryption, truths, strict=True
        ):
            for stream in chosen(truth.streams, its_tail.types.subtree(variant.root)):
                data = bytes(bytes_of.read_at(stream.offset, stream.length))
                out += crypt(variant, stream.column, stream.kind, 1, data)
                listed.streams.add(kind=stream.kind, column=stream.column, length=stream.length)
        footer.streams.add(kind=9 if index else 10, length=len(out) - plain_end)
        lengths.append(len(out) - start)
    framed = frame(Compression.ZSTD, footer.SerializeToString(), BLOCK)
    out += framed
    content = len(out)
    whole = proto.Footer(
        header_length=3,
        content_length=content,
        number_of_rows=500,
        row_index_stride=100,
        types=tail.footer.types,
        statistics=tail.footer.statistics,
        writer=tail.footer.writer,
    )
    whole.stripes.add(
        offset=3,
        index_length=lengths[0],
        data_length=lengths[1],
        footer_length=len(framed),
        number_of_rows=500,
        encrypt_stripe_id=1,
        encrypted_local_keys=[variant.stripe_encrypted for variant in variants],
    )
    names = sorted({variant.name for variant in variants})
    for name in names:
        master = next(variant.master for variant in variants if variant.name == name)
        whole.encryption.key.add(key_name=name, key_version=0, algorithm=1 if len(master) == 16 else 2)
    for variant, (_, its_tail, _) in zip(variants, truths, strict=True):
        columns = its_tail.types.subtree(variant.root)
        statistics = proto.FileStatistics(column=[its_tail.footer.statistics[column] for column in columns])
        data = frame(Compression.ZSTD, statistics.SerializeToString(), BLOCK)
        whole.encryption.variants.add(
            root=variant.root,
            key=names.index(variant.name),
            encrypted_key=variant.encrypted,
            file_statistics=crypt(variant, variant.root, 101, 2, data),
        )
    framed = frame(Compression.ZSTD, whole.SerializeToString(), BLOCK)
    out += framed
    postscript = proto.PostScript()
    postscript.CopyFrom(tail.postscript)
    postscript.footer_length = len(framed)
    postscript.metadata_length = 0
    postscript.compression_block_size = BLOCK
    ending = postscript.SerializeToString()
    return bytes(out) + ending + bytes([len(ending)])


def keys(**held: bytes) -> MemoryKeyProvider:
    return MemoryKeyProvider({f"{name}@0": material for name, material in held.items()})


class Answering(MemoryKeyProvider):
    """Raises an error for some keys."""

    def __init__(self, errors: dict[str, EncryptionKeyError], **held: bytes) -> None:
        super().__init__({f"{name}@0": material for name, material in held.items()})
        self.errors = errors
        self.asked: list[str] = []

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        self.asked.append(key.name)
        if key.name in self.errors:
            raise self.errors[key.name]
        return super().decrypt_local_key(key, encrypted)


TWO = put_together([Variant(SSN, "a", A), Variant(SSN, "b", B, OTHER)])


def test_the_first_variant_with_an_available_key_is_read() -> None:
    expected = {"a": TRUE["ssn"], "b": OTHER["ssn"]}
    for held, which in (({"a": A, "b": B}, "a"), ({"a": A}, "a"), ({"b": B}, "b")):
        with EncryptedOrcFile(TWO, keys(**held), strict=True) as file:
            (column,) = file.variants
            assert (column.key.name, column.open, column.path) == (which, True, "ssn")
            assert file.masked_columns == []
            assert file.read(["ssn"])["ssn"].to_pylist() == expected[which].to_pylist()
            assert file.statistics["ssn"].maximum == max(expected[which].to_pylist())
            assert file.integrity == "absent"


def test_a_denied_variant_is_skipped() -> None:
    provider = Answering({"a": KeyDeniedError("not for you")}, b=B)
    with EncryptedOrcFile(TWO, provider, strict=True) as file:
        assert file.read(["ssn"])["ssn"][0].as_py() == "other"
    assert provider.asked == ["a", "b"]
    provider = Answering({}, a=A, b=B)
    with EncryptedOrcFile(TWO, provider) as file:
        file.read()
    assert provider.asked == ["a"]  # The second key is not even asked for, and the first one once.


def test_without_keys_the_mask_is_read() -> None:
    with EncryptedOrcFile(TWO) as file, pytest.warns(MaskedDataWarning, match="values: ssn .*no key a@0"):
        assert file.read(["ssn"])["ssn"].null_count == 500
    with pytest.raises(KeyMissingError, match="column 'ssn' of <bytes> cannot be read"):
        EncryptedOrcFile(TWO, strict=True)


@pytest.mark.parametrize("strict", [True, False])
def test_a_wrong_key_or_unavailable_service_is_always_an_error(strict: bool) -> None:
    wrong = os.urandom(16)
    with pytest.raises(WrongKeyError, match="the key a@0 does not open"):
        EncryptedOrcFile(TWO, keys(a=wrong, b=B), strict=strict)
    with pytest.raises(WrongKeyError, match="the key b@0 does not open"):
        EncryptedOrcFile(TWO, keys(b=os.urandom(32)), strict=strict)
    for silent in ("a", "b"):
        provider = Answering({silent: KeyServiceError("timed out")}, **({"b": B} if silent == "a" else {}))
        with pytest.raises(KeyServiceError, match="timed out"):
            EncryptedOrcFile(TWO, provider, strict=strict)


NESTED = put_together([Variant(ZIP, "a", A), Variant(CITY, "b", B)])


def test_fields_of_a_struct_are_masked_separately() -> None:
    with EncryptedOrcFile(NESTED, keys(a=A, b=B), strict=True) as file:
        assert file.read(["addr"]).equals(TRUE.select(["addr"]))
        assert [column.path for column in file.variants] == ["addr.zip", "addr.city"]
    with EncryptedOrcFile(NESTED, keys(b=B)) as file:
        assert file.masked_columns == ["addr"]
        assert file.schema.field("addr").metadata[MASKED] == b"nullify"
        with pytest.warns(MaskedDataWarning, match=r"values: addr\.zip \(.* no key a@0"):
            rows = file.read(["addr"])["addr"].to_pylist()
        assert rows[:2] == [None, {"zip": None, "city": "city 1"}]
        with pytest.warns(MaskedDataWarning):
            schema = file.read(["addr.zip"]).schema
        assert schema.field("addr").metadata[MASKED] == b"nullify"
        with warnings.catch_warnings():  # What is asked for is not masked.
            warnings.simplefilter("error")
            found = file.read(["addr.city", "id"])
        assert found["addr"].to_pylist()[1] == {"city": "city 1"}
        assert MASKED not in found.schema.field("addr").metadata
        assert file.statistics["addr"].null_count == TRUE["addr"].null_count


@pytest.mark.parametrize(
    ("provider", "error", "message"),
    [
        (keys(a=A), KeyMissingError, r"column 'addr\.city' of <bytes> cannot be read: .* no key b@0"),
        (Answering({"a": KeyDeniedError("no")}, b=B), KeyDeniedError, r"column 'addr\.zip' of <bytes>"),
    ],
)
def test_strict_needs_the_keys_of_nested_columns(
    provider: MemoryKeyProvider, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        EncryptedOrcFile(NESTED, provider, strict=True)


@pytest.mark.parametrize("strict", [True, False])
def test_wrong_keys_of_nested_columns_are_found_when_opening(strict: bool) -> None:
    with pytest.raises(WrongKeyError, match=r"the key b@0 does not open column 'addr\.city'"):
        EncryptedOrcFile(NESTED, keys(a=A, b=os.urandom(32)), strict=strict)
    with pytest.raises(KeyServiceError):
        EncryptedOrcFile(NESTED, Answering({"b": KeyServiceError("down")}, a=A), strict=strict)


WHOLE = put_together([Variant(0, "a", A)])


def test_an_encrypted_root() -> None:
    with EncryptedOrcFile(WHOLE, keys(a=A), strict=True) as file:
        assert file.read().equals(TRUE)
        assert file.read(["addr.zip"])["addr"][1].as_py() == {"zip": "00001"}
        assert file.statistics["ssn"].maximum == "000000499"
    with EncryptedOrcFile(WHOLE) as file:
        assert file.masked_columns == ["id", "ssn", "addr"]
        assert all(field.metadata[MASKED] == b"nullify" for field in file.schema)
        with pytest.warns(MaskedDataWarning, match="values: all columns "):
            assert file.read(["ssn"])["ssn"].null_count == 500
    with pytest.raises(KeyMissingError, match="<all rows>"):
        EncryptedOrcFile(WHOLE, strict=True)
    with pytest.raises(WrongKeyError):
        EncryptedOrcFile(WHOLE, keys(a=os.urandom(16)))


def test_only_the_keys_of_the_columns_read_are_named() -> None:
    both = put_together([Variant(SSN, "a", A), Variant(ZIP, "b", B)])
    with EncryptedOrcFile(both) as file:
        with pytest.warns(MaskedDataWarning) as caught:
            file.read(["ssn"])
        assert "b@0" not in str(caught[0].message)
        with pytest.warns(MaskedDataWarning) as caught:
            list(file.iter_batches(["addr.zip"]))
        assert "a@0" not in str(caught[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            file.read(["id", "addr.city"])


MERGED = put_together([Variant(SSN, "a", A, merged=True)])


def test_a_stripe_with_its_own_key() -> None:
    provider = Answering({}, a=A)
    with EncryptedOrcFile(MERGED, provider, strict=True) as file:
        assert provider.asked == ["a"]
        assert file.read().equals(TRUE.set_column(2, "addr", MASKED_ROWS["addr"]))
        assert file.read(["ssn"], predicate=col("ssn") == "000000123").num_rows == 1
    assert provider.asked == [
        "a",
        "a",
    ]  # Once for the footer and once for the stripe, however often it is read.


def test_an_unavailable_service_is_detected_before_decoding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = Answering({}, a=A)
    with EncryptedOrcFile(MERGED, provider) as file:
        provider.errors["a"] = KeyServiceError("down")
        assert file.read(["id"]).num_rows == 500  # Needs no key.
        monkeypatch.setattr(StripeDecoder, "decode", lambda *_: pytest.fail("decoded something"))
        for read in (file.read, lambda: next(file.iter_batches(["id", "ssn"]))):
            with pytest.raises(KeyServiceError, match="down"):
                read()


def test_a_wrong_stripe_key_is_detected_before_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    variant = Variant(SSN, "a", A, merged=True)
    data = put_together([variant])
    assert data.count(variant.stripe_encrypted) == 1
    damaged = data.replace(variant.stripe_encrypted, os.urandom(len(variant.stripe_encrypted)))
    monkeypatch.setattr(ArrowDecoder, "table", lambda *_: pytest.fail("decoded something"))
    with EncryptedOrcFile(damaged, keys(a=A)) as file, pytest.raises(WrongKeyError, match="in stripe 0"):
        file.read(["ssn"])
