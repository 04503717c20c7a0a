"""Key providers in memory and in files: keys, refusals, and that they never show a key."""

from __future__ import annotations

import base64
import json
import os
import pickle
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import (
    AlreadyExistsError,
    InputError,
    KeyDeniedError,
    KeyMissingError,
    KeyServiceError,
    OptionError,
    WrongKeyError,
)
from lockgate.framework.keys import (
    KeyAlgorithm,
    KeyFileProvider,
    KeyMetadata,
    KeyProvider,
    MemoryKeyProvider,
    NoKeys,
    add_key_version,
    create_key_file,
    provider_from,
)

PII = KeyMetadata("pii", 0, KeyAlgorithm.AES_CTR_128)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    create_key_file(path, ["pii", "fin"])
    return path


def test_a_local_key_is_decrypted(path: Path) -> None:
    for provider in (MemoryKeyProvider({"pii@0": b"k" * 16, "fin@3": b"f" * 32}), KeyFileProvider(path)):
        assert provider.key_names() == ["fin", "pii"]
        for name in provider.key_names():
            key = provider.current_key(name)
            local = provider.create_local_key(key)
            assert len(local.plain) == len(local.encrypted) == key.algorithm.key_length
            assert local.plain != local.encrypted
            assert provider.decrypt_local_key(key, local.encrypted) == local.plain
            assert provider.create_local_key(key).plain != local.plain


def test_the_newest_version_is_current() -> None:
    provider = MemoryKeyProvider({"pii@0": bytes(16), "pii@10": bytes(32), "pii@9": bytes(16)})
    assert provider.current_key("pii") == KeyMetadata("pii", 10, KeyAlgorithm.AES_CTR_256)
    assert str(provider.current_key("pii")) == "pii@10"


def test_missing_wrong_and_no_keys() -> None:
    provider = MemoryKeyProvider({"pii@0": bytes(16)})
    with pytest.raises(KeyMissingError, match="no key 'pi'; did you mean 'pii'"):
        provider.current_key("pi")
    with pytest.raises(KeyMissingError, match="no key pii@1; did you mean 'pii@0'"):
        provider.decrypt_local_key(KeyMetadata("pii", 1, KeyAlgorithm.AES_CTR_128), bytes(16))
    with pytest.raises(WrongKeyError, match="pii@0 of 256 bits, but this provider has one of 128 bits"):
        provider.decrypt_local_key(KeyMetadata("pii", 0, KeyAlgorithm.AES_CTR_256), bytes(32))
    with pytest.raises(KeyMissingError, match="no keys were given"):
        NoKeys().current_key("pii")
    with pytest.raises(KeyMissingError, match="no keys were given"):
        NoKeys().decrypt_local_key(PII, bytes(16))
    assert NoKeys().key_names() == []


@pytest.mark.parametrize(("name", "material"), [("pii", b"short"), ("pii@x", bytes(16)), ("@0", bytes(16))])
def test_malformed_keys_are_refused(name: str, material: bytes) -> None:
    with pytest.raises(InputError):
        MemoryKeyProvider({name: material})


def test_a_key_file_is_private_and_never_overwritten(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(AlreadyExistsError, match="never overwritten"):
        create_key_file(path, ["pii"])
    for mode in (0o640, 0o604, 0o660):
        path.chmod(mode)
        with pytest.raises(KeyDeniedError, match=f"mode {mode:04o}.* run: chmod 600"):
            KeyFileProvider(path)


def test_a_key_file_that_becomes_readable_by_others_is_refused(path: Path) -> None:
    provider = KeyFileProvider(path)
    path.chmod(0o644)
    with pytest.raises(KeyDeniedError):
        provider.decrypt_local_key(PII, bytes(16))


def test_a_new_version_takes_effect_in_a_running_provider(path: Path) -> None:
    provider = KeyFileProvider(path)
    local = provider.create_local_key(PII)
    assert add_key_version(path, "pii") == KeyMetadata("pii", 1, KeyAlgorithm.AES_CTR_128)
    assert add_key_version(path, "pii", bits=256) == KeyMetadata("pii", 2, KeyAlgorithm.AES_CTR_256)
    assert add_key_version(path, "new").version == 0
    assert provider.current_key("pii").version == 2
    assert provider.key_names() == ["fin", "new", "pii"]
    assert provider.decrypt_local_key(PII, local.encrypted) == local.plain
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [other.name for other in path.parent.iterdir()] == ["keys.json"]


def test_key_sizes_and_names_are_checked(tmp_path: Path) -> None:
    assert (
        create_key_file(tmp_path / "k", ["a"], bits=256).current_key("a").algorithm
        is KeyAlgorithm.AES_CTR_256
    )
    with pytest.raises(InputError, match="128 or 256 bits, not 192"):
        create_key_file(tmp_path / "l", ["a"], bits=192)
    for names in ([], ["a:b"], ["a@0"], [""], ["a b"], ["a,b"]):
        with pytest.raises(InputError):
            create_key_file(tmp_path / "l", names)
    assert not (tmp_path / "l").exists()


def entry(**changes: Any) -> dict[str, Any]:
    material = base64.b64encode(bytes(16)).decode()
    return {"name": "pii", "version": 0, "algorithm": "AES_CTR_128", "material": material, **changes}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not of format 1"),
        (json.dumps({"format": 2, "keys": []}), "is not of format 1"),
        (json.dumps({"format": 1}), 'has no list "keys"'),
        (json.dumps({"format": 1, "keys": ["x"]}), "key number 0 .* is not an object"),
        (json.dumps({"format": 1, "keys": [entry(version=-1)]}), "no valid name and version"),
        (json.dumps({"format": 1, "keys": [entry(name="")]}), "no valid name and version"),
        (json.dumps({"format": 1, "keys": [entry(algorithm="AES_CTR_129")]}), "no known algorithm"),
        (json.dumps({"format": 1, "keys": [entry(material="!!")]}), "no valid base64"),
        (
            json.dumps({"format": 1, "keys": [entry(material="c2VjcmV0")]}),
            "has 6 bytes, but AES_CTR_128 needs 16",
        ),
    ],
)
def test_malformed_key_files(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(KeyServiceError, match=message) as caught:
        KeyFileProvider(path)
    assert "c2VjcmV0" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_absent_key_file_is_not_a_missing_key(tmp_path: Path) -> None:
    with pytest.raises(KeyServiceError, match=r"there is no key file|cannot be found"):
        KeyFileProvider(tmp_path / "none.json")


def test_a_specification_makes_its_provider(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for spec in (f"file:{path}", f"file://{path}", str(path), path):
        provider = provider_from(spec)
        assert isinstance(provider, KeyFileProvider)
        assert provider.path == str(path)
        assert provider.spec == f"file:{path}"
    monkeypatch.chdir(path.parent)
    assert provider_from("file:keys.json").spec == f"file:{path}"
    assert isinstance(provider_from(None), NoKeys)
    assert isinstance(provider_from(""), NoKeys)
    memory = MemoryKeyProvider({})
    assert provider_from(memory) is memory
    assert memory.spec is None
    with pytest.raises(InputError, match=r"provider_from: spec takes .*, not int"):
        provider_from(3)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(OptionError, match="no key provider has the scheme 'vault'") as caught:
        provider_from("vault://user:password@host")
    assert "password" not in str(caught.value)


def test_a_plugin_can_add_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    import lockgate.framework.plugins

    class Offer:
        def key_providers(self) -> dict[str, Any]:
            return {"vault": lambda text: MemoryKeyProvider({"v@0": bytes(16)}), "bad": lambda text: text}

    monkeypatch.setattr(lockgate.framework.plugins, "plugins", Offer)
    assert provider_from("vault:x").key_names() == ["v"]
    with pytest.raises(OptionError, match="returned a str, not a KeyProvider"):
        provider_from("bad:x")


def test_nothing_shows_a_key(path: Path) -> None:
    secret = os.urandom(16)
    memory: KeyProvider = MemoryKeyProvider({"pii@0": secret})
    local = memory.create_local_key(PII)
    shown = repr(memory) + repr(memory.__dict__) + repr(local) + str(local) + repr(KeyFileProvider(path))
    for material in (secret, local.plain):
        assert repr(material)[2:-1] not in shown
        assert material.hex() not in shown
    assert "pii@0" in repr(memory)


def test_keys_are_not_pickled(path: Path) -> None:
    memory = MemoryKeyProvider({"pii@0": bytes(16)})
    for secret in (memory, memory.create_local_key(PII)):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(secret)
    # Only the path of a key file is pickled.
    provider = KeyFileProvider(path)
    content = pickle.dumps(provider)
    for key in json.loads(path.read_text())["keys"]:
        assert base64.b64decode(key["material"]) not in content
    assert pickle.loads(content).spec == provider.spec


def test_concurrent_new_versions_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    create_key_file(path, ["pii"])
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda _: add_key_version(path, "pii"), range(16)))
    assert sorted(key.version for key in added) == list(range(1, 17))
    assert KeyFileProvider(path).current_key("pii").version == 16
    assert [entry.name for entry in tmp_path.iterdir()] == ["keys.json"]
