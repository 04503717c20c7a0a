"""The cipher of ORC's streams and statistics: AES in counter mode with a counter range for each stream."""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import CipherContext

from lockgate.framework.keys import aes_ctr

BLOCK = 16
# `update_into` requires this many bytes after the output, though it writes nothing there.
SLACK = BLOCK - 1
# The stripe number has three bytes in the counter.
MAX_STRIPE = (1 << 24) - 1


def initial_counter(column: int, kind: int, stripe: int, offset: int = 0) -> bytes:
    """Return the initial counter, 16 bytes, of a stream.

        `stripe` counts from 1, and `offset` is in bytes of the stored stream (ORC v1 specification, "Column
    Encryption").
    """
    return (
        column.to_bytes(3, "big")
        + kind.to_bytes(2, "big")
        + stripe.to_bytes(3, "big")
        + (offset // BLOCK).to_bytes(8, "big")
    )


def stream_cipher(key: bytes, column: int, kind: int, stripe: int) -> CipherContext:
    """Return a cipher that starts at the first byte of a stream."""
    return aes_ctr(key, initial_counter(column, kind, stripe))


def crypt(key: bytes, column: int, kind: int, stripe: int, data: bytes, offset: int = 0) -> bytes:
    """Encrypt or decrypt `data`, which starts `offset` bytes into its stream."""
    cipher = aes_ctr(key, initial_counter(column, kind, stripe, offset))
    if offset % BLOCK:
        cipher.update(bytes(offset % BLOCK))
    return cipher.update(data)
