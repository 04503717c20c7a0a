"""A published file of Apache ORC, encrypted by other software, has its published values."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockgate.errors import MaskedDataWarning, WrongKeyError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile

TESTDATA = os.environ.get("LOCKGATE_TESTDATA")

pytestmark = pytest.mark.skipif(
    TESTDATA is None,
    reason="needs apache/orc's examples/encrypted in $LOCKGATE_TESTDATA/orc-encrypted, which is not set",
)


@pytest.fixture
def folder() -> Path:
    assert TESTDATA is not None
    return Path(TESTDATA, "orc-encrypted")


@pytest.fixture
def key(folder: Path) -> bytes:
    """The key `pii@0` from Hadoop's key store."""
    jks = pytest.importorskip("jks")
    store = jks.KeyStore.load(str(folder / "kms.keystore"), "ORC_KEY", try_decrypt_keys=False)
    entry = store.entries["pii@0"]
    entry.decrypt("ORC_KEY")
    return bytes(entry.key)


def test_the_published_values(folder: Path, key: bytes) -> None:
    """The expected values are from the issue ORC-921."""
    with EncryptedOrcFile(folder / "sample1.orc", MemoryKeyProvider({"pii@0": key}), strict=True) as file:
        assert [(column.column, column.mask) for column in file.variants] == [
            ("ssn", "nullify"),
            ("email", "sha256"),
        ]
        assert file.read().to_pylist() == [
            {"ssn": "123456789", "email": "dongjoon@apache.org", "name": "Dongjoon Hyun"}
        ]
        assert file.statistics["ssn"].minimum == "123456789"
        assert file.stripe_statistics[0]["email"].maximum == "dongjoon@apache.org"


def test_without_the_key(folder: Path) -> None:
    with EncryptedOrcFile(folder / "sample1.orc") as file, pytest.warns(MaskedDataWarning):
        (row,) = file.read().to_pylist()
    # The published mask: SHA-256 of dongjoon@apache.org.
    assert row["ssn"] is None
    assert row["email"] == "841626795E7D351555B835A002E3BF10669DE9B81C95A3D59E10865AC37EA7C3"
    with pytest.raises(WrongKeyError):
        EncryptedOrcFile(folder / "sample1.orc", MemoryKeyProvider({"pii@0": bytes(32)}))
