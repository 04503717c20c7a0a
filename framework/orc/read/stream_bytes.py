"""The content of one stream from any byte on: reads, decrypts and decompresses only the needed part."""

from __future__ import annotations

from lockgate.framework.orc.encryption.stream_cipher import crypt
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format.chunks import HEADER_LENGTH, unframe
from lockgate.framework.orc.format.layout import Compression, corrupt
from lockgate.framework.orc.format.stripe import Stream, Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.sources.file_source import Source

# Without compression there are no chunks; pieces of this size take their place.
PIECE = 8 * 1024


class StreamBytes:
    """A window on a stream that grows towards its end. Offsets count stored bytes from the stream's start.

    A chunk is what compression made one; without compression, any `PIECE` bytes.
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
        self._held = b""
        self._contents: dict[int, bytes] = {}

    @property
    def length(self) -> int:
        """The stored bytes of the whole stream."""
        return self.stream.length

    def fill(self, stored: memoryview | bytes) -> None:
        """Add stored bytes behind those already held."""
        at = self._start + len(self._held)
        data = bytes(stored)
        if self._key is not None and data:
            data = crypt(self._key, self.stream.column, self.stream.kind, self._stripe_id, data, at)
        self._held += data

    def stored(self, start: int, end: int) -> bytes:
        """Return bytes as stored, but decrypted; `start` is not before that of the window."""
        held = self._start + len(self._held)
        end = min(end, self.length)
        if end > held:
            self.fill(self._source.read_at(self.stream.offset + held, end - held))
        return self._held[start - self._start : end - self._start]

    def after(self, chunk: int) -> int:
        """Return where the chunk after the one at `chunk` starts."""
        if self.tail.codec is Compression.NONE:
            return min(chunk + PIECE, self.length)
        header = self.stored(chunk, chunk + HEADER_LENGTH)
        end = chunk + HEADER_LENGTH + (int.from_bytes(header, "little") >> 1)
        if len(header) < HEADER_LENGTH or end > self.length:
            raise self.damaged("a chunk reaches past the end")
        return end

    def content(self, chunk: int) -> bytes:
        """Return the decompressed chunk at `chunk`."""
        found = self._contents.get(chunk)
        if found is None:
            try:
                found = unframe(self.tail.codec, self.stored(chunk, self.after(chunk)), self.tail.block_size)
            except ValueError as error:
                raise self.damaged(str(error)) from error
            self._contents[chunk] = found
        return found

    def damaged(self, why: str) -> Exception:
        """Return the error for a stream that is not what the row index says."""
        stream = self.stream
        return corrupt(
            self.tail.name,
            stream.offset,
            f"stream {stream.kind} of column {stream.column} does not fit its row index: {why}",
        )
