"""Chunks: how ORC compresses and frames streams and metadata."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pyarrow as pa

from lockgate.errors import UnsupportedFormatError
from lockgate.framework.io import LIMIT_VARIABLE, most_unpacked, snappy_size, unpack_deflate, unpack_zstandard
from lockgate.framework.orc.format.layout import Compression

HEADER_LENGTH = 3
DEFAULT_BLOCK_SIZE = 256 * 1024
# A chunk's length has 23 bits.
MAX_BLOCK_SIZE = (1 << 23) - 1

Buffer = bytes | bytearray | memoryview


def unframe(codec: Compression, data: Buffer, block_size: int) -> bytes:
    """Return the content of a chunked stream.

    Raises `ValueError` that says what is wrong if the chunks do not fill `data` exactly, do not decompress,
    hold more than `block_size` bytes each, or more together than metadata of this size may unpack to
    (`io.limits`); `UnsupportedFormatError` for LZO and Brotli.
    """
    if codec is Compression.NONE:
        return bytes(data)
    decompress = _decompressor(codec)
    view = memoryview(data)
    content: list[bytes] = []
    position, end = 0, len(view)
    left = most_unpacked(end)
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
            chunk = _checked(decompress, chunk, block_size)
        if len(chunk) > block_size:
            raise ValueError(f"a chunk holds more than the {block_size} bytes of a block")
        left -= len(chunk)
        if left < 0:
            raise ValueError(
                f"its {end} bytes unpack to more than {most_unpacked(end)}; if the file is genuine, set "
                f"{LIMIT_VARIABLE} to a larger number of bytes"
            )
        content.append(chunk)
    return b"".join(content)


def frame(codec: Compression, data: bytes, block_size: int) -> bytes:
    """Put `data` into chunks stored as they are, which every reader accepts whatever the codec."""
    if codec is Compression.NONE:
        return data
    parts: list[bytes] = []
    for start in range(0, len(data), block_size):
        chunk = data[start : start + block_size]
        parts.append((len(chunk) << 1 | 1).to_bytes(HEADER_LENGTH, "little"))
        parts.append(chunk)
    return b"".join(parts)


def _checked(decompress: Callable[[bytes, int], bytes], chunk: bytes, block_size: int) -> bytes:
    try:
        return decompress(chunk, block_size)
    except (OSError, zlib.error, pa.ArrowException, IndexError) as error:
        raise ValueError("a chunk does not decompress") from error


def _decompressor(codec: Compression) -> Callable[[bytes, int], bytes]:
    found = _DECOMPRESSORS.get(codec)
    if found is None:
        raise UnsupportedFormatError(
            f"{codec.name} compression is not supported; rewrite the file with ZSTD, ZLIB, SNAPPY or LZ4"
        )
    return found


def _snappy(chunk: bytes, most: int) -> bytes:
    return _sized("snappy", chunk, snappy_size(chunk), most)


def _lz4(chunk: bytes, most: int) -> bytes:
    return _sized("lz4_raw", chunk, _lz4_size(chunk), most)


def _sized(codec: str, chunk: bytes, size: int, most: int) -> bytes:
    if size > most:
        raise ValueError(f"a chunk holds more than the {most} bytes of a block")
    return bytes(pa.Codec(codec).decompress(chunk, decompressed_size=size, asbytes=True))


def _lz4_size(chunk: bytes) -> int:
    """Return how much an LZ4 block holds: it does not say so itself, and Arrow must be told exactly."""
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
