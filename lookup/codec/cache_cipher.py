"""The stored form of an encrypted cache: keys as MACs, values as AES-CCM.

A stored key is the AES-CMAC of the key's bytes: 127 bits of it behind the bit that names the key space. The
key itself is authenticated with the value (CCM's associated data), so that a value is never taken for that of
another key, should two MACs be equal.

A stored value is two words that have the nonce (a counter, eight bytes; the number of a session, three), the
tag of 16 bytes and the ciphertext. Each process that writes to a database does it in a session of its own,
whose key is derived (HKDF) from the cache's key and 16 random bytes; within a session the counter never
repeats. So no nonce is used twice under a key, whatever crashes, is restored or copied. The random bytes of
all sessions are in the record that the database takes in together with the values.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from lockgate.errors import LookupCacheError
from lockgate.lookup.codec.byte_rows import Rows, Scattered, UInt64s, offsets_of, ragged
from lockgate.lookup.codec.ccm import NONCE_BYTES, RowCcm
from lockgate.lookup.codec.cmac import RowMac

KEY_BYTES = 32
_SALT_BYTES = 16
_SPILL_NONCE_BYTES = 12
_MAC_WORDS = 2
# Of a stored value: the nonce and the tag.
_HEAD_WORDS = 4
_SPACE = np.uint64(1 << 63)


def derive(secret: bytes, purpose: str, salt: bytes = b"") -> bytes:
    """Derive a key of 32 bytes for one purpose (RFC 5869)."""
    kdf = HKDF(SHA256(), KEY_BYTES, salt, f"lockgate.lookup.v1.{purpose}".encode())
    return kdf.derive(secret)


class CacheCipher:
    """The key of one cache, and what is derived from it; it is never shown, pickled or written."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self._values = derive(secret, "values")
        self._mac = RowMac(derive(secret, "keys"))

    def __repr__(self) -> str:
        return "CacheCipher()"

    def __reduce__(self) -> str:
        raise TypeError("the key of a lookup cache cannot be pickled: it must not leave the process")

    def seal_keys(self, keys: Rows) -> Rows:
        """Put the MAC of each encoded key in place of its hash: 16 bytes that are stored, then the key."""
        lengths = keys.lengths
        macs = self._mac.of(keys)
        starts = keys.offsets[:-1]
        space = keys.words[starts].byteswap() & _SPACE
        macs[:, 0] = (macs[:, 0].byteswap() & ~_SPACE | space).byteswap()
        offsets = offsets_of(lengths + (_MAC_WORDS - 1))
        words = np.empty(int(offsets[-1]), np.uint64)
        width = int(lengths[0]) if len(lengths) else 0
        if width and (lengths == width).all():
            table = words.reshape(len(keys), -1)
            table[:, :_MAC_WORDS] = macs
            given = keys.words[keys.offsets[0] : keys.offsets[-1]].reshape(len(keys), width)
            table[:, _MAC_WORDS:] = given[:, 1:]
            return Rows(words, offsets)
        words[offsets[:-1]] = macs[:, 0]
        words[offsets[:-1] + 1] = macs[:, 1]
        rest = lengths - 1
        words[ragged(offsets[:-1] + _MAC_WORDS, rest)] = keys.words[ragged(starts + 1, rest)]
        return Rows(words, offsets)

    def session(self, salt: bytes) -> RowCcm:
        """Return the cipher of the values written in one session."""
        return RowCcm(derive(self._values, "session", salt))


def stored_keys(keys: Rows) -> Rows:
    """Return the stored form of sealed keys: their MACs."""
    words = keys.words[keys.starts[:, None] + np.arange(_MAC_WORDS)].reshape(-1)
    return Rows(words, np.arange(len(keys) + 1, dtype=np.int64) * _MAC_WORDS)


class Opener:
    """Decrypts values by the sessions that a database lists (`salts`, in hexadecimal)."""

    def __init__(self, cipher: CacheCipher, salts: Sequence[str]) -> None:
        self._sessions = {number: cipher.session(bytes.fromhex(salt)) for number, salt in enumerate(salts)}

    def add(self, number: int, session: RowCcm) -> None:
        """Add a session."""
        self._sessions[number] = session

    def open(self, keys: Rows, values: Rows) -> Rows | Scattered:
        """Decrypt the values of sealed keys; raises LookupCacheError if one was tampered with."""
        if len(values) == 0:
            return values
        try:
            return self._open(keys, values)
        except (InvalidTag, KeyError, ValueError):
            raise LookupCacheError(
                "a value of the encrypted lookup cache was changed, or belongs to another key: remove the "
                "cache (lockgate lookup drop) and let it be built again"
            ) from None

    def _open(self, keys: Rows, values: Rows) -> Rows | Scattered:
        starts, lengths = values.starts, values.lengths
        if int(lengths.min()) <= _HEAD_WORDS:
            raise ValueError("too short")
        head = values.words[starts[:, None] + np.arange(_HEAD_WORDS)]
        bodies = Scattered(values.words, starts + _HEAD_WORDS, lengths - _HEAD_WORDS)
        nonces, tags = head[:, :2].copy(), head[:, 2:]
        first = int(nonces[0, 1])
        if (nonces[:, 1] == first).all():
            return self._sessions[first].open(_nonce_bytes(nonces), keys, bodies, tags)
        sessions = np.unique(nonces[:, 1]).tolist()
        words, opened = np.empty(int(bodies.lengths.sum()), np.uint64), np.empty(len(starts), np.int64)
        end = 0
        for session in sessions:
            chosen = np.flatnonzero(nonces[:, 1] == session)
            some = Scattered(bodies.words, bodies.starts[chosen], bodies.lengths[chosen])
            plain = self._sessions[session].open(
                _nonce_bytes(nonces[chosen]), keys.take(chosen), some, tags[chosen]
            )
            words[end : end + len(plain.words)] = plain.words
            opened[chosen] = plain.starts + end
            end += len(plain.words)
        return Scattered(words, opened, bodies.lengths)


class Sealer:
    """Encrypts values in a session of its own; may be used by several threads."""

    def __init__(self, cipher: CacheCipher, number: int) -> None:
        self.number = number
        self.salt = os.urandom(_SALT_BYTES)
        self.session = cipher.session(self.salt)
        self._used = 0
        self._lock = threading.Lock()

    def seal(self, keys: Rows, values: Rows) -> Rows:
        """Encrypt the values of sealed keys; those of no length, which delete a key, stay."""
        lengths = values.lengths
        there = np.flatnonzero(lengths)
        if len(there) < len(values):
            keys, values = keys.take(there), values.take(there)
        nonces = self._nonces(len(there))
        bodies, tags = (
            self.session.seal(_nonce_bytes(nonces), keys, values) if len(there) else (values, nonces)
        )
        sealed = np.zeros(len(lengths), np.int64)
        sealed[there] = bodies.lengths + _HEAD_WORDS
        offsets = offsets_of(sealed)
        words = np.empty(int(offsets[-1]), np.uint64)
        head = offsets[there][:, None] + np.arange(_HEAD_WORDS)
        words[head[:, :2]], words[head[:, 2:]] = nonces, tags
        words[ragged(offsets[there] + _HEAD_WORDS, bodies.lengths)] = bodies.gather().words
        return Rows(words, offsets)

    def _nonces(self, count: int) -> UInt64s:
        with self._lock:
            start = self._used
            self._used += count
        nonces = np.empty((count, 2), np.uint64)
        nonces[:, 0] = np.arange(start, start + count, dtype=np.uint64)
        nonces[:, 1] = self.number
        return nonces


def _nonce_bytes(nonces: UInt64s) -> Any:
    # The counter's eight bytes and three of the session's number, the least significant first.
    return nonces.view(np.uint8).reshape(len(nonces), -1)[:, :NONCE_BYTES]


class SpillCipher:
    """Encrypts the temporary files of a load, under a key that ends with the process."""

    def __init__(self) -> None:
        self._cipher = AESGCM(os.urandom(KEY_BYTES))
        self._used = 0

    def seal(self, piece: bytes) -> bytes:
        """Encrypt one piece, with its nonce before it."""
        self._used += 1
        nonce = struct.pack("<Q4x", self._used)
        return nonce + self._cipher.encrypt(nonce, piece, None)

    def open(self, piece: bytes) -> bytes:
        """Return the reverse of `seal`; LookupCacheError if the file was changed."""
        try:
            return self._cipher.decrypt(piece[:_SPILL_NONCE_BYTES], piece[_SPILL_NONCE_BYTES:], None)
        except InvalidTag:
            raise LookupCacheError("a file of the lookup cache changed while it was built") from None
