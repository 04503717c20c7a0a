"""Reading: masks, strictness, wrong keys, projections, predicates and kinds of sources."""

from __future__ import annotations

import datetime
import io
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lockgate.errors import (
    ColumnNotFoundError,
    InputError,
    KeyDeniedError,
    KeyMissingError,
    KeyServiceError,
    MaskedDataWarning,
    UnsupportedTypeError,
    WrongKeyError,
)
from lockgate.framework.keys import KeyMetadata, MemoryKeyProvider
from lockgate.framework.orc import MASKED, Audit, EncryptedOrcFile, audit_file, write_table
from lockgate.framework.orc.read.stripe_decoder import StripeDecoder
from lockgate.pushdown import col


class Refusing(MemoryKeyProvider):
    """Raises an error for every request."""

    def __init__(self, error: Exception) -> None:
        super().__init__({})
        self._error = error

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        raise self._error


def test_without_keys_columns_are_masked_with_a_warning(encrypted: bytes, people: pa.Table) -> None:
    with EncryptedOrcFile(encrypted) as file:
        assert file.masked_columns == ["ssn", "email", "salary"]
        assert [(c.column, str(c.key), c.mask, c.open) for c in file.variants] == [
            ("ssn", "pii@0", "nullify", False),
            ("email", "pii@0", "sha256", False),
            ("salary", "fin@0", "nullify", False),
        ]
        with pytest.warns(
            MaskedDataWarning, match="read as masks, not as values: ssn, email, salary"
        ) as caught:
            table = file.read()
        assert Path(caught[0].filename).name == "test_reader.py"
    assert table["ssn"].null_count == people.num_rows
    marks = {field.name: (field.metadata or {}).get(MASKED) for field in table.schema}
    assert (marks["ssn"], marks["email"], marks["salary"], marks["id"]) == (
        b"nullify",
        b"sha256",
        b"nullify",
        None,
    )


def test_columns_that_are_not_masked_are_read_without_a_warning(encrypted: bytes, people: pa.Table) -> None:
    with EncryptedOrcFile(encrypted) as file:
        assert file.read(["id", "score"]).equals(people.select(["id", "score"]))


def test_one_key_opens_its_columns_only(encrypted: bytes, people: pa.Table, keys: MemoryKeyProvider) -> None:
    with EncryptedOrcFile(encrypted, MemoryKeyProvider({"fin@0": keys._keys._keys["fin", 0]})) as file:
        assert file.masked_columns == ["ssn", "email"]
        assert file.read(["salary"]).equals(people.select(["salary"]))
        with pytest.warns(MaskedDataWarning, match="values: ssn "):
            assert file.read(["ssn"])["ssn"].null_count == people.num_rows


def test_strict_refuses_before_any_data(encrypted: bytes, keys: MemoryKeyProvider) -> None:
    with pytest.raises(KeyMissingError, match=r"column 'salary' of <bytes> cannot be read: .* no key fin@0"):
        EncryptedOrcFile(encrypted, MemoryKeyProvider({"pii@0": keys._keys._keys["pii", 0]}), strict=True)


def test_a_denied_key_masks_unless_strict(encrypted: bytes) -> None:
    denied = Refusing(KeyDeniedError("not for you"))
    with pytest.raises(KeyDeniedError, match="not for you"):
        EncryptedOrcFile(encrypted, denied, strict=True)
    with EncryptedOrcFile(encrypted, denied) as file, pytest.warns(MaskedDataWarning, match="not for you"):
        file.read(["ssn"])


def test_an_unavailable_key_service_is_no_missing_key(encrypted: bytes) -> None:
    with pytest.raises(KeyServiceError, match="timed out"):
        EncryptedOrcFile(encrypted, Refusing(KeyServiceError("timed out")))


@pytest.mark.parametrize("codec", ["zstd", "snappy", "zlib", "lz4", "none"])
def test_a_wrong_key_is_found_before_decoding(codec: str, written: Callable[..., bytes]) -> None:
    data = written(compression=codec)
    for _ in range(40):
        wrong = MemoryKeyProvider({"pii@0": os.urandom(16), "fin@0": os.urandom(32)})
        with pytest.raises(WrongKeyError, match=r"the key fin@0 does not open column 'salary' of <bytes>"):
            EncryptedOrcFile(data, wrong)


def test_a_key_of_another_size_is_wrong(encrypted: bytes) -> None:
    with pytest.raises(WrongKeyError, match="fin@0 of 256 bits, but this provider has one of 128 bits"):
        EncryptedOrcFile(encrypted, MemoryKeyProvider({"pii@0": bytes(16), "fin@0": bytes(16)}))


def test_masks_are_not_written_as_values(encrypted: bytes) -> None:
    with EncryptedOrcFile(encrypted) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskedDataWarning)
        table = file.read(["id", "ssn"])
    with pytest.raises(InputError, match="column 'ssn' holds masks, not values"):
        write_table(table, io.BytesIO())


def test_columns_are_read_in_the_requested_order(
    encrypted: bytes, people: pa.Table, keys: MemoryKeyProvider
) -> None:
    with EncryptedOrcFile(encrypted, keys, timestamp_unit="us") as file:
        assert file.num_stripes > 1
        for names in (["ssn"], ["address", "id"], ["tags", "salary", "email"], people.schema.names[::-1]):
            assert file.read(names).equals(people.select(names))
        assert file.read([]).num_rows == people.num_rows
        assert sum(batch.num_rows for batch in file.iter_batches(["id"])) == people.num_rows
        with pytest.raises(ColumnNotFoundError, match="'emial'; did you mean 'email'"):
            file.read(["emial"])
        with pytest.raises(ColumnNotFoundError):
            next(file.iter_batches(["nothing"]))


def test_names_with_dots_are_names(keys: MemoryKeyProvider) -> None:
    table = pa.table({"a.b": [1, 2], "a": [{"b": 3}, {"b": 4}], "c.d": ["x", "y"]})
    for encrypt in (None, "pii:c.d"):
        sink = io.BytesIO()
        write_table(table, sink, encrypt=encrypt, keys=keys)
        with EncryptedOrcFile(sink.getvalue(), keys) as file:
            assert file.read().equals(table)
            assert file.read(["a.b"]).equals(table.select(["a.b"]))
            assert file.read(["c.d", "a"]).equals(table.select(["c.d", "a"]))


def test_predicates_filter_by_true_values(
    encrypted: bytes, people: pa.Table, keys: MemoryKeyProvider
) -> None:
    wanted = people["ssn"][321].as_py()
    with EncryptedOrcFile(encrypted, keys) as file:
        assert file.read(["id"], predicate=col("ssn") == wanted)["id"].to_pylist() == [321]
        assert file.read(["id"], predicate=pc.field("ssn") == wanted)["id"].to_pylist() == [321]
        assert file.read(["ssn"], predicate=(col("id") >= 5) & (col("id") < 7)).num_rows == 2
        assert file.read(["id"], predicate=col("email").is_null()).num_rows == people["email"].null_count
        assert file.read(predicate=col("ssn") == "absent").schema.equals(file.schema)
        with pytest.raises(InputError, match="a predicate is one of"):
            file.read(predicate="ssn = 1")


def test_stripes_are_skipped_by_decrypted_statistics(
    keys: MemoryKeyProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"id": range(20000), "ssn": [f"{i:09d}" for i in range(20000)]})
    sink = io.BytesIO()
    write_table(table, sink, encrypt="pii:ssn,id", keys=keys, stripe_size=20000)
    decoded: list[int] = []
    original = StripeDecoder.decode

    def spy(self: StripeDecoder, index: int) -> pa.Table:
        decoded.append(index)
        return original(self, index)

    monkeypatch.setattr(StripeDecoder, "decode", spy)
    with EncryptedOrcFile(sink, keys) as file:
        assert file.num_stripes > 5
        assert file.read(["id"], predicate=col("ssn") == "000012345")["id"].to_pylist() == [12345]
        assert len(decoded) == 1
        assert file.read(predicate=col("id") > 20000).num_rows == 0
        assert len(decoded) == 1


def test_predicates_on_masks_see_masks(encrypted: bytes, people: pa.Table) -> None:
    with EncryptedOrcFile(encrypted) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskedDataWarning)
        assert file.read(["id"], predicate=col("ssn") == people["ssn"][3].as_py()).num_rows == 0
        assert file.read(["id"], predicate=col("ssn").is_null()).num_rows == people.num_rows


class RandomAccess:
    """A random access object of a file system."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.closed = False
        self.reads = 0

    def read_at(self, offset: int, length: int) -> bytes:
        self.reads += 1
        return self._data[offset : offset + length]

    def close(self) -> None:
        self.closed = True


class Folder:
    """A file system with one file."""

    def __init__(self, data: bytes) -> None:
        self.file = RandomAccess(data)

    def open_input(self, path: str) -> RandomAccess:
        return self.file


def test_every_kind_of_source_gives_the_same_rows(
    encrypted: bytes, people: pa.Table, keys: MemoryKeyProvider, tmp_path: Path
) -> None:
    path = tmp_path / "people.orc"
    path.write_bytes(encrypted)
    folder = Folder(encrypted)
    with open(path, "rb") as file, open(path, "rb", buffering=0) as raw:
        sources: list[Any] = [
            path,
            str(path),
            encrypted,
            bytearray(encrypted),
            pa.py_buffer(encrypted),
            io.BytesIO(encrypted),
            file,
            raw,
            pa.OSFile(str(path)),
            RandomAccess(encrypted),
            (folder, "people.orc"),
            (pa.fs.LocalFileSystem(), str(path)),
        ]
        for source in sources:
            with EncryptedOrcFile(source, keys, timestamp_unit="us") as opened:
                assert opened.read().equals(people), source
                assert opened.read(["email"]).equals(people.select(["email"]))
        assert not file.closed
    assert folder.file.closed
    with pytest.raises(InputError, match="not a int"):
        EncryptedOrcFile(3)
    with pytest.raises(InputError, match="has no open_input"):
        EncryptedOrcFile((object(), "x"))
    with pytest.raises(FileNotFoundError):
        EncryptedOrcFile(tmp_path / "absent.orc")


def test_remote_streams_are_read_in_few_requests(encrypted: bytes, keys: MemoryKeyProvider) -> None:
    source = RandomAccess(encrypted)
    with EncryptedOrcFile(source, keys) as file:
        opened = source.reads
        file.read(["id"])
        assert source.reads - opened <= 3 * file.num_stripes


def test_tables_outlive_their_file(
    encrypted: bytes, people: pa.Table, keys: MemoryKeyProvider, tmp_path: Path
) -> None:
    path = tmp_path / "people.orc"
    path.write_bytes(encrypted)
    with EncryptedOrcFile(path, keys) as file:
        first = file.read(["ssn"])
        second = file.read(["email"])  # reuses the buffer that the first was decoded from
    assert first.equals(people.select(["ssn"]))
    assert second.equals(people.select(["email"]))
    sink = tmp_path / "plain.orc"
    write_table(people, sink)
    with EncryptedOrcFile(sink) as file:
        plain = file.read(["ssn"])
    assert plain.equals(first)


def test_statistics_are_true_with_the_key_and_of_the_mask_without(
    encrypted: bytes, people: pa.Table, keys: MemoryKeyProvider
) -> None:
    with EncryptedOrcFile(encrypted, keys) as file:
        found = file.statistics
        assert (found["ssn"].minimum, found["ssn"].maximum) == (
            min(people["ssn"].to_pylist()),
            max(people["ssn"].to_pylist()),
        )
        assert found["email"].null_count == people["email"].null_count
        assert found["salary"].maximum == max(people["salary"].to_pylist())
        assert found["born"].minimum == people["born"][0].as_py()
        assert (found["active"].minimum, found["active"].maximum) == (False, True)
        assert found["seen"].minimum <= people["seen"][0].as_py() < found["seen"].maximum
        for stripe in file.stripe_statistics:
            assert found["ssn"].minimum <= stripe["ssn"].minimum <= stripe["ssn"].maximum
    with EncryptedOrcFile(encrypted) as file:
        assert file.statistics["ssn"].minimum is None
        assert file.statistics["ssn"].null_count == people.num_rows
        assert all(stripe["ssn"].maximum is None for stripe in file.stripe_statistics)


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("encrypt", [None, "pii:t"])
def test_times_beyond_nanoseconds(zone: str | None, encrypt: str | None, keys: MemoryKeyProvider) -> None:
    moments = [
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
        None,
        datetime.datetime(1, 1, 1),
        datetime.datetime(1969, 12, 31),
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
    ]
    table = pa.table(
        {"id": range(1000), "t": pa.array(moments * 200, pa.timestamp("us")), "s": [{"x": "y"}] * 1000}
    )
    table = table.set_column(1, "t", table["t"].cast(pa.timestamp("us", zone)))
    sink = io.BytesIO()
    write_table(table, sink, encrypt=encrypt, keys=keys)
    for source in (sink, sink.getvalue()):
        with EncryptedOrcFile(source, keys, timestamp_unit="us") as file:
            assert file.read().equals(table)
            assert file.read(["t"], predicate=col("id") < 3).equals(table.select(["t"]).slice(0, 3))
        with (
            EncryptedOrcFile(source, keys) as file,
            pytest.raises(UnsupportedTypeError, match='timestamp_unit="us"'),
        ):
            file.read()
    with pytest.raises(InputError, match="timestamp_unit must be"):
        EncryptedOrcFile(sink, keys, timestamp_unit="ms")  # type: ignore[arg-type]  # wrong on purpose


def test_the_audit_finds_columns_with_wrong_encryption(people: pa.Table) -> None:
    old = MemoryKeyProvider({"pii@0": bytes(16), "fin@0": bytes(32)})
    new = MemoryKeyProvider({"pii@0": bytes(16), "pii@1": bytes(16), "fin@0": bytes(32)})
    sink = io.BytesIO()
    write_table(people, sink, encrypt="pii:ssn;fin:salary", keys=old)
    assert not audit_file(sink, {"ssn": "pii", "salary": "fin", "not there": "pii"}, old)
    assert audit_file(sink, {"ssn": "pii", "salary": "pii", "email": "pii"}) == Audit(
        ("email",), ("salary",), tagged=True, encrypted=True
    )
    assert audit_file(sink, {"ssn": "pii", "salary": "fin"}, new) == Audit(
        (), ("ssn",), tagged=True, encrypted=True
    )
    plain = io.BytesIO()
    write_table(people, plain)
    assert audit_file(plain, {"ssn": "pii", "id": "fin"}) == Audit(("ssn", "id"), ())


def test_texts_of_objects_have_no_key(encrypted: bytes, keys: MemoryKeyProvider) -> None:
    with EncryptedOrcFile(encrypted, keys) as file:
        shown = repr(file) + repr(file.variants) + repr(file._variants) + repr(keys)
    for material in keys._keys._keys.values():
        assert material.hex() not in shown
        assert repr(material)[2:-1] not in shown
