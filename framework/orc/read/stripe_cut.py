"""Some row groups of a stripe as a small plain ORC file in memory, which Arrow then decodes.

Of each stream the stored bytes from the first chunk of the first row group to the last chunk of the last one
are read and decrypted. The first chunk is decompressed, what lies before the row group is dropped (a run is
cut in two), and the rest of it is stored as it is; all other chunks stay as they are. What is behind the last
row group does no harm, since a reader stops at the number of rows.
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
    """The wanted part of a stream: from `start` to `end` (None = its end)."""

    form: Form
    start: StreamPosition
    end: StreamPosition | None

    def guess(self, length: int, later: Sequence[int], codec: Compression) -> int:
        """Guess up to which stored byte to read at first; `later` are the chunks where later groups start.

        It need not be enough: a run may go on in the next chunk.
        """
        if self.end is None:
            return length
        if codec is Compression.NONE:
            return min(length, self.end.chunk + PIECE)
        return min((chunk for chunk in later if chunk > self.end.chunk), default=length)


def cut(stream: StreamBytes, wanted: Cut) -> bytes:
    """Return the framed stream of the wanted part; `CorruptFileError` if the positions do not fit the
    stream.
    """
    try:
        head, following = _head(stream, wanted)
        stop = stream.length if wanted.end is None else _stop(stream, wanted.form, wanted.end)
        if wanted.start.bits:
            while following < stop:
                head += stream.content(following)
                following = stream.after(following)
            head = drop_bits(head, wanted.start.skip, wanted.start.bits)
        else:
            head = drop(wanted.form, head, wanted.start.skip)
    except ValueError as error:
        raise stream.damaged(str(error)) from error
    framed = frame(stream.tail.codec, head, stream.tail.block_size)
    return framed + stream.stored(following, stop) if following < stop else framed


def _head(stream: StreamBytes, wanted: Cut) -> tuple[bytes, int]:
    """Return the content from `start` on with all runs that are dropped or cut, and the chunk that follows
    it.
    """
    content, following = _content_at(stream, wanted.start)
    while span(wanted.form, content, _values(wanted.start)) is None:
        if following >= stream.length:
            if wanted.start.bits or wanted.start.skip:
                raise ValueError("it ends before a row group starts")
            break
        content += stream.content(following)
        following = stream.after(following)
    return content, following


def _stop(stream: StreamBytes, form: Form, end: StreamPosition) -> int:
    """Return the chunk behind the last one with values before `end`."""
    if not (end.offset or end.skip or end.bits):
        return min(end.chunk, stream.length)
    content, following = _content_at(stream, end)
    while span(form, content, _values(end)) is None and following < stream.length:
        content += stream.content(following)
        following = stream.after(following)
    return following


def _content_at(stream: StreamBytes, position: StreamPosition) -> tuple[bytes, int]:
    """Return what follows `position` in its chunk, and the chunk after."""
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
    """Return how many encoded values are before the row group: the byte that its first bit is in counts as
    well.
    """
    return position.skip + (1 if position.bits else 0)
