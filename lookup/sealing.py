"""What an encrypted cache keeps on disk: keys as MACs, values as AES-GCM.

A stored key is the AES-CMAC of the key's bytes: 127 bits of it behind the bit that names the key space. The
key itself is authenticated with the value (GCM's additional data), so that a value is never taken for that of
another key, should two MACs be equal.

A stored value is a nonce of 12 bytes (the number of a session, four bytes; a counter, eight), the ciphertext
and the tag. Each process that writes to a database does it in a session of its own, whose key is derived
(HKDF) from the cache's key and 16 random bytes; within a session the counter never repeats. So no nonce is
used twice under a key, whatever crashes, is restored or copied. The random bytes of all sessions are in the
record that the database takes in together with the values.
"""

from __future__ import annotations

import operator
import os
import struct
import threading
from collections.abc import Sequence

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from lockgate.errors import LookupCacheError
from lockgate.lookup.cmac import RowMac
from lockgate.lookup.rows import Rows, offsets_of, ragged

STORED_KEY_BYTES = 16
KEY_BYTES = 32
_SALT_BYTES = 16
_NONCE_BYTES = 12
_SESSION_BYTES = 4
_MAC_WORDS = 2
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
        raise TypeError("the key of a lookup cache is not pickled: it must not leave the process")

    def seal_keys(self, keys: Rows) -> Rows:
        """Put the MAC of each encoded key in place of its hash: 16 bytes that are stored, then the key."""
        lengths = keys.lengths
        macs = self._mac.of(keys)
        starts = keys.offsets[:-1]
        space = keys.words[starts].byteswap() & _SPACE
        macs[:, 0] = (macs[:, 0].byteswap() & ~_SPACE | space).byteswap()
        offsets = offsets_of(lengths + (_MAC_WORDS - 1))
        words = np.empty(int(offsets[-1]), np.uint64)
        words[offsets[:-1]] = macs[:, 0]
        words[offsets[:-1] + 1] = macs[:, 1]
        rest = lengths - 1
        words[ragged(offsets[:-1] + _MAC_WORDS, rest)] = keys.words[ragged(starts + 1, rest)]
        return Rows(words, offsets)

    def session(self, salt: bytes) -> AESGCM:
        """The cipher of the values written in one session."""
        return AESGCM(derive(self._values, "session", salt))


class Opener:
    """Decrypts values by the sessions that a database lists (`salts`, in hexadecimal)."""

    def __init__(self, cipher: CacheCipher, salts: Sequence[str]) -> None:
        self._sessions = {
            number.to_bytes(_SESSION_BYTES, "little"): cipher.session(bytes.fromhex(salt))
            for number, salt in enumerate(salts)
        }

    def add(self, number: int, session: AESGCM) -> None:
        """Make a new session known."""
        self._sessions[number.to_bytes(_SESSION_BYTES, "little")] = session

    def open(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> list[bytes | None]:
        """Decrypt the values of sealed keys, None stays; LookupCacheError if one was tampered with."""
        there = [at for at, value in enumerate(values) if value is not None]
        if len(there) < len(values):
            found: list[bytes | None] = [None] * len(values)
            plain = self._open([keys[at] for at in there], [values[at] or b"" for at in there])
            for at, value in zip(there, plain, strict=True):
                found[at] = value
            return found
        return [*self._open(keys, [value or b"" for value in values])]

    def _open(self, keys: Sequence[bytes], values: Sequence[bytes]) -> list[bytes]:
        nonces = [value[:_NONCE_BYTES] for value in values]
        bodies = [value[_NONCE_BYTES:] for value in values]
        try:
            used = {nonce[:_SESSION_BYTES] for nonce in nonces}
            if len(used) == 1:
                return list(map(self._sessions[used.pop()].decrypt, nonces, bodies, keys))
            sessions = self._sessions
            return [
                sessions[nonce[:_SESSION_BYTES]].decrypt(nonce, body, key)
                for nonce, body, key in zip(nonces, bodies, keys, strict=True)
            ]
        except (InvalidTag, KeyError, ValueError):
            raise LookupCacheError(
                "a value of the encrypted lookup cache was changed, or belongs to another key: remove the "
                "cache (lockgate lookup drop) and let it be built again"
            ) from None


class Sealer:
    """Encrypts values in a session of its own; may be used by several threads."""

    def __init__(self, cipher: CacheCipher, number: int) -> None:
        self.number = number
        self.salt = os.urandom(_SALT_BYTES)
        self.session = cipher.session(self.salt)
        self._used = 0
        self._lock = threading.Lock()

    def seal(self, keys: Sequence[bytes], values: Sequence[bytes]) -> list[bytes]:
        """Encrypt the values of sealed keys."""
        nonces = self._nonces(len(values))
        return list(map(operator.add, nonces, map(self.session.encrypt, nonces, values, keys)))

    def seal_some(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> list[bytes | None]:
        """Encrypt the values of sealed keys; None, which deletes a key, stays."""
        there = [at for at, value in enumerate(values) if value is not None]
        sealed: list[bytes | None] = [None] * len(values)
        new = self.seal([keys[at] for at in there], [values[at] or b"" for at in there])
        for at, value in zip(there, new, strict=True):
            sealed[at] = value
        return sealed

    def _nonces(self, count: int) -> list[bytes]:
        with self._lock:
            start = self._used
            self._used += count
        nonces = np.empty(count, np.dtype([("session", "<u4"), ("counter", "<u8")]))
        nonces["session"] = self.number
        nonces["counter"] = np.arange(start, start + count, dtype=np.uint64)
        made: list[bytes] = nonces.view(f"V{_NONCE_BYTES}").tolist()
        return made


class SpillCipher:
    """Encrypts what a load puts aside, under a key that ends with the process."""

    def __init__(self) -> None:
        self._cipher = AESGCM(os.urandom(KEY_BYTES))
        self._used = 0

    def seal(self, piece: bytes) -> bytes:
        """Encrypt one piece, with its nonce before it."""
        self._used += 1
        nonce = struct.pack("<Q4x", self._used)
        return nonce + self._cipher.encrypt(nonce, piece, None)

    def open(self, piece: bytes) -> bytes:
        """The reverse of `seal`; LookupCacheError if the file was changed meanwhile."""
        try:
            return self._cipher.decrypt(piece[:_NONCE_BYTES], piece[_NONCE_BYTES:], None)
        except InvalidTag:
            raise LookupCacheError("a file of the lookup cache changed while it was built") from None
