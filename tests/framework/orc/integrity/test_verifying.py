"""Integrity checks by mode and key, of padding, reports, and copies."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pytest
from tagged_files import KEYS, flipped, opened, write

from lockgate.errors import (
    InputError,
    IntegrityError,
    KeyMissingError,
    MaskedDataWarning,
    WrongKeyError,
)
from lockgate.framework.keys import MemoryKeyProvider, NoKeys
from lockgate.framework.orc import (
    EncryptedOrcFile,
    decrypt_file,
    encrypt_file,
    rekey,
    verify_file,
)
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.integrity.header import find_header
from lockgate.framework.orc.integrity.mac import GRANULE, Mac
from lockgate.framework.orc.integrity.tag_maker import TagMaker
from lockgate.framework.orc.integrity.tail_tag import seal
from lockgate.framework.orc.sources.file_source import open_source
from lockgate.framework.orc.write import assembled_file


def without_tags(data: bytes, keep: Callable[[proto.Message], None] = lambda _: None) -> bytes:
    """Return the same file without tags."""
    tail = read_tail(open_source(data))
    footer, postscript = proto.Footer(), proto.PostScript()
    footer.CopyFrom(tail.footer)
    postscript.CopyFrom(tail.postscript)
    del footer.metadata[:], footer.types[0].attributes[:]
    keep(footer)
    content = frame(tail.codec, footer.SerializeToString(), tail.block_size)
    postscript.footer_length = len(content)
    ending = postscript.SerializeToString()
    return data[: tail.footer_offset] + content + ending + bytes([len(ending)])


# --- modes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "keys", "mode", "expected"),
    [
        ("tags", KEYS, "verify", "verified"),
        ("tags", KEYS, "require", "verified"),
        ("tags", KEYS, "ignore", "ignored"),
        ("tags", None, "verify", "unverified"),
        ("tags", None, "require", "you hold none"),
        ("tags", None, "ignore", "ignored"),
        ("none", KEYS, "verify", "absent"),
        ("none", KEYS, "require", "has no tags"),
        ("none", KEYS, "ignore", "ignored"),
        ("none", None, "verify", "absent"),
        ("plain", None, "verify", "absent"),
        ("plain", KEYS, "require", "has no tags"),
    ],
)
def test_each_mode_checks_as_documented(
    small: bytes, kind: str, keys: MemoryKeyProvider | None, mode: str, expected: str
) -> None:
    data = {"tags": small, "none": without_tags(small), "plain": write(pa.table({"ssn": ["1"]}), encrypt="")}
    if " " in expected:
        with pytest.raises(IntegrityError, match=expected):
            EncryptedOrcFile(data[kind], keys, integrity=mode)  # type: ignore[arg-type]  # a text of a parameter
        return
    with EncryptedOrcFile(data[kind], keys, integrity=mode) as file:  # type: ignore[arg-type]  # a text of a parameter
        assert file.integrity == expected
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MaskedDataWarning)
            assert file.read().num_rows in (1, 10)


def test_another_mode_is_refused(small: bytes) -> None:
    with pytest.raises(
        InputError, match=r"'verify', 'require' or 'ignore', not 'verfy'; did you mean 'verify'"
    ):
        EncryptedOrcFile(small, KEYS, integrity="verfy")  # type: ignore[arg-type]  # wrong on purpose


def test_without_a_key_the_file_is_unverified(small: bytes) -> None:
    with EncryptedOrcFile(small) as file, pytest.warns(MaskedDataWarning, match="verified"):
        assert file.read()["ssn"].null_count == 10
    report = verify_file(small)
    assert (report.status, report.checked) == ("unverified", 0)
    assert verify_file(without_tags(small), KEYS).status == "absent"


def test_incomplete_tags_are_damage_even_without_a_key(small: bytes) -> None:
    def mark(footer: proto.Message) -> None:
        footer.types[0].attributes.add(key="lockgate.integrity", value="1")

    stripped = without_tags(small, mark)
    for keys in (KEYS, None):
        with pytest.raises(IntegrityError, match="0 headers, 0 lists and 1 marks"):
            EncryptedOrcFile(stripped, keys)
        with pytest.raises(IntegrityError):
            verify_file(stripped, keys)
    with EncryptedOrcFile(stripped, KEYS, integrity="ignore") as file:
        assert file.read()["ssn"].to_pylist() == [str(i) for i in range(10)]


def test_a_damaged_key_name_looks_like_a_missing_key(small: bytes) -> None:
    changed = small.replace(b"pii", b"pij")
    assert changed != small
    with EncryptedOrcFile(changed, KEYS) as file:
        assert file.integrity == "unverified"
        with pytest.warns(MaskedDataWarning, match="verified"):
            file.read()
    with pytest.raises(KeyMissingError):
        EncryptedOrcFile(changed, KEYS, strict=True)
    with pytest.raises(IntegrityError):
        EncryptedOrcFile(changed, KEYS, integrity="require")


def test_another_key_of_that_name(small: bytes) -> None:
    wrong = MemoryKeyProvider({"pii@0": b"q" * 16})
    with pytest.raises(WrongKeyError):
        EncryptedOrcFile(small, wrong)
    with pytest.raises(WrongKeyError):
        verify_file(small, wrong)


def test_a_wrapped_key_that_does_not_open(small: bytes) -> None:
    stored = find_header(read_tail(open_source(small)))
    assert stored is not None
    position = small.index(stored.header.wraps[0].wrapped)
    with pytest.raises(IntegrityError, match="does not open with key 'pii', which is the right one"):
        EncryptedOrcFile(flipped(small, position), KEYS)


def test_a_compressed_footer_is_refused() -> None:
    data = write(pa.table({"ssn": ["1"] * 100}), compression="zlib")
    tail = read_tail(open_source(data))
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = packer.compress(tail.footer.SerializeToString()) + packer.flush()
    postscript = proto.PostScript()
    postscript.CopyFrom(tail.postscript)
    postscript.footer_length = len(packed) + 3
    ending = postscript.SerializeToString()
    header = (len(packed) << 1).to_bytes(3, "little")
    changed = data[: tail.footer_offset] + header + packed + ending + bytes([len(ending)])
    with pytest.raises(IntegrityError, match="the footer is compressed"):
        EncryptedOrcFile(changed, KEYS)


# --- what is written -------------------------------------------------------------------------------


def test_every_file_has_its_own_mac_key(small: bytes) -> None:
    def tail_tag(data: bytes) -> bytes:
        stored = find_header(read_tail(open_source(data)))
        assert stored is not None
        return stored.header.tail_tag

    again = write(pa.table({"id": range(10), "ssn": [str(i) for i in range(10)], "pay": range(10)}))
    assert tail_tag(again) != tail_tag(small)
    assert TagMaker()._key != TagMaker()._key
    assert TagMaker()._key.hex() not in repr(TagMaker())


def test_other_readers_ignore_the_tags(small: bytes) -> None:
    found = pyarrow.orc.ORCFile(pa.BufferReader(small)).read()
    assert found["pay"].to_pylist() == [*range(10)]
    assert found["ssn"].null_count == 10


def test_schemas_do_not_show_tags(small: bytes) -> None:
    with EncryptedOrcFile(small, KEYS) as file, EncryptedOrcFile(without_tags(small), KEYS) as other:
        assert file.schema.equals(other.schema, check_metadata=True)
        assert file.read().schema.equals(other.read().schema, check_metadata=True)


def test_an_empty_file_and_one_with_empty_streams() -> None:
    schema = pa.schema([("ssn", pa.string()), ("x", pa.int32())])
    data = write(schema.empty_table())
    report = verify_file(data, KEYS)
    assert (report.status, report.stripes, report.tags) == ("verified", 0, 0)
    with pytest.raises(IntegrityError):
        EncryptedOrcFile(flipped(data, len(data) - 30), KEYS)
    nulls = write(pa.table({"ssn": pa.nulls(50, pa.string()), "x": pa.nulls(50, pa.int32())}))
    source, tail = opened(nulls)
    assert any(not stream.length for stream in read_stripe(source, tail, 0).streams)
    assert verify_file(nulls, KEYS).status == "verified"
    with EncryptedOrcFile(nulls, KEYS, integrity="require") as file:
        assert file.read()["ssn"].null_count == 50


def test_rekeying_checks_the_source_and_tags_the_copy(small: bytes, tmp_path: Path) -> None:
    new = MemoryKeyProvider({"pii@1": b"n" * 16})
    for source in (small, without_tags(small)):
        rekey(source, tmp_path / "new.orc", KEYS, new_keys=new)
        with EncryptedOrcFile(tmp_path / "new.orc", new, integrity="require") as file:
            assert file.read()["ssn"].to_pylist() == [str(i) for i in range(10)]
        assert verify_file(tmp_path / "new.orc", new).status == "verified"
    decrypt_file(tmp_path / "new.orc", tmp_path / "plain.orc", new)
    plain = read_tail(open_source(tmp_path / "plain.orc"))
    assert find_header(plain) is None
    assert not plain.footer.metadata
    encrypt_file(tmp_path / "plain.orc", tmp_path / "again.orc", encrypt="pii:ssn", keys=KEYS)
    assert verify_file(tmp_path / "again.orc", KEYS).status == "verified"
    before = (tmp_path / "new.orc").read_bytes()
    tail = read_tail(open_source(small))
    damaged = flipped(small, tail.footer.stripes[0].offset + 5)
    for function in (rekey, decrypt_file):
        with pytest.raises(IntegrityError):
            function(damaged, tmp_path / "new.orc", KEYS)
    assert (tmp_path / "new.orc").read_bytes() == before
    rekey(damaged, tmp_path / "new.orc", KEYS, integrity="ignore")


def padded(data: bytes, mac_key: bytes, padding: bytes) -> bytes:
    """Return the file with bytes inserted before its second stripe, and with a matching tail tag."""
    tail = read_tail(open_source(data))
    stored = find_header(tail)
    assert stored is not None
    footer, postscript = proto.Footer(), proto.PostScript()
    footer.CopyFrom(tail.footer)
    postscript.CopyFrom(tail.postscript)
    start = footer.stripes[1].offset
    for stripe in footer.stripes[1:]:
        stripe.offset += len(padding)
    footer.content_length += len(padding)
    blank = stored.header.blanked().encode()
    for item in footer.metadata:
        item.value = blank if item.name == "lockgate.integrity" else item.value
    content = footer.SerializeToString()
    postscript.footer_length = len(frame(tail.codec, content, tail.block_size))
    ending = postscript.SerializeToString()
    ending += bytes([len(ending)])
    statistics = data[tail.stripe_statistics_offset : tail.footer_offset]
    content = seal(Mac(mac_key), statistics, content, blank, ending)
    stripes = data[:start] + padding + data[start : tail.stripe_statistics_offset]
    return stripes + statistics + frame(tail.codec, content, tail.block_size) + ending


def test_padding_must_be_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java may pad before a stripe; tags do not cover padding, so it must have no content."""
    monkeypatch.setattr(assembled_file, "TagMaker", lambda: TagMaker(b"k" * 32))
    table = pa.table({"ssn": [f"{i * 7919:09d}" for i in range(3000)]})
    data = write(table, stripe_size=9000, row_index_stride=500)
    for padding, status in ((bytes(77), "verified"), (bytes(76) + b"x", "damaged")):
        changed = padded(data, b"k" * 32, padding)
        report = verify_file(changed, KEYS)
        assert report.status == status
        source, tail = opened(changed)
        start = tail.footer.stripes[1].offset
        assert tail.stripes > 1
        if status == "verified":
            assert source.read_at(start - 80, 90) == changed[start - 80 : start + 10]
        else:
            assert [str(each) for each in report.damage] == [
                f"bytes {start - 77} to {start} (padding between stripes) are not as they were written"
            ]
            with pytest.raises(IntegrityError, match="outside of stripes"):
                source.read_at(start - 80, 90)
        with EncryptedOrcFile(changed, KEYS, integrity="require") as file:
            assert file.read().equals(table)


# --- whole files -----------------------------------------------------------------------------------


def test_progress_and_report(large: bytes, tmp_path: Path) -> None:
    path = tmp_path / "large.orc"
    path.write_bytes(large)
    told: list[tuple[int, int]] = []
    report = verify_file(path, KEYS, progress=lambda done, size: told.append((done, size)))
    assert (report.status, report.name) == ("verified", str(path))
    assert report.checked == report.size == len(large)
    source, tail = opened(large)
    granules = sum(
        -(-stream.length // GRANULE)
        for index in range(tail.stripes)
        for stream in read_stripe(source, tail, index).streams
    )
    assert report.tags == granules + tail.stripes
    assert told[-1] == (len(large), len(large))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    report.raise_for_damage()


def test_a_damaged_stripe_footer_leaves_the_other_stripes_to_be_checked(large: bytes) -> None:
    _, tail = opened(large)
    first, second = tail.footer.stripes[0], tail.footer.stripes[1]
    footer = first.offset + first.index_length + first.data_length
    data = flipped(flipped(large, footer + 3), second.offset + second.index_length + 9)
    report = verify_file(data, KEYS)
    assert report.status == "damaged"
    assert report.damage[0].location == "stripe 0, whose footer is damaged"
    assert [damage.start >= second.offset for damage in report.damage] == [False, True]
    assert "bytes 3 to" in str(report.damage[0])


def every_key() -> Iterator[MemoryKeyProvider]:
    for name, key in (("pii@0", b"p" * 16), ("fin@2", b"f" * 32)):
        yield MemoryKeyProvider({name: key})


def test_any_key_checks_everything() -> None:
    table = pa.table({"id": range(500), "ssn": [str(i) for i in range(500)], "pay": range(500)})
    data = write(table, encrypt="pii:ssn;fin:pay", compression="none")
    source, tail = opened(data)
    for keys in every_key():
        assert verify_file(data, keys).status == "verified"
        for stream in read_stripe(source, tail, 0).streams:
            if stream.length:
                assert verify_file(flipped(data, stream.offset), keys).status == "damaged"
    assert verify_file(data, NoKeys()).status == "unverified"
