"""Truncated and damaged files raise Lockgate's errors with the location, never a crash or another error."""

from __future__ import annotations

import datetime
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.errors import (
    CorruptFileError,
    EncryptionKeyError,
    IntegrityError,
    LockgateError,
    MaskedDataWarning,
    UnsupportedFormatError,
    WrongKeyError,
)
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.format import proto, tail
from lockgate.framework.orc.format.chunks import frame

CODECS = ["zstd", "snappy", "zlib", "lz4", "none"]


@pytest.fixture(scope="module", params=["zstd", pytest.param("none", marks=pytest.mark.long)])
def small(request: pytest.FixtureRequest, written: Callable[..., bytes], people: pa.Table) -> bytes:
    """A small file with several stripes."""
    table = people.select(["id", "ssn", "email", "salary", "tags"]).slice(0, 300)
    return written(table, compression=request.param, stripe_size=3000)


def metadata(data: bytes, keys: MemoryKeyProvider, **options: Any) -> pa.Schema:
    """Return all facts of a file that need no decoding of values."""
    with EncryptedOrcFile(data, keys, name="people.orc", **options) as file:
        assert file.statistics is not None
        assert file.stripe_statistics is not None
        assert repr(file) + repr(file.variants)
        return file.schema


def test_every_truncation_is_detected(small: bytes, keys: MemoryKeyProvider) -> None:
    for length in range(len(small)):
        with pytest.raises((CorruptFileError, UnsupportedFormatError)) as caught:
            EncryptedOrcFile(small[:length], keys, name="people.orc")
        assert "people.orc" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "at byte 0, the file has 0 bytes, too few"),
        (b"ORC\0", "too few for an ORC file"),
        (b"PAR1" + bytes(100), "at byte 0, it does not start with the letters ORC"),
        (
            b"ORC" + bytes(100),
            "at byte 102, the postscript cannot have 0 bytes; the file is probably cut off",
        ),
        (b"ORC" + b"\xff" * 100, "at byte 102, the postscript cannot have 255 bytes"),
        (b"ORC" + bytes(100) + b"\x05", "the postscript"),
    ],
)
def test_other_formats_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        EncryptedOrcFile(data, name="x.orc")


def flips(data: bytes, start: int, end: int, rng: random.Random) -> Iterator[bytes]:
    """Flip every third byte, one at a time: others each day, so that three days try all."""
    today = datetime.datetime.now(datetime.UTC).date()
    for position in range(start + today.toordinal() % 3, end, 3):
        changed = bytearray(data)
        changed[position] ^= rng.randrange(1, 256)
        yield bytes(changed)


def test_flipped_bytes_in_the_tail(small: bytes, keys: MemoryKeyProvider) -> None:
    with EncryptedOrcFile(small, keys) as file:
        schema, start = file.schema, file._tail.stripe_statistics_offset
    failed = 0
    for changed in flips(small, start, len(small), random.Random(1)):
        try:
            # A flip within a name or a number parses; only the tags tell.
            found = metadata(changed, keys, integrity="ignore")
            assert len(found) == len(schema)
        except LockgateError:
            failed += 1
        with pytest.raises((CorruptFileError, EncryptionKeyError, UnsupportedFormatError)):
            metadata(changed, keys, strict=True)
    assert failed > (len(small) - start) / 3 / 5


def error_of_reading(data: bytes, keys: MemoryKeyProvider) -> str | None:
    try:
        # Without the tags: a file of somebody else's has none.
        with EncryptedOrcFile(data, keys, integrity="ignore") as file:
            file.read()
    except CorruptFileError as error:
        return str(error)
    return None


def test_flipped_bytes_in_stripe_footers(small: bytes, keys: MemoryKeyProvider) -> None:
    rng = random.Random(2)
    with EncryptedOrcFile(small, keys) as file:
        stripes = [
            (s.offset + s.index_length + s.data_length, s.footer_length) for s in file._tail.footer.stripes
        ]
    assert len(stripes) > 1
    damaged = [
        changed for start, length in stripes[:2] for changed in flips(small, start, start + length, rng)
    ]
    for changed in damaged:
        with (
            pytest.raises(IntegrityError, match="the footer of stripe"),
            EncryptedOrcFile(changed, keys) as file,
        ):
            file.read()
    errors = [error for error in (error_of_reading(changed, keys) for changed in damaged) if error]
    assert len(errors) > len(damaged) / 2
    assert all("at byte" in error for error in errors)


def test_random_tails_are_refused(small: bytes, keys: MemoryKeyProvider) -> None:
    rng = random.Random(3)
    for _ in range(300):
        noise = small[: rng.randrange(3, len(small))] + rng.randbytes(rng.randrange(1, 300))
        with pytest.raises((CorruptFileError, UnsupportedFormatError)):
            EncryptedOrcFile(noise, keys)


def rebuilt(data: bytes, change: Callable[[proto.Message, proto.Message], None]) -> bytes:
    """The file with another footer or postscript."""
    with EncryptedOrcFile(data) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskedDataWarning)
        tail = file._tail
        footer, postscript = proto.Footer(), proto.PostScript()
        footer.CopyFrom(tail.footer)
        postscript.CopyFrom(tail.postscript)
        change(footer, postscript)
        content = frame(tail.codec, footer.SerializeToString(), tail.block_size)
        postscript.footer_length = len(content)
        ending = postscript.SerializeToString()
        return data[: tail.footer_offset] + content + ending + bytes([len(ending)])


def rows(footer: proto.Message, _: proto.Message) -> None:
    footer.number_of_rows += 1


def outside(footer: proto.Message, _: proto.Message) -> None:
    footer.stripes[-1].data_length += 10**6


def overlap(footer: proto.Message, _: proto.Message) -> None:
    footer.stripes[1].offset -= 1


def cycle(footer: proto.Message, _: proto.Message) -> None:
    footer.types[5].subtypes[0] = 0


def no_such_type(footer: proto.Message, _: proto.Message) -> None:
    footer.types[1].kind = 77


def no_such_child(footer: proto.Message, _: proto.Message) -> None:
    footer.types[5].subtypes[0] = 99


def no_types(footer: proto.Message, _: proto.Message) -> None:
    del footer.types[:]


def short_statistics(footer: proto.Message, _: proto.Message) -> None:
    del footer.statistics[-1]


def no_such_key(footer: proto.Message, _: proto.Message) -> None:
    footer.encryption.variants[0].key = 9


def no_such_root(footer: proto.Message, _: proto.Message) -> None:
    footer.encryption.variants[0].root = 99


def keys_lost(footer: proto.Message, _: proto.Message) -> None:
    del footer.stripes[0].encrypted_local_keys[:]


def foreign_statistics(footer: proto.Message, _: proto.Message) -> None:
    footer.encryption.variants[0].stripe_statistics[0].column = (1 << 32) - 1


def number_of_stripe(footer: proto.Message, _: proto.Message) -> None:
    footer.stripes[1].encrypt_stripe_id = (1 << 64) - 1


def block_size(_: proto.Message, postscript: proto.Message) -> None:
    postscript.compression_block_size = 1 << 40


def lengths(_: proto.Message, postscript: proto.Message) -> None:
    postscript.metadata_length = 1 << 60


def magic(_: proto.Message, postscript: proto.Message) -> None:
    postscript.magic = "PAR"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rows, "the stripes have 300 rows, but the footer says 301"),
        (outside, "which is not inside the file"),
        (overlap, "stripe 1 starts at"),
        (cycle, "the columns are not numbered in order"),
        (no_such_type, "column 1 has type number 77, which does not exist"),
        (no_such_child, "column 5 has a child number 99, which does not exist"),
        (no_types, "the footer has no types"),
        (short_statistics, "there are statistics of 6 columns, but 7 columns"),
        (no_such_key, "column 4 is encrypted with key number 9, which is not listed"),
        (no_such_root, "an encrypted column has number 99, but there are 7"),
        (keys_lost, "stripe 0 has 0 keys, not 3"),
        (foreign_statistics, "encrypted statistics of column 4 are of column 4294967295"),
        (number_of_stripe, "stripe 1 has the number 18446744073709551615 in its counters"),
        (block_size, "a compression block cannot have"),
        (lengths, "do not fit before the postscript"),
        (magic, "the postscript has no ORC mark"),
    ],
)
def test_contradictions_in_the_tail(
    change: Callable[[proto.Message, proto.Message], None], message: str, small: bytes
) -> None:
    with pytest.raises(
        CorruptFileError, match=rf"people.orc is not a valid ORC file: at byte \d+, .*{message}"
    ):
        EncryptedOrcFile(rebuilt(small, change), name="people.orc")


def test_a_file_with_magic_letters_only_at_its_start(people: pa.Table) -> None:
    """Hive before 0.12 wrote such files; Apache's `orc_no_format.orc` is one."""

    def unmarked(_: proto.Message, postscript: proto.Message) -> None:
        postscript.ClearField("magic")

    sink = pa.BufferOutputStream()
    pyarrow.orc.write_table(people.select(["id"]), sink)
    data = rebuilt(sink.getvalue().to_pybytes(), unmarked)
    with EncryptedOrcFile(data, name="old.orc") as file:
        assert file.read()["id"].to_pylist() == people["id"].to_pylist()
    with pytest.raises(CorruptFileError, match="it does not start with the letters ORC"):
        EncryptedOrcFile(b"RIFF" + data[3:], name="old.orc")


def test_a_damaged_key_of_a_stripe_is_found(small: bytes, keys: MemoryKeyProvider) -> None:
    """A stripe of a merged file may have its own key, which the file's statistics do not prove."""

    def change(footer: proto.Message, _: proto.Message) -> None:
        encrypted = footer.stripes[0].encrypted_local_keys
        encrypted[0] = bytes([encrypted[0][0] ^ 1]) + encrypted[0][1:]

    with pytest.raises(IntegrityError, match=r"people.orc is not as it was written: its tail"):
        EncryptedOrcFile(rebuilt(small, change), keys, name="people.orc")
    with EncryptedOrcFile(rebuilt(small, change), keys, name="people.orc", integrity="ignore") as file:
        with pytest.raises(WrongKeyError, match=r"does not open column 'salary' in stripe 0 of people.orc"):
            file.read()
        with pytest.raises(WrongKeyError):
            file.read(["id", "salary"])
        assert file.read(["ssn"]).num_rows == file.num_rows  # That key is whole, and the other not needed.


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("compression", 3, "compressed with LZO"),
        ("compression", 6, "compressed with BROTLI"),
    ],
)
def test_unsupported_codecs_are_named(field: str, value: int, message: str, small: bytes) -> None:
    def change(_: proto.Message, postscript: proto.Message) -> None:
        setattr(postscript, field, value)

    with pytest.raises(UnsupportedFormatError, match=message):
        EncryptedOrcFile(rebuilt(small, change))


def test_newer_versions_and_other_root_types_are_refused(small: bytes) -> None:
    def version(_: proto.Message, postscript: proto.Message) -> None:
        postscript.version[:] = [2, 0]

    def root(footer: proto.Message, _: proto.Message) -> None:
        del footer.types[1:]
        del footer.types[0].subtypes[:]
        del footer.types[0].field_names[:]
        footer.types[0].kind = 4
        footer.ClearField("encryption")

    def cipher(footer: proto.Message, _: proto.Message) -> None:
        footer.encryption.key[0].algorithm = 7

    for change, message in (
        (version, "ORC version 2.0"),
        (root, "does not hold rows"),
        (cipher, "cipher number 7"),
    ):
        with pytest.raises(UnsupportedFormatError, match=message):
            EncryptedOrcFile(rebuilt(small, change))


def test_a_file_that_shrinks_while_it_is_read(
    small: bytes, keys: MemoryKeyProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "TAIL_LENGTH", 1000)  # Else all of such a small file is kept when it is opened.

    class Shrinking:
        size = len(small)

        def __init__(self) -> None:
            self.cut = False

        def read_at(self, offset: int, length: int) -> bytes:
            return small[offset : offset + length - self.cut]

    source = Shrinking()
    with EncryptedOrcFile(source, keys) as file:
        source.cut = True
        with pytest.raises(CorruptFileError, match="is cut off"):
            file.read()
