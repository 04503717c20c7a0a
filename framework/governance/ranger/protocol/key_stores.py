"""Certificates and keys for TLS from JKS, JCEKS, PKCS12 and PEM files; the content says which it is.

Java itself reads a PKCS12 file that is declared as JKS, and the other way round, so declared types mislead.
Formats: sun.security.provider.JavaKeyStore (JKS), com.sun.crypto.provider.JceKeyStore (JCEKS), RFC 7292.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    pkcs12,
)

from lockgate.errors import OptionError

_JAVA = (bytes.fromhex("feedfeed"), bytes.fromhex("cececece"))
_PEM = b"-----BEGIN "
LARGEST = 1 << 24


@dataclass(frozen=True)
class KeyStore:
    """A file of certificates, or of a certificate with its key; `key` is a second file if PEM has two."""

    path: Path
    password: str | None = field(default=None, repr=False)
    key: Path | None = None


def trust(context: ssl.SSLContext, store: KeyStore) -> None:
    """Add a store's certificates to those that a context trusts; OptionError if it has none to read."""
    content = _content(store.path)
    if _is_pem(content):
        data: str | bytes = content.decode("ascii", "replace")
    else:
        data = b"".join(_certificates(store, content))
    try:
        if not data:
            raise ValueError
        context.load_verify_locations(cadata=data)
    except (ssl.SSLError, ValueError):
        raise OptionError(f"{store.path} has no certificate to trust: name a trust store") from None


def identify(context: ssl.SSLContext, store: KeyStore) -> None:
    """Have a context show a store's certificate to servers; OptionError if it has not exactly one key."""
    content = _content(store.path)
    if _is_pem(content):
        _load(context, store, str(store.path), None if store.key is None else str(store.key))
        return
    key, certificates = _identity(store, content)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    text += b"".join(each.public_bytes(Encoding.PEM) for each in certificates)
    with _in_memory(text) as path:
        _load(context, store, path, None)


def _load(context: ssl.SSLContext, store: KeyStore, path: str, key: str | None) -> None:
    try:
        # Without a password OpenSSL would ask at the terminal.
        context.load_cert_chain(path, key, store.password or "")
    except (OSError, ssl.SSLError):
        raise OptionError(
            f"{store.path} has no certificate with its private key that this password opens"
        ) from None


@contextmanager
def _in_memory(text: bytes) -> Iterator[str]:
    """Yield the path of a file that is on no disk: ssl reads keys from files only."""
    number = os.memfd_create("lockgate-tls", os.MFD_CLOEXEC)
    try:
        os.write(number, text)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise OptionError(f"the key store {path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise OptionError(f"{path} is too large to be a key store")
    return content


def _is_pem(content: bytes) -> bool:
    return _PEM in content[: 1 << 16] and not content.startswith(_JAVA)


def _certificates(store: KeyStore, content: bytes) -> Iterable[bytes]:
    """Return the certificates that a store trusts, as DER."""
    if not content.startswith(_JAVA):
        _, own, others = _pkcs12(store, content)
        # Java trusts the entries without a key alone.
        trusted = others if own is None else ()
        return [each.public_bytes(Encoding.DER) for each in trusted]
    return [bytes(each.cert) for each in _java(store, content).certs.values()]


def _identity(store: KeyStore, content: bytes) -> tuple[PrivateKeyTypes, list[x509.Certificate]]:
    """Return a store's only private key with its chain of certificates, its own first."""
    if not content.startswith(_JAVA):
        key, own, others = _pkcs12(store, content)
        if key is None or own is None:
            raise OptionError(f"{store.path} has no private key: name the key store of this client")
        return key, [own, *others]
    entries = list(_java(store, content).private_keys.values())
    if len(entries) != 1:
        raise OptionError(f"{store.path} has {len(entries)} private keys: name a key store with one")
    entry = entries[0]
    try:
        if not entry.is_decrypted():
            entry.decrypt(store.password or "")
        chain = [x509.load_der_x509_certificate(each) for _, each in entry.cert_chain]
        return load_der_private_key(entry.pkey_pkcs8, None), chain
    except Exception as error:  # pyjks lets through whatever its parsers of Java's formats raise.
        raise OptionError(
            f"the private key in {store.path} does not open with the password of the store "
            f"({type(error).__name__})"
        ) from None


def _pkcs12(
    store: KeyStore, content: bytes
) -> tuple[PrivateKeyTypes | None, x509.Certificate | None, list[x509.Certificate]]:
    try:
        return pkcs12.load_key_and_certificates(content, _bytes(store.password))
    except ValueError:
        raise OptionError(
            f"{store.path} is not a key store (JKS, JCEKS, PKCS12 or PEM), or its password is another one"
        ) from None


def _java(store: KeyStore, content: bytes) -> Any:
    jks = java_stores()
    try:
        return jks.KeyStore.loads(content, store.password, try_decrypt_keys=False)
    except jks.util.KeystoreSignatureException:
        raise OptionError(f"{store.path} does not open with its password, or is damaged") from None
    except Exception as error:  # pyjks lets through whatever its parsers of Java's formats raise.
        raise OptionError(f"{store.path} is a damaged key store ({type(error).__name__})") from None


def java_stores() -> ModuleType:
    """Return the library for Java's key stores; OptionError if it is absent."""
    try:
        import jks
    except ImportError:
        raise OptionError(
            "JKS and JCEKS key stores are read by pyjks, which is not installed; run: pip install "
            "'lockgate[jceks]'"
        ) from None
    module: ModuleType = jks
    return module


def _bytes(password: str | None) -> bytes | None:
    return None if password is None else password.encode()
