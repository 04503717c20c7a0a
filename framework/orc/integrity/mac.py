"""The message authentication code of a file: AES-256-GMAC with a key for each file."""

from __future__ import annotations

import secrets
import struct
from hmac import compare_digest

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from lockgate.framework.orc.format.chunks import Buffer

KEY_LENGTH = 32
TAG_LENGTH = 16
WRAPPED_LENGTH = KEY_LENGTH + TAG_LENGTH
# Stored bytes that one tag covers.
GRANULE = 256 * 1024
# Used for the stripe footer in place of a stream's ordinal.
FOOTER_ORDINAL = 0xFFFFFFFF

_LABEL = b"lockgate.orc.integrity.v1"
_NONCE = struct.Struct(">III")
_TAIL_NONCE = _NONCE.pack(0xFFFFFFFF, 0xFFFFFFFF, 0)
# A constant nonce is safe: the wrapping key is used once, since each file has new local keys.
_WRAP_NONCE = bytes(12)


def new_mac_key() -> bytes:
    """Return a new random key for one file."""
    return secrets.token_bytes(KEY_LENGTH)


def granules(length: int) -> int:
    """Return the number of granules, which is that of tags, of a stream of `length` bytes."""
    return -(-length // GRANULE)


class Mac:
    """Computes and checks tags with one key; thread-safe."""

    __slots__ = ("_aead",)

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)

    def tag(self, stripe: int, ordinal: int, granule: int, data: Buffer) -> bytes:
        """Return the tag of a granule: `stripe` from 0, stream `ordinal` in the stripe's physical order."""
        # GCM without plaintext, with the message as associated data, is GMAC (NIST SP 800-38D, section 3).
        return self._aead.encrypt(_NONCE.pack(stripe, ordinal, granule), b"", data)

    def fits(self, tag: Buffer, stripe: int, ordinal: int, granule: int, data: Buffer) -> bool:
        """Return whether `tag` matches the granule."""
        return compare_digest(tag, self.tag(stripe, ordinal, granule, data))

    def tail_tag(self, data: Buffer) -> bytes:
        """Return the tag of a file's tail."""
        return self._aead.encrypt(_TAIL_NONCE, b"", data)

    def tail_fits(self, tag: Buffer, data: Buffer) -> bool:
        """Return whether `tag` matches the tail."""
        return compare_digest(tag, self.tail_tag(data))


def wrap_key(mac_key: bytes, local_key: bytes, key_name: str) -> bytes:
    """Encrypt a file's MAC key by the local key of a column."""
    return _wrapping(local_key, key_name).encrypt(_WRAP_NONCE, mac_key, _LABEL)


def unwrap_key(wrapped: bytes, local_key: bytes, key_name: str) -> bytes | None:
    """Decrypt a file's MAC key; None if `wrapped` is damaged."""
    try:
        return _wrapping(local_key, key_name).decrypt(_WRAP_NONCE, wrapped, _LABEL)
    except InvalidTag:
        return None


def _wrapping(local_key: bytes, key_name: str) -> AESGCM:
    derivation = HKDF(SHA256(), KEY_LENGTH, salt=None, info=_LABEL + key_name.encode())
    return AESGCM(derivation.derive(local_key))
