"""The reported content and disclosure of a file, with and without keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import CorruptFileError, WrongKeyError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, Inspection, inspect_file
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.sources.file_source import open_source
from lockgate.framework.orc.tools.disclosure import EncryptedPart, reveals
from lockgate.framework.orc.tools.inspection import _path


def told(found: Inspection, column: str) -> str:
    return "\n".join(each for each in found.reveals if each.startswith(f"{column}:"))


def test_with_the_keys(encrypted: bytes, keys: MemoryKeyProvider, people: pa.Table) -> None:
    found = inspect_file(encrypted, keys)
    assert (found.layout.size, found.layout.rows, found.layout.compression) == (len(encrypted), 1000, "ZSTD")
    with EncryptedOrcFile(encrypted, keys) as file:
        for column in found.columns:
            statistics = file.statistics[column.name]
            assert (column.minimum, column.maximum) == (statistics.minimum, statistics.maximum)
            assert column.true_statistics
        assert len(found.stripes) == file.num_stripes
    assert [column.name for column in found.columns if column.encrypted] == ["ssn", "email", "salary"]
    assert {(each.column, each.key, each.cipher, each.mask, each.open) for each in found.encrypted} == {
        ("ssn", "pii@0", "AES_CTR_128", "nullify", True),
        ("email", "pii@0", "AES_CTR_128", "sha256", True),
        ("salary", "fin@0", "AES_CTR_256", "nullify", True),
    }
    # Everything is accounted for, byte by byte.
    parts = sum(each.index_bytes + each.data_bytes + each.footer_bytes for each in found.stripes)
    tail = found.layout.footer_bytes + found.layout.metadata_bytes + found.layout.encrypted_statistics_bytes
    assert 3 + parts + tail + encrypted[-1] + 1 == len(encrypted)
    assert sum(each.stored_bytes for each in found.encrypted) == sum(
        each.encrypted_bytes for each in found.stripes
    )


def test_without_keys_only_masks_are_described(
    written: Callable[..., bytes], keys: MemoryKeyProvider
) -> None:
    table = pa.table({"id": range(50), "code": [f"secret-{i % 2}" for i in range(50)]})
    data = written(table, encrypt="pii:code", mask=None)
    assert "secret-1" in str(inspect_file(data, keys))
    for held in (None, MemoryKeyProvider({"other@0": bytes(16)})):
        found = inspect_file(data, held)
        assert "secret" not in str(found)
        assert "secret" not in json.dumps(found.to_dict())
        assert "(of the mask)" in str(found)
        assert not found.encrypted[0].open
    with pytest.raises(WrongKeyError):
        inspect_file(data, MemoryKeyProvider({"pii@0": bytes(16)}))


def test_disclosure_is_complete(written: Callable[..., bytes]) -> None:
    table = pa.table(
        {
            "id": range(400),
            "word": [None if i % 9 == 0 else f"w{i % 7}" for i in range(400)],
            "mail": [f"{i}@example.org" for i in range(400)],
        }
    )
    data = written(
        table,
        encrypt="pii:word,mail",
        mask="sha256:mail",
        bloom_filter_columns=["mail"],
        dictionary_key_size_threshold=0.5,
        stripe_size=1_000_000,
    )
    found = inspect_file(data)
    assert found.reveals[0].endswith("400 rows in 1 stripe")
    assert "every value of id: not encrypted" in found.reveals
    assert "nothing of its values" in told(found, "word")
    assert "by the size of its dictionary: 7" in told(found, "word")
    assert "in which stripes some of its values are null (1 of 1)" in told(found, "word")
    assert "without salt" in told(found, "mail")
    assert "distinct values a stripe" not in told(found, "mail")
    assert "Bloom filters" in told(found, "mail")
    assert "Bloom filters" not in told(found, "word")


def test_a_plain_file_reveals_all(written: Callable[..., bytes], people: pa.Table) -> None:
    found = inspect_file(written(encrypt=None, mask=None))
    assert not found.encrypted
    assert not any(column.encrypted for column in found.columns)
    assert f"every value of {', '.join(people.column_names)}: not encrypted" in found.reveals


def test_json_holds_all_types(encrypted: bytes, keys: MemoryKeyProvider) -> None:
    found = json.loads(json.dumps(inspect_file(encrypted, keys).to_dict(), allow_nan=False))
    born = next(column for column in found["columns"] if column["name"] == "born")
    assert born["minimum"] == "2020-01-01"
    assert set(found) == {
        "name",
        "layout",
        "integrity",
        "columns",
        "keys",
        "encrypted",
        "stripes",
        "streams",
        "metadata",
        "reveals",
    }


def test_a_file_cannot_steer_the_terminal(written: Callable[..., bytes]) -> None:
    table = pa.table({"a\x1b[2J": ["\x1b]0;title\x07", "two\nlines"]})
    text = str(inspect_file(written(table, encrypt=None, mask=None)))
    assert all(each.isprintable() for each in text.splitlines())
    assert "\x1b" not in text


def test_paths_have_the_form_of_orc_encrypt(written: Callable[..., bytes]) -> None:
    nested = pa.struct([("b", pa.int32()), ("l", pa.list_(pa.string()))])
    table = pa.table(
        {
            "a": pa.array([{"b": 1, "l": ["x"]}], nested),
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    types = read_tail(open_source(written(table, encrypt=None, mask=None))).types
    paths = [_path(types, column) for column in range(1, len(types))]
    assert paths == ["a", "a.b", "a.l", "a.l._elem", "m", "m._key", "m._value"]


def test_inspection_shows_tags_and_who_can_check_them(
    encrypted: bytes, keys: MemoryKeyProvider, written: Callable[..., bytes]
) -> None:
    found = inspect_file(encrypted, keys)
    assert found.integrity.status == "verified"
    assert found.integrity.checked_by == ("fin@0", "pii@0")
    assert f"{found.integrity.stripe_tags:,} tags of the rest" in str(found)
    found = inspect_file(encrypted)
    assert found.integrity.status == "unverified"
    assert "a holder of one of fin@0, pii@0 can check them" in str(found)
    assert any("integrity tags" in each for each in found.reveals)
    found = inspect_file(written(encrypt=None, mask=None))
    assert found.integrity.status == "absent"
    assert "the file has no tags" in str(found)
    assert not any("integrity tags" in each for each in found.reveals)


def test_a_changed_tail(encrypted: bytes, keys: MemoryKeyProvider) -> None:
    """Inspection also describes damaged files, to help find the cause."""
    place = encrypted.rindex(b"street")
    changed = encrypted[:place] + b"STREET" + encrypted[place + 6 :]
    found = inspect_file(changed, keys)
    assert found.integrity.status == "damaged"
    assert "does not fit its tag" in str(found.integrity.damage)
    assert "integrity: DAMAGED" in str(found)


def test_keys_and_streams(encrypted: bytes, keys: MemoryKeyProvider) -> None:
    found = inspect_file(encrypted, keys)
    assert [(each.name, each.version, each.cipher, each.held) for each in found.keys] == [
        ("fin", 0, "AES_CTR_256", True),
        ("pii", 0, "AES_CTR_128", True),
    ]
    total = sum(each.index_bytes + each.data_bytes for each in found.stripes)
    assert sum(each.bytes for each in found.streams) == total
    for part in found.encrypted:
        of_part = [each.bytes for each in found.streams if each.column == part.column and each.key]
        assert sum(of_part) == part.stored_bytes
    assert "Streams" not in str(found)
    assert "ROW_INDEX" in found.text(streams=True)
    assert not any(each.held for each in inspect_file(encrypted).keys)


def test_disclosure_names_the_parents_of_encrypted_parts() -> None:
    samples = Path(__file__).resolve().parents[3] / "fixtures"
    part = EncryptedPart("a.b", "pii@0", "AES_CTR_128", "redact,9", False, 10, (3, 5), 1, True)
    tail = read_tail(open_source(next(samples.rglob("*.orc"))))
    sentences = list(reveals(tail, [part], ["mine", "lockgate.integrity"]))
    assert "the file's own metadata: mine" in sentences
    assert any("what encloses it is in the clear" in each for each in sentences)
    assert any("the shape of each" in each for each in sentences)
    assert any("by the size of its dictionary: 3 to 5" in each for each in sentences)


def test_bloom_filters_that_leak(written: Callable[..., bytes]) -> None:
    """ORC's Java library leaves Bloom filters of encrypted columns in the clear; Lockgate's writer encrypts
    them.
    """
    java = Path(__file__).resolve().parents[3] / "fixtures" / "orc" / "java-zlib.orc"
    found = inspect_file(java)
    assert [part.column for part in found.encrypted if part.leaked_bloom_filters] == ["ssn"]
    assert "WHICH VALUES IT HOLDS" in told(found, "ssn")
    assert "WHICH VALUES" not in told(found, "email")
    ours = inspect_file(written(bloom_filter_columns=["ssn", "id"]))
    assert any(part.bloom_filters for part in ours.encrypted)
    assert not any(part.leaked_bloom_filters for part in ours.encrypted)


def test_damage_is_an_error(encrypted: bytes) -> None:
    with pytest.raises(CorruptFileError):
        inspect_file(encrypted[:-10])


def test_an_empty_file(written: Callable[..., bytes], people: pa.Table) -> None:
    found = inspect_file(written(people.slice(0, 0)))
    assert found.layout.rows == 0
    assert "0 rows" in str(found)
