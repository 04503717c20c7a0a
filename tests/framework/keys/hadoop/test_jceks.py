"""Java key stores: Apache's test store opens, and neither keys nor passwords are shown."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
from pathlib import Path

import pytest

from lockgate.errors import KeyDeniedError, KeyMissingError, KeyServiceError, OptionError, UnsupportedError
from lockgate.framework.keys import (
    JceksKeyProvider,
    KeyAlgorithm,
    KeyMetadata,
    create_key,
    list_keys,
    provider_from,
    roll_key,
)
from lockgate.framework.keys.hadoop.jceks import PASSWORD_VARIABLE
from lockgate.framework.keys.plugin import lockgate_key_providers
from lockgate.framework.orc import EncryptedOrcFile

TESTDATA = os.environ.get("LOCKGATE_TESTDATA")
PASSWORD = "correct-horse"
STORE = Path(__file__).parents[3] / "fixtures" / "keys" / "kms.jceks"
PII = KeyMetadata("pii", 1, KeyAlgorithm.AES_CTR_128)
APACHE = KeyMetadata("pii", 0, KeyAlgorithm.AES_CTR_256)

needs_apache = pytest.mark.skipif(
    TESTDATA is None,
    reason="needs apache/orc's examples/encrypted in $LOCKGATE_TESTDATA/orc-encrypted, which is not set",
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a key store that Hadoop 3.4 made, and its password in the environment."""
    pytest.importorskip("jks")
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    return Path(shutil.copy(STORE, tmp_path / "kms.keystore"))


@needs_apache
def test_apaches_key_opens_apaches_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jks")
    monkeypatch.setenv(PASSWORD_VARIABLE, "ORC_KEY")
    assert TESTDATA is not None
    folder = Path(TESTDATA, "orc-encrypted")
    provider = lockgate_key_providers()["jceks"](f"jceks:{folder / 'kms.keystore'}")
    assert provider.key_names() == ["pii"]
    assert provider.current_key("pii") == APACHE
    with EncryptedOrcFile(folder / "sample1.orc", provider, strict=True) as file:
        assert file.read().column("ssn").to_pylist() == ["123456789"]
    local = provider.create_local_key(APACHE)
    assert provider.decrypt_local_key(APACHE, local.encrypted) == local.plain


def test_the_scheme_is_built_in(store: Path) -> None:
    assert isinstance(provider_from(f"jceks:{store}"), JceksKeyProvider)
    assert isinstance(provider_from(f"jceks://file{store}"), JceksKeyProvider)
    assert isinstance(provider_from(f"jceks://{store}"), JceksKeyProvider)


def test_a_password_file(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "another")
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    file.chmod(0o644)
    spec = f"jceks:{store}?password-file={file}"
    with pytest.raises(KeyDeniedError, match="chmod 600"):
        provider_from(spec)
    file.chmod(0o600)
    provider = provider_from(spec)
    assert provider.current_key("pii") == PII
    assert provider.spec == spec
    with pytest.raises(KeyServiceError, match=r"password file .* cannot be read"):
        provider_from(f"{spec}-absent")


def test_no_secret_is_shown_or_pickled(store: Path) -> None:
    provider = JceksKeyProvider(store)
    provider.current_key("pii")
    material = provider._decrypted["pii", 1]._keys["pii", 1]
    carried = pickle.dumps(provider)
    assert material not in carried
    assert PASSWORD.encode() not in carried
    assert pickle.loads(carried).current_key("pii") == PII
    assert repr(provider) == f"JceksKeyProvider({str(store)!r}: fin@0, pii@0, pii@1)"
    assert PASSWORD not in provider.spec


def test_a_wrong_password(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "guessed-password")
    with pytest.raises(KeyDeniedError, match=PASSWORD_VARIABLE) as caught:
        JceksKeyProvider(store)
    assert "guessed-password" not in str(caught.value)
    monkeypatch.delenv(PASSWORD_VARIABLE)
    with pytest.raises(KeyDeniedError):
        JceksKeyProvider(store)


def test_missing_keys_and_damaged_stores(store: Path) -> None:
    provider = JceksKeyProvider(store)
    with pytest.raises(KeyMissingError, match="no key 'pi'; did you mean 'pii'"):
        provider.current_key("pi")
    with pytest.raises(KeyMissingError, match="no key pii@2; did you mean 'pii@"):
        provider.decrypt_local_key(KeyMetadata("pii", 2, KeyAlgorithm.AES_CTR_128), bytes(16))
    whole = store.read_bytes()
    for content in (b"", b"junk", whole[:100], whole[:-30]):
        store.write_bytes(content)
        with pytest.raises((KeyServiceError, KeyDeniedError), match="key store"):
            provider.key_names()
    store.unlink()
    with pytest.raises(KeyServiceError, match="cannot be found"):
        provider.key_names()


@pytest.mark.parametrize(
    "spec", ["jceks:", "jceks://hdfs@namenode/kms", "jceks:/a?password=hunter2", "jceks:/a?hunter2"]
)
def test_malformed_specifications(spec: str) -> None:
    with pytest.raises(OptionError) as caught:
        lockgate_key_providers()["jceks"](spec)
    assert "hunter2" not in str(caught.value)


def test_without_pyjks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jks", None)
    (tmp_path / "kms.keystore").touch()
    with pytest.raises(KeyServiceError, match=r"pip install 'lockgate\[jceks\]'"):
        JceksKeyProvider(tmp_path / "kms.keystore")


def test_a_store_is_read_only(store: Path) -> None:
    provider = JceksKeyProvider(store)
    with pytest.raises(UnsupportedError, match=f"hadoop key roll pii -provider jceks://file{store}"):
        roll_key(provider, "pii")
    with pytest.raises(UnsupportedError, match="hadoop key create new -size 256"):
        create_key(f"jceks:{store}", "new", 256)
    assert [str(key) for key in list_keys(provider)] == ["fin@0", "pii@0", "pii@1"]
