"""Master keys wrapped in a table's option: texts, specifications, tables, and refusals."""

from __future__ import annotations

import base64
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InputError,
    KeyDeniedError,
    KeyMissingError,
    MaskedDataWarning,
    OptionError,
    UnsupportedError,
    WrongKeyError,
)
from lockgate.framework.keys import (
    EnvelopeKeyProvider,
    KeyAlgorithm,
    KeyMetadata,
    KeyProvider,
    MemoryKeyProvider,
    ProviderWrapper,
    create_key_file,
    list_keys,
    provider_from,
    roll_key,
)
from lockgate.framework.keys.envelopes.wrapped_keys import WrappedKeys
from lockgate.framework.keys.local_key_cipher import unwrap
from lockgate.framework.store import Catalog, Schema

ROOTS = {"root@0": os.urandom(16), "root@1": os.urandom(32), "second@0": os.urandom(32)}


@pytest.fixture
def envelope() -> EnvelopeKeyProvider:
    return EnvelopeKeyProvider(ProviderWrapper(MemoryKeyProvider(ROOTS), "root"))


@pytest.fixture
def root_file(tmp_path: Path) -> Path:
    create_key_file(tmp_path / "root.json", ["root"], bits=256)
    return tmp_path / "root.json"


def changed(text: str, **changes: Any) -> str:
    """The text with changes to its first key."""
    document = json.loads(text)
    document["keys"][0].update(changes)
    return json.dumps(document)


# --- texts ---


def test_the_option_holds_created_added_and_rolled_keys(envelope: EnvelopeKeyProvider) -> None:
    text = envelope.create("pii", "fin", bits=256)
    assert "'" not in text
    assert "\n" not in text
    assert [str(key) for key in list_keys(envelope.of_text(text))] == ["fin@0", "pii@0"]
    rolled = envelope.roll(text, "pii", 128)
    assert WrappedKeys.from_text(rolled).versions() == ["fin@0", "pii@0", "pii@1"]
    assert envelope.of_text(rolled).current_key("pii").algorithm.key_length == 16
    more = envelope.add(rolled, "new")
    assert envelope.of_text(more).key_names() == ["fin", "new", "pii"]
    assert repr(WrappedKeys.from_text(more)) == "WrappedKeys(fin@0, new@0, pii@0, pii@1)"
    with pytest.raises(AlreadyExistsError, match="roll it instead"):
        envelope.add(more, "pii")
    with pytest.raises(KeyMissingError, match="no key 'pi'; did you mean 'pii'"):
        envelope.roll(more, "pi")
    for names in ([], ["a b"], ["a", "a"]):
        with pytest.raises(InputError):
            envelope.create(*names)
    for wrong in ({"pii@x": bytes(16)}, {"pii@0": bytes(5)}):
        with pytest.raises(InputError):
            envelope.wrap(wrong)


def test_rewrapping_keeps_the_keys(envelope: EnvelopeKeyProvider) -> None:
    master = os.urandom(16)
    text = envelope.wrap({"pii@4": master})
    second = ProviderWrapper(MemoryKeyProvider(ROOTS), "second")
    again, moved = envelope.rewrap(text), envelope.rewrap(text, second)
    assert len({text, again, moved}) == 3
    assert json.loads(again)["keys"][0]["by"] == "root@1/AES_CTR_256"
    assert json.loads(moved)["keys"][0]["by"] == "second@0/AES_CTR_256"
    for provider in (
        envelope.of_text(text),
        envelope.of_text(again),
        EnvelopeKeyProvider(second).of_text(moved),
    ):
        key = provider.current_key("pii")
        assert str(key) == "pii@4"
        local = provider.create_local_key(key)
        assert local.plain == unwrap(master, local.encrypted)
    with pytest.raises(KeyMissingError, match="only 'root' is trusted here"):
        envelope.of_text(moved).create_local_key(key)


def test_a_changed_or_moved_key_is_refused(envelope: EnvelopeKeyProvider) -> None:
    """Each wrapped key is bound to its name, version and algorithm, and authenticated."""
    text = envelope.wrap({"pii@0": os.urandom(16)})
    sealed = base64.b64decode(json.loads(text)["keys"][0]["wrapped"])
    damaged = [changed(text, name="fin"), changed(text, version=1)]
    for position in range(len(sealed)):
        flipped = bytearray(sealed)
        flipped[position] ^= 1
        damaged.append(changed(text, wrapped=base64.b64encode(flipped).decode()))
    for length in (0, 15, 31, 32, 40, len(sealed) - 1):
        damaged.append(changed(text, wrapped=base64.b64encode(sealed[:length]).decode()))
    damaged.append(changed(text, algorithm="AES_CTR_256"))
    for each in damaged:
        provider = envelope.of_text(each)
        with pytest.raises(WrongKeyError):
            provider.create_local_key(provider.key_versions()[0])
    for by in ("root", "arn:aws:kms:eu-central-1:1:key/x", "root@0/AES", "@0/AES_CTR_128"):
        provider = envelope.of_text(changed(text, by=by))
        with pytest.raises(KeyMissingError, match="is wrapped under"):
            provider.create_local_key(provider.current_key("pii"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not of format 1"),
        ('{"format": 2, "keys": []}', "is not of format 1"),
        ('{"format": 1}', 'has no list "keys"'),
        ('{"format": 1, "keys": [1]}', "key number 0 .* is not an object"),
        ({"name": ""}, "no valid name and version"),
        ({"version": True}, "no valid name and version"),
        ({"version": -1}, "no valid name and version"),
        ({"algorithm": "AES_CTR_12"}, "no known algorithm; did you mean"),
        ({"by": ""}, "does not name the key that wraps it"),
        ({"wrapped": "c2VjcmV0!"}, "no valid base64"),
        ({"wrapped": None}, "no valid base64"),
    ],
)
def test_malformed_texts(
    envelope: EnvelopeKeyProvider, tmp_path: Path, text: str | dict[str, Any], message: str
) -> None:
    if isinstance(text, dict):
        text = changed(envelope.create("pii"), **text)
    with pytest.raises(OptionError, match=message) as caught:
        envelope.of_text(text)
    assert "c2VjcmV0" not in str(caught.value)
    catalog = Catalog(tmp_path / "lake")
    catalog.create_namespace("db")
    with pytest.raises(OptionError, match=message):
        catalog.create_table(
            "db.t", Schema.from_arrow(pa.schema([("a", pa.string())]), options={"orc.keys.wrapped": text})
        )
    assert not catalog.table_exists("db.t")


def test_a_duplicate_version_is_refused(envelope: EnvelopeKeyProvider) -> None:
    document = json.loads(envelope.create("pii"))
    document["keys"] *= 2
    with pytest.raises(OptionError, match="holds a version of a key twice"):
        envelope.of_text(json.dumps(document))


# --- specifications ---


def test_the_specification_of_an_envelope_round_trips(root_file: Path, tmp_path: Path) -> None:
    for spec in (f"envelope:root@file:{root_file}", f"envelope:file:{root_file}", f"envelope:{root_file}"):
        made = provider_from(spec)
        assert isinstance(made, EnvelopeKeyProvider)
        table = made.of_text(made.create("pii"))
        assert provider_from(made.spec).for_table({"orc.keys.wrapped": "", "a": "b"}).spec == made.spec
        again = pickle.loads(pickle.dumps(table))
        key = table.current_key("pii")
        local = table.create_local_key(key)
        assert again.decrypt_local_key(key, local.encrypted) == local.plain
        assert pickle.loads(pickle.dumps(made)).spec == made.spec
    create_key_file(tmp_path / "two.json", ["a", "b"])
    with pytest.raises(OptionError, match=r"name the key of .* that wraps others: write envelope:NAME@"):
        provider_from(f"envelope:{tmp_path / 'two.json'}").create("pii")
    for spec in ("envelope:", "envelope:envelope:x", "envelope:aws-kms:", "envelope:aws-kms:a,,b"):
        with pytest.raises(OptionError, match="rite "):
            provider_from(spec)
    memory = EnvelopeKeyProvider(MemoryKeyProvider({"root@0": bytes(16)}))
    for secret in (memory, memory.of_text(memory.create("pii"))):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(secret)


def test_without_a_table_there_are_no_keys(envelope: EnvelopeKeyProvider) -> None:
    assert envelope.key_names() == []
    assert not envelope.usable("pii")
    for action in (
        lambda: envelope.current_key("pii"),
        lambda: envelope.decrypt_local_key(KeyMetadata("pii", 0, KeyAlgorithm.AES_CTR_128), bytes(16)),
    ):
        with pytest.raises(
            KeyMissingError, match=r"unwraps the keys of tables with option orc\.keys\.wrapped"
        ):
            action()
    table = envelope.of_text(envelope.create("pii"))
    for provider in (envelope, table):
        for change in (lambda: roll_key(provider, "pii"), lambda: provider.create_key("new")):  # noqa: B023 - called at once
            with pytest.raises(UnsupportedError, match=r"in its option orc\.keys\.wrapped"):
                change()


# --- tables ---


class Counting(MemoryKeyProvider):
    """Counts unwrapped local keys."""

    count = 0

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        self.count += 1
        return super().decrypt_local_key(key, encrypted)


def people(text: str | None) -> Schema:
    options = {"orc.encrypt": "pii:ssn"} | ({} if text is None else {"orc.keys.wrapped": text})
    return Schema.from_arrow(pa.schema([("id", pa.int64()), ("ssn", pa.string())]), options=options)


def test_tables_store_their_keys(tmp_path: Path, root_file: Path) -> None:
    """Another catalog, which has only the root key, writes, rolls and reads."""
    spec = f"envelope:root@file:{root_file}"
    envelope = provider_from(spec)
    assert isinstance(envelope, EnvelopeKeyProvider)
    catalog = Catalog(tmp_path / "lake", keys=envelope)
    catalog.create_namespace("db")
    one, two = (catalog.create_table(f"db.{name}", people(envelope.create("pii"))) for name in ("one", "two"))
    rows = pa.table({"id": [1, 2], "ssn": ["123", "456"]})
    for table in (one, two):
        table.append(rows)
    text = one.options["orc.keys.wrapped"]
    one.set_wrapped_keys(envelope.roll(text, "pii"))
    rolled = catalog.load_table("db.one")
    assert str(rolled.keys and rolled.keys.current_key("pii")) == "pii@1"
    rolled.append(pa.table({"id": [3], "ssn": ["789"]}))
    # A query from before the roll uses the new key too.
    assert rolled.with_schema(0).keys is rolled.keys
    other = Catalog(tmp_path / "lake", keys=spec)
    assert other.load_table("db.one").read(strict=True).sort_by("id").column("ssn").to_pylist() == [
        "123",
        "456",
        "789",
    ]
    assert other.load_table("db.two").read(strict=True).column("ssn").to_pylist() == ["123", "456"]
    assert other.load_table("db.two").keys is other.load_table("db.two").keys
    with pytest.warns(MaskedDataWarning):
        masked = Catalog(tmp_path / "lake").load_table("db.one").read()
    assert masked.column("ssn").null_count == 3


def test_a_table_without_wrapped_keys(tmp_path: Path, root_file: Path) -> None:
    catalog = Catalog(tmp_path / "lake", keys=f"envelope:{root_file}")
    catalog.create_namespace("db")
    with pytest.raises(KeyMissingError, match=r"orc\.keys\.wrapped"):
        catalog.create_table("db.t", people(None))
    # A table may be created without keys, which writers add later.
    Catalog(tmp_path / "lake").create_table("db.t", people(None))
    with pytest.raises(KeyMissingError, match=r"orc\.keys\.wrapped"):
        catalog.load_table("db.t").append(pa.table({"id": [1], "ssn": ["123"]}))


def test_no_key_and_no_roll_is_lost(tmp_path: Path, root_file: Path) -> None:
    catalog = Catalog(tmp_path / "lake", keys=f"envelope:{root_file}")
    assert isinstance(catalog.keys, EnvelopeKeyProvider)
    catalog.create_namespace("db")
    text = catalog.keys.create("pii", "fin")
    table = catalog.create_table("db.t", people(text))
    with pytest.raises(InputError, match=r"lacks fin@0, which files may need"):
        table.set_wrapped_keys(catalog.keys.create("pii"))
    table.set_wrapped_keys(catalog.keys.roll(text, "pii"))
    with pytest.raises(InputError, match="lacks pii@1"):
        table.set_wrapped_keys(catalog.keys.roll(text, "fin"))
    with pytest.raises(OptionError, match="is not JSON"):
        table.set_wrapped_keys("x")
    assert len(table.schema_files.ids()) == 2


def test_two_concurrent_rolls(tmp_path: Path, root_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog(tmp_path / "lake", keys=f"envelope:{root_file}")
    assert isinstance(catalog.keys, EnvelopeKeyProvider)
    catalog.create_namespace("db")
    text = catalog.keys.create("pii")
    table = catalog.create_table("db.t", people(text))
    other = catalog.load_table("db.t")
    monkeypatch.setattr(table.schema_files, "latest", lambda: table.schema)
    other.set_wrapped_keys(catalog.keys.roll(text, "pii"))
    with pytest.raises(CommitConflictError, match="altered concurrently"):
        table.set_wrapped_keys(catalog.keys.roll(text, "pii"))


def test_an_unwrapped_key_is_cached_for_a_while() -> None:
    roots = Counting({"root@0": os.urandom(16)})
    envelope = EnvelopeKeyProvider(roots)
    text = envelope.create("pii", "fin")
    roots.count = 0
    table = envelope.of_text(text)
    key = table.current_key("pii")
    locals_ = [table.create_local_key(key) for _ in range(20)]
    assert all(table.decrypt_local_key(key, local.encrypted) == local.plain for local in locals_)
    assert roots.count == 1
    impatient = EnvelopeKeyProvider(roots, seconds=0).of_text(text)
    for local in locals_:
        assert impatient.decrypt_local_key(key, local.encrypted) == local.plain
    assert roots.count == 21


# --- other providers ---


def test_any_provider_can_unwrap(kms: Any) -> None:
    """A Hadoop KMS, for instance: only a user of its key fin can unwrap keys under it."""
    envelope = provider_from(f"envelope:fin@{kms.spec()}")
    assert isinstance(envelope, EnvelopeKeyProvider)
    table: KeyProvider = envelope.of_text(envelope.create("pii"))
    assert table.usable("pii")
    assert envelope.spec == f"envelope:fin@{kms.spec()}"
    denied = provider_from(f"envelope:fin@{kms.spec('bob')}").for_table(
        {"orc.keys.wrapped": envelope.create("p")}
    )
    assert not denied.usable("p")
    with pytest.raises(KeyDeniedError):
        denied.create_local_key(denied.current_key("p"))
