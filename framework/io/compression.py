"""Decompression within limits: too large a content is an error before it takes the memory."""

from __future__ import annotations

import zlib

import pyarrow as pa

# Nearly all blocks are smaller. What is larger is measured first and kept only if it is not too large.
_AT_ONCE = 4 * 2**20


def unpack_deflate(data: bytes, most: int) -> bytes:
    """Return what raw deflate holds, or `most + 1` bytes of any content if that is more than `most`.

    Raises ValueError if the data ends too early, and `zlib.error` if it is damaged.
    """
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    content = inflater.decompress(data, min(_AT_ONCE, most + 1))
    if inflater.eof or len(content) > most:
        return content
    del content
    if _deflated_size(data, most) > most:
        return bytes(most + 1)
    return zlib.decompress(data, -zlib.MAX_WBITS)


def _deflated_size(data: bytes, most: int) -> int:
    """Return how many bytes deflated data holds, counted up to the first piece past `most`."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    size = 0
    while not inflater.eof and size <= most:
        piece = inflater.decompress(data, _AT_ONCE)
        if not piece and not inflater.eof:
            raise ValueError("deflated data ends too early")
        size += len(piece)
        data = inflater.unconsumed_tail
    return size


def unpack_zstandard(data: bytes, most: int) -> bytes:
    """Return what a frame of Zstandard holds, at most `most + 1` bytes of it.

    Raises `pyarrow.ArrowException` or OSError if it is damaged.
    """
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read(most + 1))


def snappy_size(data: bytes) -> int:
    """Return how many bytes Snappy data says it unpacks to: seven bits a byte, the lowest first."""
    size = 0
    for index, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            break
    return size
