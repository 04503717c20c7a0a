"""Partial reads of one stream: reads, decrypts and decompresses only the needed part."""

from __future__ import annotations

from lockgate.framework.orc.encryption.stream_cipher import crypt
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format.chunks import HEADER_LENGTH, unframe
from lockgate.framework.orc.format.layout import Compression, corrupt
from lockgate.framework.orc.format.stripe import Stream, Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.sources.file_source import Source

# Streams without compression have no chunks; pieces of this size replace them.
PIECE = 8 * 1024


class StreamBytes:
    """A window on a stream that grows towards its end; offsets are in stored bytes from the stream's start.

    A chunk is a compression chunk, or without compression `PIECE` bytes.
    """

    def __init__(
        self, source: Source, tail: Tail, variants: Variants, stripe: Stripe, stream: Stream, start: int = 0
    ) -> None:
        self.stream = stream
        self.tail = tail
        self._source = source
        self._key = None if stream.variant is None else variants.stripe_key(stream.variant, stripe.index)
        self._stripe_id = variants.stripe_id(stripe.index)
        self._start = start
        self._data = b""
        self._contents: dict[int, bytes] = {}

    @property
    def length(self) -> int:
        """The stored bytes of the whole stream."""
        return self.stream.length

    def fill(self, stored: memoryview | bytes) -> None:
        """Append stored bytes to the window."""
        at = self._start + len(self._data)
        data = bytes(stored)
        if self._key is not None and data:
            data = crypt(self._key, self.stream.column, self.stream.kind, self._stripe_id, data, at)
        self._data += data

    def stored(self, start: int, end: int) -> bytes:
        """Return stored bytes, decrypted; `start` must not lie before the window."""
        held_end = self._start + len(self._data)
        end = min(end, self.length)
        if end > held_end:
            self.fill(self._source.read_at(self.stream.offset + held_end, end - held_end))
        return self._data[start - self._start : end - self._start]

    def after(self, chunk: int) -> int:
        """Return the start of the chunk after the one at `chunk`."""
        if self.tail.codec is Compression.NONE:
            return min(chunk + PIECE, self.length)
        header = self.stored(chunk, chunk + HEADER_LENGTH)
        end = chunk + HEADER_LENGTH + (int.from_bytes(header, "little") >> 1)
        if len(header) < HEADER_LENGTH or end > self.length:
            raise self.damaged("a chunk reaches past the end")
        return end

    def content(self, chunk: int) -> bytes:
        """Return the decompressed chunk at `chunk`."""
        decompressed = self._contents.get(chunk)
        if decompressed is None:
            try:
                decompressed = unframe(
                    self.tail.codec, self.stored(chunk, self.after(chunk)), self.tail.block_size
                )
            except ValueError as error:
                raise self.damaged(str(error)) from error
            self._contents[chunk] = decompressed
        return decompressed

    def damaged(self, why: str) -> Exception:
        """Return the error for a stream that does not match its row index."""
        stream = self.stream
        return corrupt(
            self.tail.name,
            stream.offset,
            f"stream {stream.kind} of column {stream.column} does not fit its row index: {why}",
        )
