"""Compression chunks: ORC's framing of streams and metadata."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pyarrow as pa

from lockgate.errors import UnsupportedFormatError
from lockgate.framework.io import LIMIT_VARIABLE, most_unpacked, snappy_size, unpack_deflate, unpack_zstandard
from lockgate.framework.orc.format.layout import Compression

HEADER_LENGTH = 3
DEFAULT_BLOCK_SIZE = 256 * 1024
# The length field of a chunk has 23 bits.
MAX_BLOCK_SIZE = (1 << 23) - 1

Buffer = bytes | bytearray | memoryview


def unframe(codec: Compression, data: Buffer, block_size: int) -> bytes:
    """Return the decompressed content of a chunked stream.

    Raises `ValueError` with the reason if the chunks do not fill `data` exactly, do not decompress, have more
    than `block_size` bytes each, or together more than the limit for data of this size (`io.limits`). Raises
    `UnsupportedFormatError` for LZO and Brotli.
    """
    if codec is Compression.NONE:
        return bytes(data)
    decompress = _decompressor(codec)
    view = memoryview(data)
    content: list[bytes] = []
    position, end = 0, len(view)
    remaining = most_unpacked(end)
    while position < end:
        if position + HEADER_LENGTH > end:
            raise ValueError("a chunk header is cut off")
        header = int.from_bytes(view[position : position + HEADER_LENGTH], "little")
        position += HEADER_LENGTH
        length = header >> 1
        if position + length > end:
            raise ValueError(
                f"a chunk of {length} bytes reaches {position + length - end} bytes past the end"
            )
        chunk = bytes(view[position : position + length])
        position += length
        if not header & 1:
            chunk = _decompress(decompress, chunk, block_size)
        if len(chunk) > block_size:
            raise ValueError(f"a chunk holds more than the {block_size} bytes of a block")
        remaining -= len(chunk)
        if remaining < 0:
            raise ValueError(
                f"its {end} bytes unpack to more than {most_unpacked(end)}; if the file is genuine, set "
                f"{LIMIT_VARIABLE} to a larger number of bytes"
            )
        content.append(chunk)
    return b"".join(content)


def frame(codec: Compression, data: bytes, block_size: int) -> bytes:
    """Return `data` in uncompressed chunks, which every reader accepts for any codec."""
    if codec is Compression.NONE:
        return data
    parts: list[bytes] = []
    for start in range(0, len(data), block_size):
        chunk = data[start : start + block_size]
        parts.append((len(chunk) << 1 | 1).to_bytes(HEADER_LENGTH, "little"))
        parts.append(chunk)
    return b"".join(parts)


def _decompress(decompress: Callable[[bytes, int], bytes], chunk: bytes, block_size: int) -> bytes:
    try:
        return decompress(chunk, block_size)
    except (OSError, zlib.error, pa.ArrowException, IndexError) as error:
        raise ValueError("a chunk does not decompress") from error


def _decompressor(codec: Compression) -> Callable[[bytes, int], bytes]:
    decompress = _DECOMPRESSORS.get(codec)
    if decompress is None:
        raise UnsupportedFormatError(
            f"{codec.name} compression is not supported; rewrite the file with ZSTD, ZLIB, SNAPPY or LZ4"
        )
    return decompress


def _snappy(chunk: bytes, max_size: int) -> bytes:
    return _decompress_arrow("snappy", chunk, snappy_size(chunk), max_size)


def _lz4(chunk: bytes, max_size: int) -> bytes:
    return _decompress_arrow("lz4_raw", chunk, _lz4_size(chunk), max_size)


def _decompress_arrow(codec: str, chunk: bytes, size: int, max_size: int) -> bytes:
    if size > max_size:
        raise ValueError(f"a chunk holds more than the {max_size} bytes of a block")
    return bytes(pa.Codec(codec).decompress(chunk, decompressed_size=size, asbytes=True))


def _lz4_size(chunk: bytes) -> int:
    """Return the decompressed size of an LZ4 block: the block does not store it, and Arrow needs it."""
    size = position = 0
    while position < len(chunk):
        token = chunk[position]
        literals, position = _lz4_length(chunk, position + 1, token >> 4)
        position += literals
        size += literals
        if position >= len(chunk):
            break
        match, position = _lz4_length(chunk, position + 2, token & 15)
        size += match + 4
    return size


def _lz4_length(chunk: bytes, position: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            byte = chunk[position]
            position += 1
            length += byte
            if byte != 255:
                break
    return length, position


_DECOMPRESSORS: dict[Compression, Callable[[bytes, int], bytes]] = {
    Compression.ZLIB: unpack_deflate,
    Compression.SNAPPY: _snappy,
    Compression.LZ4: _lz4,
    Compression.ZSTD: unpack_zstandard,
}
