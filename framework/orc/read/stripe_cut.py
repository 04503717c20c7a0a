"""Cutting row groups out of streams, for an image that Arrow decodes.

Of each stream, the stored bytes from the first chunk of the first row group to the last chunk of the last one
are read and decrypted. The first chunk is decompressed; its values before the row group are dropped, which
may split a run, and the rest is stored uncompressed. All other chunks are unchanged. Values after the last
row group are harmless, since a reader stops at the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.layout import Compression
from lockgate.framework.orc.format.positions import StreamPosition
from lockgate.framework.orc.format.run_lengths import Form, drop, drop_bits, span
from lockgate.framework.orc.read.stream_bytes import PIECE, StreamBytes


@dataclass(frozen=True)
class Cut:
    """A part of a stream: from `start` to `end`, or to the end of the stream if None."""

    form: Form
    start: StreamPosition
    end: StreamPosition | None

    def estimate_end(self, length: int, later: Sequence[int], codec: Compression) -> int:
        """Estimate the stored byte up to which to read at first.

        `later` are the chunks in which later row groups start. A run may continue in the next chunk, which
        then is read separately.
        """
        if self.end is None:
            return length
        if codec is Compression.NONE:
            return min(length, self.end.chunk + PIECE)
        return min((chunk for chunk in later if chunk > self.end.chunk), default=length)


def cut(stream: StreamBytes, part: Cut) -> bytes:
    """Return a part of a stream as a framed stream; `CorruptFileError` if the positions do not fit it."""
    try:
        head, following = _head(stream, part)
        stop = stream.length if part.end is None else _stop(stream, part.form, part.end)
        if part.start.bits:
            while following < stop:
                head += stream.content(following)
                following = stream.after(following)
            head = drop_bits(head, part.start.skip, part.start.bits)
        else:
            head = drop(part.form, head, part.start.skip)
    except ValueError as error:
        raise stream.damaged(str(error)) from error
    framed = frame(stream.tail.codec, head, stream.tail.block_size)
    return framed + stream.stored(following, stop) if following < stop else framed


def _head(stream: StreamBytes, part: Cut) -> tuple[bytes, int]:
    """Return the content from `start` on up to the first value to keep, and the next chunk."""
    content, following = _content_at(stream, part.start)
    while span(part.form, content, _values(part.start)) is None:
        if following >= stream.length:
            if part.start.bits or part.start.skip:
                raise ValueError("it ends before a row group starts")
            break
        content += stream.content(following)
        following = stream.after(following)
    return content, following


def _stop(stream: StreamBytes, form: Form, end: StreamPosition) -> int:
    """Return the end of the last chunk with values before `end`."""
    if not (end.offset or end.skip or end.bits):
        return min(end.chunk, stream.length)
    content, following = _content_at(stream, end)
    while span(form, content, _values(end)) is None and following < stream.length:
        content += stream.content(following)
        following = stream.after(following)
    return following


def _content_at(stream: StreamBytes, position: StreamPosition) -> tuple[bytes, int]:
    """Return the content after `position` in its chunk, and the next chunk."""
    chunk, offset = position.chunk, position.offset
    while True:
        if chunk >= stream.length:
            if offset:
                raise ValueError("a row group starts behind its end")
            return b"", chunk
        content = stream.content(chunk)
        following = stream.after(chunk)
        if offset <= len(content):
            return content[offset:], following
        offset -= len(content)
        chunk = following


def _values(position: StreamPosition) -> int:
    """Return the number of encoded values before the row group, including the byte of its first bit."""
    return position.skip + (1 if position.bits else 0)
