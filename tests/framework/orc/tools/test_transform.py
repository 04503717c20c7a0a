"""Rekeying, decrypting and encrypting files: no value is lost or exposed."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.errors import (
    ColumnNotFoundError,
    EncryptionKeyError,
    InputError,
    KeyMissingError,
    UnsupportedError,
    WrongKeyError,
)
from lockgate.framework.keys import MemoryKeyProvider, NoKeys
from lockgate.framework.orc import EncryptedOrcFile, decrypt_file, encrypt_file, rekey, write_table
from lockgate.framework.orc.encryption.decrypted_columns import ENCRYPTED
from lockgate.framework.orc.encryption.stream_cipher import crypt
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.layout import StreamKind
from lockgate.framework.orc.format.merge_statistics import merge_statistics
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.integrity.tag_maker import remove_tags
from lockgate.framework.orc.read.stripe_statistics import decrypted_statistics, read_metadata

TESTDATA = os.environ.get("LOCKGATE_TESTDATA")
NEW = MemoryKeyProvider({"pii@0": b"a" * 16, "pii@3": b"b" * 32, "fin@0": b"c" * 32, "aaa@1": b"d" * 16})


def rewritten(function: Callable[..., Any], source: Any, *arguments: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    done = function(source, sink, *arguments, **options)
    assert done.size == len(sink.getvalue())
    return sink.getvalue()


def contents(data: bytes, keys: Any) -> tuple[Any, ...]:
    """Return everything that a holder of the keys can read."""
    with EncryptedOrcFile(data, keys, strict=True) as file:
        return file.read(), file.statistics, file.stripe_statistics, file.num_stripes


def masks(data: bytes) -> list[tuple[Any, ...]]:
    """Return what anyone can read: the stored unencrypted streams, stripe by stripe."""
    with EncryptedOrcFile(data) as file:
        return [
            (each.kind, each.column, bytes(file._source.read_at(each.offset, each.length)))
            for index in range(file.num_stripes)
            for each in read_stripe(file._source, file._tail, index).streams
            if each.variant is None
        ]


def ciphertexts(data: bytes) -> set[bytes]:
    with EncryptedOrcFile(data) as file:
        return {
            bytes(file._source.read_at(each.offset, 16))
            for index in range(file.num_stripes)
            for each in read_stripe(file._source, file._tail, index).streams
            if each.variant is not None and each.length >= 16
        }


@pytest.mark.parametrize("compression", ["none", "zstd", "zlib", "snappy", "lz4"])
def test_rekey_keeps_everything_but_the_keys(
    written: Callable[..., bytes], keys: MemoryKeyProvider, compression: str
) -> None:
    before = written(compression=compression, bloom_filter_columns=["ssn"])
    after = rewritten(rekey, before, keys, new_keys=NEW)
    assert contents(after, NEW) == contents(before, keys)
    assert masks(after) == masks(before)
    assert not ciphertexts(after) & ciphertexts(before)
    with EncryptedOrcFile(after, NEW) as file:
        assert {column.column: str(column.key) for column in file.variants} == {
            "ssn": "pii@3",
            "email": "pii@3",
            "salary": "fin@0",
        }
    with pytest.raises(EncryptionKeyError):
        EncryptedOrcFile(after, keys, strict=True)


def test_a_renamed_key_changes_the_order_of_variants(encrypted: bytes, keys: MemoryKeyProvider) -> None:
    """Variants are ordered by the names of their keys, so their order changes in every stripe."""
    after = rewritten(rekey, encrypted, keys, new_keys=NEW, rename={"pii": "aaa"})
    assert contents(after, NEW) == contents(encrypted, keys)
    with EncryptedOrcFile(after, NEW) as file:
        assert [key.key_name for key in file._tail.footer.encryption.key] == ["aaa", "fin"]
        assert {str(column.key) for column in file.variants} == {"aaa@1", "fin@0"}
        assert [file._variants.key(number).name for number in range(3)] == ["aaa", "aaa", "fin"]
    back = rewritten(rekey, after, NEW, new_keys=keys, rename={"aaa": "pii"})
    assert contents(back, keys) == contents(encrypted, keys)
    assert len(back) == len(rewritten(rekey, encrypted, keys))


def test_new_local_keys_with_the_same_master_keys(encrypted: bytes, keys: MemoryKeyProvider) -> None:
    after = rewritten(rekey, encrypted, keys)
    assert contents(after, keys) == contents(encrypted, keys)
    assert not ciphertexts(after) & ciphertexts(encrypted)


def test_rekey_in_place(encrypted: bytes, keys: MemoryKeyProvider, tmp_path: Path) -> None:
    path = tmp_path / "people.orc"
    path.write_bytes(encrypted)
    rekey(path, path, keys, new_keys=NEW)
    assert contents(path.read_bytes(), NEW) == contents(encrypted, keys)
    assert [each.name for each in tmp_path.iterdir()] == ["people.orc"]


def test_a_replaced_file_keeps_its_mode_and_its_links(
    encrypted: bytes, keys: MemoryKeyProvider, tmp_path: Path
) -> None:
    path, link = tmp_path / "people.orc", tmp_path / "link.orc"
    path.write_bytes(encrypted)
    path.chmod(0o600)
    link.symlink_to(path)
    decrypt_file(path, link, keys)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert pyarrow.orc.read_table(path).num_rows == 1000


@pytest.mark.parametrize("function", [rekey, decrypt_file])
def test_without_the_right_keys_nothing_is_written(
    encrypted: bytes, keys: MemoryKeyProvider, tmp_path: Path, function: Callable[..., Any]
) -> None:
    path = tmp_path / "people.orc"
    path.write_bytes(encrypted)
    wrong = MemoryKeyProvider({"pii@0": bytes(16), "fin@0": bytes(32)})
    for held, error in ((NoKeys(), KeyMissingError), (wrong, WrongKeyError)):
        with pytest.raises(error):
            function(path, path, held)
        with pytest.raises(error):
            function(path, tmp_path / "copy.orc", held)
    assert path.read_bytes() == encrypted
    assert [each.name for each in tmp_path.iterdir()] == ["people.orc"]


def test_rekey_refuses(encrypted: bytes, keys: MemoryKeyProvider, written: Callable[..., bytes]) -> None:
    sink = io.BytesIO()
    with pytest.raises(InputError, match="uses no key 'pi'; did you mean 'pii'"):
        rekey(encrypted, sink, keys, rename={"pi": "fin"})
    with pytest.raises(KeyMissingError, match="no key 'other'"):
        rekey(encrypted, sink, keys, rename={"pii": "other"})
    plain = written(encrypt=None, mask=None)
    with pytest.raises(InputError, match="nothing to rekey"):
        rekey(plain, sink, keys)
    with pytest.raises(InputError, match="nothing to decrypt"):
        decrypt_file(plain, sink, keys)
    assert sink.getvalue() == b""


def test_one_file_object_is_not_read_and_written(encrypted: bytes, keys: MemoryKeyProvider) -> None:
    file = io.BytesIO(encrypted)
    for copy in (rekey, decrypt_file):
        with pytest.raises(InputError, match="cannot be read and written at once"):
            copy(file, file, keys)
    assert file.getvalue() == encrypted


def unmarked(schema: pa.Schema) -> pa.Schema:
    """Return the schema without the marks of decrypted columns."""
    kept = [{key: text for key, text in (each.metadata or {}).items() if key != ENCRYPTED} for each in schema]
    return pa.schema([each.with_metadata(left or None) for each, left in zip(schema, kept, strict=True)])


@pytest.mark.parametrize("compression", ["none", "zstd", "snappy"])
def test_pyarrow_reads_a_decrypted_file(
    written: Callable[..., bytes], keys: MemoryKeyProvider, compression: str
) -> None:
    before = written(compression=compression, bloom_filter_columns=["ssn"])
    plain = rewritten(decrypt_file, before, keys)
    read, *told = contents(before, keys)
    assert pyarrow.orc.ORCFile(pa.BufferReader(plain)).read().equals(read)
    with EncryptedOrcFile(plain) as file:
        assert not file.variants
        assert [file.statistics, file.stripe_statistics, file.num_stripes] == told
        assert file.schema.equals(unmarked(read.schema), check_metadata=True)


def test_encrypt_then_decrypt(
    written: Callable[..., bytes], keys: MemoryKeyProvider, people: pa.Table
) -> None:
    plain = written(encrypt=None, mask=None, compression="snappy", field_ids={"id": 7, "ssn": 8})
    after = rewritten(encrypt_file, plain, encrypt="pii:ssn,tags", mask="sha256:ssn", keys=keys)
    with EncryptedOrcFile(after, keys, strict=True) as file, EncryptedOrcFile(plain) as original:
        assert file._tail.codec.name == "SNAPPY"
        assert file._tail.footer.row_index_stride == 100
        assert unmarked(file.schema).equals(original.schema, check_metadata=True)
        assert file.read().equals(original.read())
        assert [column.column for column in file.variants] == ["ssn", "tags"]
    back = rewritten(decrypt_file, after, keys)
    assert pyarrow.orc.ORCFile(pa.BufferReader(back)).read()["ssn"].equals(people["ssn"])
    with pytest.raises(InputError, match="encrypted columns already"):
        encrypt_file(after, io.BytesIO(), encrypt="pii:id", keys=keys)
    with pytest.raises(InputError, match="nothing to encrypt"):
        encrypt_file(plain, io.BytesIO(), encrypt=" ", keys=keys)


def test_a_failed_encryption_keeps_the_file(
    written: Callable[..., bytes], keys: MemoryKeyProvider, tmp_path: Path
) -> None:
    path = tmp_path / "people.orc"
    path.write_bytes(plain := written(encrypt=None, mask=None))
    with pytest.raises(ColumnNotFoundError, match="did you mean 'ssn'"):
        encrypt_file(path, path, encrypt="pii:ssm", keys=keys)
    with pytest.raises(KeyMissingError):
        encrypt_file(path, path, encrypt="other:ssn", keys=keys)
    assert path.read_bytes() == plain
    assert [each.name for each in tmp_path.iterdir()] == ["people.orc"]


def test_no_value_is_in_the_clear_after_rekey_and_encrypt(keys: MemoryKeyProvider) -> None:
    secrets = [f"secret-{word}-0123456789" for word in ("alpha", "bravo", "charlie")]
    table = pa.table({"id": range(900), "name": [secrets[i % 3] for i in range(900)]})
    sink = io.BytesIO()
    write_table(table, sink, compression="none", stripe_size=4000, dictionary_key_size_threshold=0.9)
    plain = sink.getvalue()
    assert all(secret.encode() in plain for secret in secrets), "the search finds what is not encrypted"
    encrypted = rewritten(encrypt_file, plain, encrypt="pii:name", keys=keys)
    moved = rewritten(rekey, encrypted, keys, new_keys=NEW)
    for data in (encrypted, moved):
        assert not any(secret.encode() in data for secret in secrets)
    for material in NEW._keys._keys.values():
        assert material not in moved
    assert all(secret.encode() in rewritten(decrypt_file, moved, NEW) for secret in secrets)


def test_an_empty_file(written: Callable[..., bytes], people: pa.Table, keys: MemoryKeyProvider) -> None:
    before = written(people.slice(0, 0))
    after = rewritten(rekey, before, keys, new_keys=NEW)
    assert contents(after, NEW) == contents(before, keys)
    assert pyarrow.orc.ORCFile(pa.BufferReader(rewritten(decrypt_file, after, NEW))).nrows == 0


def merged(files: list[bytes], keys: MemoryKeyProvider) -> bytes:
    """Files put together as ORC's Java library merges them: each brings its stripes, their keys and numbers.

    Only the statistics are encrypted again, under a footer key that no stripe has.
    """
    opened = [EncryptedOrcFile(data, keys, strict=True) for data in files]
    tails, first = [file._tail for file in opened], opened[0]
    codec, block = tails[0].codec, tails[0].block_size
    footer, metadata = proto.Footer(), proto.Metadata()
    footer.CopyFrom(tails[0].footer)
    remove_tags(footer)  # Java merges no files whose user metadata differ; those without tags it does.
    footer.number_of_rows = sum(tail.footer.number_of_rows for tail in tails)
    del footer.stripes[:], footer.statistics[:]
    footer.statistics.extend(
        map(merge_statistics, zip(*(tail.footer.statistics for tail in tails), strict=True))
    )
    out = bytearray(b"ORC")
    for file in opened:
        metadata.stripe_stats.extend(read_metadata(file._source, file._tail).stripe_stats)
        for stripe in file._tail.footer.stripes:
            length = stripe.index_length + stripe.data_length + stripe.footer_length
            footer.stripes.add().CopyFrom(stripe)
            footer.stripes[-1].offset = len(out)
            out += file._source.read_at(stripe.offset, length)
    start, place = len(out), len(footer.stripes) + 1
    stripes = [decrypted_statistics(file._source, file._tail, file._variants) for file in opened]
    for number, variant in enumerate(footer.encryption.variants):
        local = keys.create_local_key(first._variants.key(number))
        variant.encrypted_key = local.encrypted
        both = [file._variants.statistics[number] for file in opened]
        whole = proto.FileStatistics(column=map(merge_statistics, zip(*both, strict=True)))
        content = frame(codec, whole.SerializeToString(), block)
        variant.file_statistics = crypt(local.plain, variant.root, StreamKind.FILE_STATISTICS, place, content)
        for stream in variant.stripe_statistics:
            each = [message for part in stripes for message in part[stream.column]]
            content = frame(codec, proto.ColumnarStripeStatistics(col_stats=each).SerializeToString(), block)
            stream.length = len(content)
            out += crypt(local.plain, stream.column, StreamKind.STRIPE_STATISTICS, place, content)
    postscript = proto.PostScript()
    postscript.CopyFrom(tails[0].postscript)
    postscript.stripe_statistics_length = len(out) - start
    for field, message in (("metadata_length", metadata), ("footer_length", footer)):
        content = frame(codec, message.SerializeToString(), block)
        setattr(postscript, field, len(content))
        out += content
    ending = postscript.SerializeToString()
    return bytes(out + ending + bytes([len(ending)]))


def test_a_merged_file_with_keys_for_each_stripe(
    written: Callable[..., bytes], people: pa.Table, keys: MemoryKeyProvider
) -> None:
    before = merged([written(), written(people.slice(500))], keys)
    with EncryptedOrcFile(before, keys, strict=True) as file:
        assert file.read().num_rows == 1500
        assert 1 in [file._variants.stripe_id(index) for index in range(1, file.num_stripes)]
    after = rewritten(rekey, before, keys, new_keys=NEW)
    assert contents(after, NEW) == contents(before, keys)
    with EncryptedOrcFile(after, NEW) as file:
        assert [file._variants.stripe_id(index) for index in range(file.num_stripes)] == [
            *range(1, file.num_stripes + 1)
        ]
    plain = rewritten(decrypt_file, before, keys)
    whole = pa.concat_tables([people, people.slice(500)])
    read = pyarrow.orc.ORCFile(pa.BufferReader(plain)).read()
    assert read["ssn"].equals(whole["ssn"])
    assert read["salary"].equals(whole["salary"])


def test_a_column_under_two_keys_is_refused(
    encrypted: bytes, keys: MemoryKeyProvider, monkeypatch: Any
) -> None:
    from lockgate.framework.orc.tools import transform

    def doubled(source: Any) -> Any:
        tail = original(source)
        tail.footer.encryption.variants[0].root = tail.footer.encryption.variants[1].root
        return tail

    original = transform.read_tail
    monkeypatch.setattr(transform, "read_tail", doubled)
    with pytest.raises(UnsupportedError, match="several keys"):
        rekey(encrypted, io.BytesIO(), keys)


@pytest.mark.skipif(
    TESTDATA is None, reason="needs apache/orc's examples in $LOCKGATE_TESTDATA/orc-encrypted"
)
def test_a_file_of_orcs_java_writer() -> None:
    jks = pytest.importorskip("jks")
    folder = Path(str(TESTDATA), "orc-encrypted")
    store = jks.KeyStore.load(str(folder / "kms.keystore"), "ORC_KEY", try_decrypt_keys=False)
    store.entries["pii@0"].decrypt("ORC_KEY")
    keys = MemoryKeyProvider({"pii@0": bytes(store.entries["pii@0"].key)})
    before = (folder / "sample1.orc").read_bytes()
    after = rewritten(rekey, before, keys, new_keys=NEW)
    assert contents(after, NEW) == contents(before, keys)
    plain = pyarrow.orc.ORCFile(pa.BufferReader(rewritten(decrypt_file, after, NEW))).read()
    assert plain.to_pylist() == [
        {"ssn": "123456789", "email": "dongjoon@apache.org", "name": "Dongjoon Hyun"}
    ]


@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(
    values=st.lists(
        st.tuples(st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.text(max_size=30)), max_size=60
    ),
    compression=st.sampled_from(["none", "zstd", "zlib", "snappy", "lz4"]),
    encrypt=st.sampled_from(["k:n", "k:t", "k:n,t", "k:n;a:t", "a:n;k:t,l"]),
)
def test_all_orders_of_transformations_keep_the_rows(
    values: list[tuple[int | None, str | None]], compression: str, encrypt: str
) -> None:
    old = MemoryKeyProvider({"k@0": os.urandom(16), "a@0": os.urandom(32)})
    new = MemoryKeyProvider({"b@4": os.urandom(32), "z@0": os.urandom(16)})
    table = pa.table(
        {
            "n": pa.array([n for n, _ in values], pa.int64()),
            "t": pa.array([t for _, t in values], pa.string()),
            "l": pa.array([None if n is None else [n, None] for n, _ in values], pa.list_(pa.int64())),
        }
    )
    sink = io.BytesIO()
    write_table(table, sink, compression=compression, stripe_size=200, row_index_stride=10)
    encrypted = rewritten(encrypt_file, sink.getvalue(), encrypt=encrypt, keys=old, stripe_size=100)
    rename = {name: target for name, target in (("k", "b"), ("a", "z")) if f"{name}:" in encrypt}
    moved = rewritten(rekey, encrypted, old, new_keys=new, rename=rename)
    plain = rewritten(decrypt_file, moved, new)
    assert contents(moved, new) == contents(encrypted, old)
    assert pyarrow.orc.ORCFile(pa.BufferReader(plain)).read().equals(table)
