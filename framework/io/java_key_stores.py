"""Java key stores (JKS and JCEKS), whose entries are decrypted one by one.

Formats: sun.security.provider.JavaKeyStore (JKS), com.sun.crypto.provider.JceKeyStore (JCEKS).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lockgate.errors import LockgateError

_MAGIC = (bytes.fromhex("feedfeed"), bytes.fromhex("cececece"))
_MAX_BYTES = 1 << 24


class KeyStoreError(LockgateError):
    """Raised for a key store that cannot be read; `is_denied` for missing permission or a wrong password."""

    def __init__(self, text: str, *, is_denied: bool = False) -> None:
        super().__init__(text)
        self.is_denied = is_denied


def read_key_store(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a key store of any kind; raises KeyStoreError."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        denied = isinstance(error, PermissionError)
        raise KeyStoreError(
            f"the key store {path} cannot be read: {error.strerror}", is_denied=denied
        ) from None
    if len(content) > _MAX_BYTES:
        raise KeyStoreError(f"{path} is too large to be a key store")
    return content


def is_java_key_store(content: bytes) -> bool:
    """Return whether the content is a JKS or JCEKS key store."""
    return content.startswith(_MAGIC)


class JavaKeyStore:
    """An opened key store. Needs pyjks; all methods raise KeyStoreError, which never shows a password.

    Messages show `password_name`, the origin of the password.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        content: bytes,
        password: str | None,
        password_name: str = "its password",  # noqa: S107 - a name, no secret
    ) -> None:
        """Check the password of the store, and decrypt no entry."""
        try:
            import jks
        except ImportError:
            raise KeyStoreError(
                "JKS and JCEKS key stores are read by pyjks, which is not installed; run: pip install "
                "'lockgate[jceks]'"
            ) from None
        self._path = path
        try:
            self._store = jks.KeyStore.loads(content, password, try_decrypt_keys=False)
        except jks.util.KeystoreSignatureException:
            raise KeyStoreError(
                f"the key store {path} does not open with {password_name}, or is damaged", is_denied=True
            ) from None
        except Exception as error:  # pyjks raises any error of its parsers
            raise KeyStoreError(
                f"{path} is not a key store of Java, or is damaged ({type(error).__name__})"
            ) from None

    def certificates(self) -> list[bytes]:
        """Return the certificates that the store trusts, as DER."""
        return [bytes(entry.cert) for entry in self._store.certs.values()]

    def private_key_aliases(self) -> list[str]:
        """Return the names of the private keys."""
        return list(self._store.private_keys)

    def secret_key_aliases(self) -> list[str]:
        """Return the names of the secret keys."""
        return list(self._store.secret_keys)

    def private_key(self, alias: str, password: str) -> tuple[bytes, list[bytes]]:
        """Return a private key as PKCS 8 and its certificate chain, all as DER."""
        entry = self._decrypted_entry(alias, password)
        return bytes(entry.pkey_pkcs8), [bytes(each) for _, each in entry.cert_chain]

    def secret_key(self, alias: str, password: str) -> bytes:
        """Return the bytes of a secret key."""
        return bytes(self._decrypted_entry(alias, password).key)

    def _decrypted_entry(self, alias: str, password: str) -> Any:
        entry = self._store.entries[alias]
        try:
            if not entry.is_decrypted():
                entry.decrypt(password)
        except Exception as error:  # pyjks raises any error of its parsers
            raise KeyStoreError(
                f"key {alias} of the key store {self._path} does not open with the store's password "
                f"({type(error).__name__})",
                is_denied=True,
            ) from None
        return entry
