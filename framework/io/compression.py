"""Decompression within limits: content that is too large is refused before it fills the memory."""

from __future__ import annotations

import zlib

import pyarrow as pa

# Nearly all blocks are smaller. Larger ones are measured first and unpacked only within the limit.
_CHUNK = 4 * 2**20


def unpack_deflate(data: bytes, most: int) -> bytes:
    """Return the content of raw deflate data, or `most + 1` arbitrary bytes if it has more than `most`.

    Raises ValueError if the data ends too early, and `zlib.error` if it is damaged.
    """
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    content = inflater.decompress(data, min(_CHUNK, most + 1))
    if inflater.eof or len(content) > most:
        return content
    del content
    if _deflated_size(data, most) > most:
        return bytes(most + 1)
    return zlib.decompress(data, -zlib.MAX_WBITS)


def _deflated_size(data: bytes, most: int) -> int:
    """Return the unpacked size of deflated data; counting stops beyond `most`."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    size = 0
    while not inflater.eof and size <= most:
        piece = inflater.decompress(data, _CHUNK)
        if not piece and not inflater.eof:
            raise ValueError("deflated data ends too early")
        size += len(piece)
        data = inflater.unconsumed_tail
    return size


def unpack_zstandard(data: bytes, most: int) -> bytes:
    """Return the content of a Zstandard frame, at most `most + 1` bytes.

    Raises `pyarrow.ArrowException` or OSError if it is damaged.
    """
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read(most + 1))


def snappy_size(data: bytes) -> int:
    """Return the unpacked size in the header of Snappy data: seven bits a byte, the lowest first."""
    size = 0
    for index, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            break
    return size
