"""Decompression within limits."""

from __future__ import annotations

import zlib

import pytest

from lockgate.framework.io.compression import unpack_deflate, unpack_zstandard


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


SIZES = [0, 1, 4 * 2**20 - 1, 4 * 2**20, 4 * 2**20 + 1, 9 * 2**20]


@pytest.mark.parametrize("size", SIZES)
def test_content_within_the_limit_is_unpacked(size: int) -> None:
    content = (b"lockgate" * (size // 8 + 1))[:size]
    assert unpack_deflate(deflated(content), size) == content
    assert unpack_deflate(deflated(content), size + 1) == content


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("less", [1, 2])
def test_larger_content_has_one_byte_more_than_the_limit(size: int, less: int) -> None:
    most = max(size - less, 0)
    assert len(unpack_deflate(deflated(b"\0" * size), most)) == min(most + 1, size)


@pytest.mark.parametrize("size", SIZES[1:])
def test_truncated_deflate_data_is_refused(size: int) -> None:
    with pytest.raises((ValueError, zlib.error)):
        unpack_deflate(deflated(bytes(size))[:-1], size + 10)


def test_zstandard_stops_at_the_limit() -> None:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(bytes(1000))
    data = sink.getvalue().to_pybytes()
    assert unpack_zstandard(data, 1000) == bytes(1000)
    assert len(unpack_zstandard(data, 10)) == 11
