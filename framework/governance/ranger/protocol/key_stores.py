"""Certificates and keys for TLS from JKS, JCEKS, PKCS12 and PEM files; the content says which it is.

Java itself reads a PKCS12 file that is declared as JKS, and the other way round, so declared types mislead.
Format of PKCS12: RFC 7292.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    pkcs12,
)

from lockgate.errors import OptionError
from lockgate.framework.io import JavaKeyStore, KeyStoreError, is_java_key_store, read_key_store

_PEM = b"-----BEGIN "


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
        return read_key_store(path)
    except KeyStoreError as error:
        raise OptionError(str(error)) from None


def _is_pem(content: bytes) -> bool:
    return _PEM in content[: 1 << 16] and not is_java_key_store(content)


def _certificates(store: KeyStore, content: bytes) -> Iterable[bytes]:
    """Return the certificates that a store trusts, as DER."""
    if not is_java_key_store(content):
        _, own, others = _pkcs12(store, content)
        # Java trusts the entries without a key alone.
        trusted = others if own is None else ()
        return [each.public_bytes(Encoding.DER) for each in trusted]
    try:
        return JavaKeyStore(store.path, content, store.password).certificates()
    except KeyStoreError as error:
        raise OptionError(str(error)) from None


def _identity(store: KeyStore, content: bytes) -> tuple[PrivateKeyTypes, list[x509.Certificate]]:
    """Return a store's only private key with its chain of certificates, its own first."""
    if not is_java_key_store(content):
        key, own, others = _pkcs12(store, content)
        if key is None or own is None:
            raise OptionError(f"{store.path} has no private key: name the key store of this client")
        return key, [own, *others]
    try:
        opened = JavaKeyStore(store.path, content, store.password)
        aliases = opened.private_key_aliases()
        if len(aliases) != 1:
            raise OptionError(f"{store.path} has {len(aliases)} private keys: name a key store with one")
        own_key, chain = opened.private_key(aliases[0], store.password or "")
        return load_der_private_key(own_key, None), [x509.load_der_x509_certificate(each) for each in chain]
    except KeyStoreError as error:
        raise OptionError(str(error)) from None
    except (ValueError, UnsupportedAlgorithm):
        raise OptionError(f"the private key in {store.path} is damaged, or of a kind not known") from None


def _pkcs12(
    store: KeyStore, content: bytes
) -> tuple[PrivateKeyTypes | None, x509.Certificate | None, list[x509.Certificate]]:
    try:
        return pkcs12.load_key_and_certificates(content, _bytes(store.password))
    except ValueError:
        raise OptionError(
            f"{store.path} is not a key store (JKS, JCEKS, PKCS12 or PEM), or its password is another one"
        ) from None


def _bytes(password: str | None) -> bytes | None:
    return None if password is None else password.encode()
