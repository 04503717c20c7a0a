"""AES-CMAC (NIST SP 800-38B, RFC 4493) of many rows at once: one call of the cipher for a block of all rows.

Keys of an encrypted cache are found by it. HMAC would do as well and costs a Python call a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lockgate.lookup.codec.byte_rows import Rows, UInt64s, ragged

# A word whose first byte in memory is 0x80: what CMAC puts behind a message that ends within a block.
_PADDING = np.frombuffer(b"\x80" + bytes(7), np.uint64)[0]
_REDUCTION = 0x87
_BLOCK_WORDS = 2


class RowMac:
    """The MAC of byte rows under one key of 16 or 32 bytes; may be used by several threads."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - the block function that CMAC is made of
        first = _doubled(self._cipher.encryptor().update(bytes(16)))
        self._whole = np.frombuffer(first, np.uint64)
        self._padded = np.frombuffer(_doubled(first), np.uint64)

    def of(self, rows: Rows) -> UInt64s:
        """Return the MACs, two words a row, as an array of shape (rows, 2)."""
        lengths = rows.lengths
        if len(rows) and int(lengths.min()) == int(lengths.max()):
            words = rows.words[rows.offsets[0] : rows.offsets[-1]]
            return self._of_equal(words.reshape(len(rows), -1))
        macs = np.empty((len(rows), _BLOCK_WORDS), np.uint64)
        for length in np.unique(lengths).tolist():
            chosen = np.flatnonzero(lengths == length)
            at = ragged(rows.offsets[chosen], lengths[chosen])
            macs[chosen] = self._of_equal(rows.words[at].reshape(len(chosen), length))
        return macs

    def _of_equal(self, words: UInt64s) -> UInt64s:
        count, length = words.shape
        padded = length % _BLOCK_WORDS != 0 or length == 0
        blocks = max(1, -(-length // _BLOCK_WORDS))
        message = np.zeros((count, blocks * _BLOCK_WORDS), np.uint64)
        message[:, :length] = words
        if padded:
            message[:, length] = _PADDING
        message[:, -_BLOCK_WORDS:] ^= self._padded if padded else self._whole
        state = np.zeros((count, _BLOCK_WORDS), np.uint64)
        encryptor: Any = self._cipher.encryptor()  # typed for fewer kinds of buffers than it takes
        for block in range(blocks):
            state = state ^ message[:, block * _BLOCK_WORDS : (block + 1) * _BLOCK_WORDS]
            made = np.empty(state.size + _BLOCK_WORDS, np.uint64)  # the library asks for a block more
            encryptor.update_into(state.reshape(-1).view(np.uint8), made.view(np.uint8))
            state = made[: state.size].reshape(count, _BLOCK_WORDS)
        return state


def _doubled(block: bytes) -> bytes:
    # Multiplication by x in GF(2^128), which makes the two subkeys.
    value = int.from_bytes(block, "big") << 1
    return (value & ((1 << 128) - 1) ^ (_REDUCTION if value >> 128 else 0)).to_bytes(16, "big")
