"""Row index, Bloom filters and other streams of one column in a stripe, decrypted if the key is available."""

from __future__ import annotations

from lockgate.framework.orc.encryption.stream_cipher import crypt
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import unframe
from lockgate.framework.orc.format.layout import StreamKind, corrupt
from lockgate.framework.orc.format.stripe import Stream, Stripe
from lockgate.framework.orc.format.tail import Tail, parse
from lockgate.framework.orc.sources.file_source import Source


class ColumnStreams:
    """The streams of a column: of the encrypted variant if its key is available, else of the mask.

    `is_mask` is true for the mask of an encrypted column.
    """

    def __init__(self, source: Source, tail: Tail, variants: Variants, stripe: Stripe, column: int) -> None:
        self.column = column
        self._source = source
        self._tail = tail
        self._variants = variants
        self._stripe = stripe
        variant = variants.variant_of(column)
        self.is_mask = variant is None and any(
            column in tail.types.subtree(root) for root in variants.roots()
        )
        self.by_kind = {
            stream.kind: stream
            for stream in stripe.streams
            if stream.column == column and stream.variant == variant
        }
        self.encoding = (
            stripe.footer.columns[column]
            if variant is None
            else stripe.footer.encryption[variant].encoding[column - variants.root(variant)]
        )

    def read(self, kind: int) -> bytes | None:
        """Return the decompressed content of a stream; None if the column has no stream of that kind."""
        stream = self.by_kind.get(kind)
        if stream is None:
            return None
        stored = bytes(self._source.read_at(stream.offset, stream.length))
        if stream.variant is not None and stored:
            key = self._variants.stripe_key(stream.variant, self._stripe.index)
            number = self._variants.stripe_id(self._stripe.index)
            stored = crypt(key, stream.column, stream.kind, number, stored)
        try:
            return unframe(self._tail.codec, stored, self._tail.block_size)
        except ValueError as error:
            raise self.damaged(stream, str(error)) from error

    def row_index(self) -> list[proto.Message] | None:
        """Return the entry of each row group; None without a row index for all row groups of the stripe."""
        return self._entries(StreamKind.ROW_INDEX, proto.RowIndex, "entry")

    def bloom_filters(self) -> list[proto.Message] | None:
        """Return the Bloom filter of each row group, of the kind that hashes strings as UTF-8; None without
        them.
        """
        return self._entries(StreamKind.BLOOM_FILTER_UTF8, proto.BloomFilterIndex, "bloom_filter")

    def _entries(self, kind: StreamKind, message: proto.Message, field: str) -> list[proto.Message] | None:
        content = self.read(kind)
        if content is None:
            return None
        stream = self.by_kind[kind]
        what = f"the {kind.name.lower()} of column {self.column}"
        entries = list(getattr(parse(message, content, self._tail.name, stream.offset, what), field))
        stride = self._tail.footer.row_index_stride
        return entries if stride and len(entries) == -(-self._stripe.rows // stride) else None

    def damaged(self, stream: Stream, why: str) -> Exception:
        """Return the error for a stream that cannot be read."""
        kind = StreamKind(stream.kind).name.lower()
        return corrupt(
            self._tail.name, stream.offset, f"the {kind} of column {self.column} is damaged: {why}"
        )
