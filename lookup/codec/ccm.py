"""AES-CCM (NIST SP 800-38C, RFC 3610) of many messages at once, in a few calls of the cipher for all of them.

CCM needs nothing but the block cipher: the key streams of all messages are one call over all their counter
blocks, and their tags advance together, one call for the next block of every message. A library's call a
message costs more than the whole of this. GCM's tag is a product in GF(2^128) a block, which has no such form
in numpy.

The parameters: nonces of 11 bytes, tags of 16, messages of up to 4 GiB, of whole words of eight bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lockgate.lookup.codec.byte_rows import Int64s, Rows, Scattered, UInt64s, offsets_of

NONCE_BYTES = 11
TAG_BYTES = 16
_BLOCK = 16
_LENGTH_BYTES = 4
_COUNTER_FLAGS = _LENGTH_BYTES - 1
_FIRST_FLAGS = 0x40 | (TAG_BYTES - 2) // 2 << 3 | _LENGTH_BYTES - 1
# Associated data from this length on has six bytes of length before it instead of two.
_WIDE_WORDS = ((1 << 16) - (1 << 8)) // 8
_WIDE_MARK = 0xFFFE
# A chunk stays in the processor's cache, which is twice as fast as all rows at once.
_CHUNK_ROWS = 1 << 13
_CHUNK_WORDS = 1 << 16
# Rows with longer associated data are done last, by themselves and few at a time.
_LONG_WORDS = 1 << 9

_Rows = Rows | Scattered


class RowCcm:
    """Seals and opens rows under one key of 16 or 32 bytes; may be used by several threads.

    `nonces` are bytes of shape (rows, 11), tags words of shape (rows, 2). Associated data are rows too, of at
    least one word and less than 4 GiB each.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - the block function that CCM is made of

    def seal(self, nonces: Any, associated: _Rows, plain: _Rows) -> tuple[Scattered, UInt64s]:
        """Encrypt rows; returns the encrypted rows, as long as they were, and their tags."""
        return self._in_chunks(nonces, associated, plain, sealing=True)

    def open(self, nonces: Any, associated: _Rows, sealed: _Rows, tags: UInt64s) -> Scattered:
        """Decrypt rows; raises InvalidTag if any of them is not what was sealed."""
        plain, expected = self._in_chunks(nonces, associated, sealed, sealing=False)
        # Compares all bits of all tags, wherever they differ.
        if np.bitwise_or.reduce(expected ^ tags, axis=None):
            raise InvalidTag
        return plain

    def _in_chunks(
        self, nonces: Any, associated: _Rows, rows: _Rows, *, sealing: bool
    ) -> tuple[Scattered, UInt64s]:
        # Rows of one length together are a matrix: no index a word is needed.
        rows, associated = _scattered(rows), _scattered(associated)
        long = associated.lengths > _LONG_WORDS
        order = np.lexsort((rows.lengths, long)) if long.any() else _by_length(rows.lengths)
        short = len(order) - int(np.count_nonzero(long))
        lengths = rows.lengths[order]
        offsets = offsets_of(lengths)
        made = np.empty(int(offsets[-1]), np.uint64)
        tags = np.empty((len(rows), 2), np.uint64)
        encryptor = self._cipher.encryptor()
        first = 0
        while first < len(order):
            end = min(first + _CHUNK_ROWS, short if first < short else len(order))
            widest = int(lengths[end - 1])
            if first >= short:
                widest = max(widest, int(associated.lengths[order[first:end]].max()))
            end = min(end, first + max(1, _CHUNK_WORDS // max(1, widest)))
            chosen = order[first:end]
            chunk = _Chunk(encryptor, nonces[chosen], lengths[first:end])
            words, kept = _matrix(rows, chosen)
            # The opened bytes overwrite the sealed ones, which nobody needs any more.
            other = chunk.combined(words, np.empty_like(words) if sealing else words)
            if kept is None:
                width = int(lengths[first])
                other[:, width:] = 0
                made[offsets[first] : offsets[end]].reshape(end - first, width)[:] = other[:, :width]
            else:
                other[~kept] = 0
                made[offsets[first] : offsets[end]] = other[kept]
            keys = _matrix(associated, chosen)[0]
            tags[chosen] = chunk.tags(keys, associated.lengths[chosen], words if sealing else other)
            first = end
        starts = np.empty(len(order), np.int64)
        starts[order] = offsets[:-1]
        return Scattered(made, starts, rows.lengths), tags


class _Chunk:
    """Messages of nearly one length, in matrices of a row each that are padded to blocks with zeros."""

    def __init__(self, encryptor: Any, nonces: Any, lengths: Int64s) -> None:
        self._encryptor = encryptor
        self._nonces = nonces
        self._lengths = lengths
        blocks = 1 + (int(lengths.max()) + 1) // 2
        counters = np.empty((len(nonces), blocks, 2), np.uint64)
        counters[:] = _blocks(_COUNTER_FLAGS, nonces, np.zeros(len(nonces), np.int64))[:, None]
        counters.view(">u4")[:, :, 3] = np.arange(blocks)
        self._stream = self._encrypt(counters)

    def combined(self, words: UInt64s, out: UInt64s) -> UInt64s:
        """Put the words of the messages, combined with the key stream, into `out`."""
        blocks = (len(words), words.shape[1] // 2, 2)
        np.bitwise_xor(words.reshape(blocks), self._stream[:, 1:], out=out.reshape(blocks))
        return out

    def tags(self, associated: UInt64s, associated_lengths: Int64s, clear: UInt64s) -> UInt64s:
        """Return the tags of the messages in the clear with their associated data."""
        state = self._encrypt(_blocks(_FIRST_FLAGS, self._nonces, self._lengths * 8))
        state = self._absorb(
            state, _with_lengths(associated, associated_lengths), associated_lengths // 2 + 1
        )
        state = self._absorb(state, clear, (self._lengths + 1) // 2)
        tags: UInt64s = state ^ self._stream[:, 0]
        return tags

    def _encrypt(self, blocks: UInt64s) -> UInt64s:
        made = np.empty(blocks.size + 2, np.uint64)  # the library asks for a block more
        self._encryptor.update_into(blocks.reshape(-1).view(np.uint8), made.view(np.uint8))
        return made[: blocks.size].reshape(blocks.shape)

    def _absorb(self, state: UInt64s, words: UInt64s, counts: Int64s) -> UInt64s:
        # CBC-MAC: the next block of each message that has another.
        least = int(counts.min())
        for block in range(int(counts.max())):
            fresh = self._encrypt(state ^ words[:, 2 * block : 2 * block + 2])
            state = fresh if block < least else np.where((counts > block)[:, None], fresh, state)
        return state


def _by_length(lengths: Int64s) -> Int64s:
    # Numbers of 16 bits are sorted by their digits, in a third of the time.
    small = len(lengths) > 0 and int(lengths.max()) < 1 << 16
    return np.argsort(lengths.astype(np.uint16) if small else lengths, kind="stable")


def _scattered(rows: _Rows) -> Scattered:
    return rows if isinstance(rows, Scattered) else Scattered(rows.words, rows.starts, rows.lengths)


def _matrix(rows: Scattered, chosen: Int64s) -> tuple[UInt64s, Any]:
    # Rows as a matrix of words, of an even number of columns, and which of them are a row's own; None: all.
    lengths = rows.lengths[chosen]
    width = int(lengths.max())
    columns = np.arange(width, dtype=np.int64)
    matrix = np.zeros((len(chosen), width + width % 2), np.uint64)
    at = rows.starts[chosen][:, None] + columns
    if int(lengths.min()) == width:
        matrix[:, :width] = rows.words[at]
        return matrix, None
    kept = np.zeros(matrix.shape, bool)
    kept[:, :width] = columns < lengths[:, None]
    matrix[kept] = rows.words[at[kept[:, :width]]]
    return matrix, kept


def _blocks(flags: int, nonces: Any, numbers: Int64s) -> UInt64s:
    # The flags, the nonce and a number, most significant byte first.
    blocks = np.empty((len(nonces), _BLOCK), np.uint8)
    blocks[:, 0] = flags
    blocks[:, 1 : 1 + NONCE_BYTES] = nonces
    blocks.view(">u4")[:, 3] = numbers
    return blocks.view(np.uint64)


def _with_lengths(words: UInt64s, lengths: Int64s) -> UInt64s:
    # The length, then the row: its words move up by the two or six bytes of the length.
    if not 0 < int(lengths.min()) <= int(lengths.max()) < 1 << 29:
        raise ValueError("associated data of no bytes, or of 4 GiB or more")
    moved = np.zeros((len(words), words.shape[1] + 2), np.uint64)
    wide = lengths >= _WIDE_WORDS
    if not wide.any():
        _shift_in(moved, words, 2)
        moved[:, 0] |= (lengths * 8).astype(np.uint16).byteswap()
        return moved
    narrow = ~wide
    moved[narrow] = _with_lengths(words[narrow], lengths[narrow]) if narrow.any() else 0
    longer = np.zeros((int(wide.sum()), moved.shape[1]), np.uint64)
    _shift_in(longer, words[wide], 6)
    counted = np.uint64(_WIDE_MARK) << np.uint64(48) | (lengths[wide] * 8).astype(np.uint64) << np.uint64(16)
    longer[:, 0] |= counted.byteswap()
    moved[wide] = longer
    return moved


def _shift_in(moved: UInt64s, words: UInt64s, by: int) -> None:
    # The bytes of `words`, each row from its byte `by` on.
    bits = np.uint64(8 * by)
    moved[:, :-2] = words << bits
    moved[:, 1:-1] |= words >> (np.uint64(64) - bits)
