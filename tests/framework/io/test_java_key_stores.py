"""Java key stores: content that is no key store, and errors without secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockgate.framework.io import JavaKeyStore, KeyStoreError, is_java_key_store, read_key_store

STORES = Path(__file__).parents[2] / "fixtures" / "key_stores"


def test_content_that_is_no_key_store(tmp_path: Path) -> None:
    large = tmp_path / "large.jks"
    large.touch()
    os.truncate(large, (1 << 24) + 1)
    with pytest.raises(KeyStoreError, match="too large to be a key store"):
        read_key_store(large)
    with pytest.raises(KeyStoreError, match="cannot be read: No such file"):
        read_key_store(tmp_path / "absent.jks")
    for content in (b"", b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce\x00\x00\x00\x02\xff\xff\xff\xff", b"text"):
        with pytest.raises(KeyStoreError, match=r"s\.jks is not a key store of Java, or is damaged"):
            JavaKeyStore("s.jks", content, "changeit")


def test_a_wrong_password_is_denied_and_not_shown() -> None:
    store = next(path for path in sorted(STORES.iterdir()) if path.suffix == ".jks")
    content = read_key_store(store)
    assert is_java_key_store(content)
    with pytest.raises(KeyStoreError, match="does not open with the password in A_VARIABLE") as failed:
        JavaKeyStore(store, content, "hunter2", "the password in A_VARIABLE")
    assert failed.value.is_denied
    assert "hunter2" not in str(failed.value)
