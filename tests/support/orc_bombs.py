"""ORC files made of one that is whole: parts that unpack to gigabytes, and claims that no file fulfils."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame, unframe
from lockgate.framework.orc.format.layout import Compression

ROW_INDEX = 6
LENGTH = 2
DICTIONARY_V2 = 3


@dataclass
class Parts:
    """A file of one stripe: `streams` are as stored, and the rest is unpacked."""

    postscript: proto.Message
    footer: proto.Message
    stripe: proto.Message
    streams: list[bytes]
    # What follows the footers' own fields, as stored.
    behind_footer: bytes = b""
    behind_stripe: bytes = b""

    @property
    def codec(self) -> Compression:
        """How the file is compressed."""
        return Compression(self.postscript.compression)

    @property
    def block(self) -> int:
        """The bytes of a compression block."""
        return int(self.postscript.compression_block_size)

    def framed(self, data: bytes) -> bytes:
        """Content in chunks that are stored as they are."""
        return frame(self.codec, data, self.block)

    def zeros(self, start: bytes, size: int) -> bytes:
        """Chunks of `start` and so many zeros, of a few bytes each."""
        assert self.codec is Compression.ZSTD
        packed = bytes(pa.Codec("zstd").compress(bytes(self.block), asbytes=True))
        chunk = (len(packed) << 1).to_bytes(3, "little") + packed
        return self.framed(start) + chunk * (size // self.block)


def field_of(number: int, size: int) -> bytes:
    """The head of a field of bytes of a protobuf message."""
    return _varint(number << 3 | 2) + _varint(size)


def rebuilt(data: bytes, change: Callable[[Parts], None]) -> bytes:
    """The file after a change of its parts, with offsets and lengths that fit together."""
    parts = _taken_apart(data)
    block = parts.postscript.compression_block_size
    change(parts)
    for stream, stored in zip(parts.stripe.streams, parts.streams, strict=True):
        stream.length = len(stored)
    stripe = parts.footer.stripes[0]
    claimed, parts.postscript.compression_block_size = parts.postscript.compression_block_size, block
    indexes = [stream.kind >= ROW_INDEX for stream in parts.stripe.streams]
    stripe.index_length = sum(len(s) for s, index in zip(parts.streams, indexes, strict=True) if index)
    stripe.data_length = sum(map(len, parts.streams)) - stripe.index_length
    stripe_footer = parts.framed(parts.stripe.SerializeToString()) + parts.behind_stripe
    stripe.footer_length = len(stripe_footer)
    footer = parts.framed(parts.footer.SerializeToString()) + parts.behind_footer
    parts.postscript.footer_length, parts.postscript.metadata_length = len(footer), 0
    parts.postscript.compression_block_size = claimed
    postscript = parts.postscript.SerializeToString()
    body = b"ORC" + b"".join(parts.streams) + stripe_footer
    return body + footer + postscript + bytes([len(postscript)])


def _taken_apart(data: bytes) -> Parts:
    end = len(data) - 1 - data[-1]
    postscript = proto.PostScript.FromString(data[end:-1])
    codec, block = Compression(postscript.compression), postscript.compression_block_size
    footer = proto.Footer.FromString(unframe(codec, data[end - postscript.footer_length : end], block))
    (stripe,) = footer.stripes
    at = stripe.offset + stripe.index_length + stripe.data_length
    inner = proto.StripeFooter.FromString(unframe(codec, data[at : at + stripe.footer_length], block))
    streams, at = [], stripe.offset
    for stream in inner.streams:
        streams.append(data[at : at + stream.length])
        at += stream.length
    return Parts(postscript, footer, inner, streams)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])
