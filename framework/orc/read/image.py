"""A stripe as a small plain ORC file in memory, which Arrow then decodes.

Only the streams of the wanted columns are in it, and encrypted ones are decrypted straight into their place.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lockgate.framework.orc.encryption.stream_cipher import SLACK, stream_cipher
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.layout import INDEX_KINDS, MAGIC, TypeKind
from lockgate.framework.orc.format.leaf_paths import needed_columns
from lockgate.framework.orc.format.stripe import Stream, Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.sources.file_source import Source

# Attributes by which ORC marks encrypted columns; a decrypted image must not claim to be encrypted.
ENCRYPTION_ATTRIBUTES = frozenset({"encrypt", "mask", "lockgate.integrity"})
# A buffer up to this size is kept for the next stripe: fresh pages cost five times what the decryption costs.
KEEP = 128 * 1024 * 1024

_buffers = threading.local()


@dataclass(frozen=True)
class Projection:
    """Columns of an image: `numbers[i]` is the number in the file of column `i` of the image.

    Streams are dropped or replaced by their column's place in the image and their kind. `whole` says that
    no column lacks any of its parts.
    """

    numbers: tuple[int, ...]
    types: tuple[proto.Message, ...]
    dropped: frozenset[tuple[int, int]] = frozenset()
    replaced: Mapping[tuple[int, int], bytes] = dataclasses.field(default_factory=dict)
    whole: bool = True

    @classmethod
    def of(cls, tail: Tail, columns: Sequence[str] | None = None) -> Projection:
        """Return the columns or paths `columns` (all if None) with everything in them, in the order of the
        file.

        `ColumnNotFoundError` for what is not there.
        """
        types = tail.types
        if columns is None:
            held = set(range(len(types)))
        else:
            held = {0}.union(*(needed_columns(types, path) for path in columns))
        numbers = sorted(held)
        positions = {number: index for index, number in enumerate(numbers)}
        whole = all(held.issuperset(types.subtree(top)) for top in types.top_levels() if top in held)
        return cls(
            tuple(numbers), tuple(_renumbered(types.types[n], positions) for n in numbers), whole=whole
        )

    @property
    def names(self) -> list[str]:
        """The names of the top-level columns."""
        return list(self.types[0].field_names)

    @property
    def plain(self) -> bool:
        """Return whether Arrow can be asked for these columns by name: unchanged ones, none named like a
        path.
        """
        changed = self.dropped or self.replaced or not self.whole
        return not changed and not any("." in name for name in self.names)

    def part(self, tops: Sequence[int]) -> Projection:
        """Keep only the top-level columns at the positions `tops` of the image, with everything in them."""
        last = [*self.types[0].subtypes, len(self.types)]
        ends = {top: last[index + 1] for index, top in enumerate(last[:-1])}
        places = [0, *(position for top in tops for position in range(top, ends[top]))]
        new = {position: index for index, position in enumerate(places)}
        return Projection(
            tuple(self.numbers[position] for position in places),
            tuple(_renumbered(self.types[position], new) for position in places),
            frozenset((new[position], kind) for position, kind in self.dropped if position in new),
            {
                (new[position], kind): data
                for (position, kind), data in self.replaced.items()
                if position in new
            },
            self.whole,
        )

    def parts(self, streams: Sequence[Stream], variants: Variants, most: int) -> list[Projection]:
        """Return the projection in parts of about `most` stored bytes: whole columns, in the order they
        have.
        """
        sizes = dict.fromkeys(range(len(self.numbers)), 0)
        for position, stream in self.select(streams, variants):
            sizes[position] += stream.length
        groups: list[list[int]] = []
        room = 0
        tops = [*self.types[0].subtypes, len(self.types)]
        for top, end in itertools.pairwise(tops):
            size = sum(sizes[position] for position in range(top, end))
            if not groups or size > room:
                groups.append([])
                room = most
            groups[-1].append(top)
            room -= size
        return [self] if len(groups) < 2 else [self.part(group) for group in groups]

    def select(self, streams: Sequence[Stream], variants: Variants) -> list[tuple[int, Stream]]:
        """Return the data streams that the image needs, each with its column's place in the image."""
        positions = {number: index for index, number in enumerate(self.numbers)}
        return [
            (positions[stream.column], stream)
            for stream in streams
            if stream.column in positions
            and stream.kind not in INDEX_KINDS
            and variants.variant_of(stream.column) == stream.variant
            and (positions[stream.column], stream.kind) not in self.dropped
        ]

    def stored(self, source: Source, picks: Sequence[tuple[int, Stream]]) -> list[memoryview | bytes]:
        """Return the bytes of streams, as stored or as replaced."""
        kept = [
            (stream.offset, stream.length)
            for position, stream in picks
            if (position, stream.kind) not in self.replaced
        ]
        read = iter(source.read_ranges(kept))
        return [self.replaced.get((position, stream.kind)) or next(read) for position, stream in picks]


def _renumbered(type_: proto.Message, positions: dict[int, int]) -> proto.Message:
    copy = proto.Type()
    copy.CopyFrom(type_)
    del copy.subtypes[:]
    copy.subtypes.extend(positions[child] for child in type_.subtypes if child in positions)
    if type_.kind == TypeKind.STRUCT:
        fields = zip(type_.field_names, type_.subtypes, strict=True)
        kept_names = [name for name, child in fields if child in positions]
        del copy.field_names[:]
        copy.field_names.extend(kept_names)
    kept = [attribute for attribute in type_.attributes if attribute.key not in ENCRYPTION_ATTRIBUTES]
    del copy.attributes[:]
    copy.attributes.extend(kept)
    return copy


def stripe_image(
    source: Source, tail: Tail, variants: Variants, stripe: Stripe, projection: Projection
) -> pa.Buffer:
    """Return the image of a stripe, in a buffer that this thread's next call uses again: decode before."""
    picks = projection.select(stripe.streams, variants)
    stored = projection.stored(source, picks)
    footer = stripe_footer(stripe, variants, projection)
    for (position, stream), data in zip(picks, stored, strict=True):
        footer.streams.add(kind=stream.kind, column=position, length=len(data))
    size = sum(map(len, stored))
    end_of_file = ending(
        tail, projection, frame(tail.codec, footer.SerializeToString(), tail.block_size), size, stripe.rows
    )
    length = len(MAGIC) + size + len(end_of_file)
    buffer = _buffer(length + SLACK)
    out = memoryview(buffer)
    out[: len(MAGIC)] = MAGIC
    position = len(MAGIC)
    for (column, stream), data in zip(picks, stored, strict=True):
        end = position + len(data)
        if stream.variant is None or (column, stream.kind) in projection.replaced:
            out[position:end] = data
        elif stream.length:
            key = variants.stripe_key(stream.variant, stripe.index)
            cipher = stream_cipher(key, stream.column, stream.kind, variants.stripe_id(stripe.index))
            cipher.update_into(data, out[position : end + SLACK])
        position = end
    out[position:length] = end_of_file
    return pa.py_buffer(buffer).slice(0, length)


def empty_image(tail: Tail, projection: Projection) -> pa.Buffer:
    """Return the same file without rows, which shows Arrow's schema."""
    return pa.py_buffer(MAGIC + ending(tail, projection, None, 0, 0))


def stripe_footer(stripe: Stripe, variants: Variants, projection: Projection) -> proto.Message:
    """Return the footer of the image's stripe, without its streams."""
    footer = proto.StripeFooter()
    if stripe.footer.writer_timezone:  # An empty one would be looked up and not found.
        footer.writer_timezone = stripe.footer.writer_timezone
    for number in projection.numbers:
        variant = variants.variant_of(number)
        if variant is None:
            footer.columns.append(stripe.footer.columns[number])
        else:
            footer.columns.append(stripe.footer.encryption[variant].encoding[number - variants.root(variant)])
    return footer


def ending(
    tail: Tail, projection: Projection, framed_footer: bytes | None, data_length: int, rows: int
) -> bytes:
    """Return stripe footer, file footer and postscript of an image; no indexes and no statistics."""
    stripe_footer_length = len(framed_footer or b"")
    footer = proto.Footer(
        header_length=len(MAGIC),
        content_length=len(MAGIC) + data_length + stripe_footer_length,
        number_of_rows=rows,
        row_index_stride=0,
        types=projection.types,
    )
    for field in ("writer", "calendar", "software_version"):
        if tail.footer.HasField(field):
            setattr(footer, field, getattr(tail.footer, field))
    if framed_footer is not None:
        footer.stripes.add(
            offset=len(MAGIC),
            index_length=0,
            data_length=data_length,
            footer_length=stripe_footer_length,
            number_of_rows=rows,
        )
    footer_bytes = frame(tail.codec, footer.SerializeToString(), tail.block_size)
    postscript = proto.PostScript()
    postscript.CopyFrom(tail.postscript)
    postscript.footer_length = len(footer_bytes)
    postscript.metadata_length = 0
    postscript.ClearField("stripe_statistics_length")
    postscript_bytes = postscript.SerializeToString()
    return b"".join([framed_footer or b"", footer_bytes, postscript_bytes, bytes([len(postscript_bytes)])])


def _buffer(length: int) -> bytearray:
    held: bytearray | None = getattr(_buffers, "held", None)
    if held is not None and len(held) >= length:
        return held
    _buffers.held = None
    buffer = bytearray(length + length // 8)
    if len(buffer) <= KEEP:
        _buffers.held = buffer
    return buffer
