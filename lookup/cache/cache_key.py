"""The key of an encrypted cache: made under the keys of the table's columns, stored wrapped with the cache.

For each key that encrypts a cached column the key provider makes a local key, as it does for a data file.
The cache's key is derived from all of them, so that opening the cache needs every one. `KEYS.json` has the
wrapped local keys and a check value, which tells a wrong key.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.errors import KeyDeniedError, KeyMissingError, LookupCacheError, WrongKeyError
from lockgate.framework.keys import KeyAlgorithm, KeyMetadata, NoKeys
from lockgate.lookup.codec.cache_cipher import CacheCipher, derive

if TYPE_CHECKING:
    from lockgate.framework.keys import KeyProvider
    from lockgate.lookup.cache.directory import CacheDirectory
    from lockgate.lookup.spec.lookup_spec import CacheLayout

_log = logging.getLogger("lockgate.lookup")


def make_cache_key(keys: KeyProvider, names: Sequence[str]) -> tuple[dict[str, Any], CacheCipher]:
    """Make the key of a cache under the newest versions of `names`; return its stored form and the
    cipher.
    """
    wrapped, plain = [], []
    for name in sorted(names):
        key = keys.current_key(name)
        local = keys.create_local_key(key)
        plain.append(local.plain)
        wrapped.append(
            {
                "name": key.name,
                "version": key.version,
                "algorithm": int(key.algorithm),
                "encrypted": base64.b64encode(local.encrypted).decode(),
            }
        )
    secret = _joined(plain)
    return {"wrapped": wrapped, "check": _check(secret)}, CacheCipher(secret)


def open_cache_key(keys: KeyProvider | None, content: Mapping[str, Any]) -> CacheCipher:
    """Unwrap the key of a cache; raises as `KeyProvider.decrypt_local_key`, WrongKeyError for other keys."""
    provider = keys or NoKeys()
    plain = []
    for key in content["wrapped"]:
        metadata = KeyMetadata(key["name"], key["version"], KeyAlgorithm(key["algorithm"]))
        plain.append(provider.decrypt_local_key(metadata, base64.b64decode(key["encrypted"])))
    return cipher_of(_joined(plain), content)


def cipher_of(secret: bytes, content: Mapping[str, Any]) -> CacheCipher:
    """Return the cipher of a cache, WrongKeyError unless `secret` is its key."""
    if not hmac.compare_digest(_check(secret), str(content["check"])):
        names = ", ".join(f"{key['name']}@{key['version']}" for key in content["wrapped"])
        raise WrongKeyError(
            f"the lookup cache was encrypted under another key than the {names} held here: pass the right "
            "keys=..., or remove the cache (lockgate lookup drop)"
        )
    return CacheCipher(secret)


def writer_cipher(directory: CacheDirectory, layout: CacheLayout, keys: KeyProvider | None) -> CacheCipher:
    """Return the cipher of a cache for the process that has its lock: opened, or made for an empty cache.

    A cache is emptied if its key can no longer be opened because a version of a master key was removed.
    """
    content = None
    with contextlib.suppress(LookupCacheError):  # damaged, so it opens nothing any more
        content = directory.key()
    if content is not None:
        try:
            return open_cache_key(keys, content)
        except (KeyMissingError, KeyDeniedError, KeyError, TypeError, ValueError) as error:
            _log.warning("the encrypted lookup cache %s is built again: %s", directory.path, error)
    made, cipher = make_cache_key(keys or NoKeys(), layout.keys)
    directory.clear()
    directory.write_key(made)
    return cipher


def reader_cipher(directory: CacheDirectory, keys: KeyProvider | None) -> CacheCipher | None:
    """Return the cipher of a cache for a process that holds the keys; None for a cache that is not
    encrypted.
    """
    if not directory.layout().keys:
        return None
    content = directory.key()
    if content is None:
        raise LookupCacheError(f"the lookup cache {directory.path} has lost its key: let it be built again")
    return open_cache_key(keys, content)


class CacheKey:
    """The key of one cache in the process of its owner, unwrapped when it is first asked for."""

    def __init__(self, directory: CacheDirectory, keys: KeyProvider | None) -> None:
        self._directory = directory
        self._keys = keys
        self._lock = threading.Lock()
        self._known: tuple[str, bytes] | None = None

    def secret(self) -> bytes | None:
        """Return the key as it is now; None while the cache has none."""
        content = self._directory.key()
        if content is None:
            return None
        with self._lock:
            if self._known is None or self._known[0] != content["check"]:
                self._known = str(content["check"]), open_cache_key(self._keys, content).secret
            return self._known[1]


def _joined(plain: Sequence[bytes]) -> bytes:
    return derive(b"".join(len(key).to_bytes(1, "big") + key for key in plain), "cache")


def _check(secret: bytes) -> str:
    return derive(secret, "check")[:16].hex()
