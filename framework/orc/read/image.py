"""Images: a stripe as a small plain ORC file in memory, which Arrow decodes.

An image has only the streams of the projected columns; encrypted streams are decrypted directly into it.
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

# Attributes of encrypted columns; a decrypted image must not have them.
ENCRYPTION_ATTRIBUTES = frozenset({"encrypt", "mask", "lockgate.integrity"})
# Buffers up to this size are reused for the next stripe: new pages cost five times as much as decryption.
KEEP = 128 * 1024 * 1024

_buffers = threading.local()


@dataclass(frozen=True)
class Projection:
    """The columns of an image; `numbers[i]` is the file's number of the image's column `i`.

    `dropped` and `replaced` are streams by the number of their column in the image and their kind. `whole` is
    true if all columns have all their parts.
    """

    numbers: tuple[int, ...]
    types: tuple[proto.Message, ...]
    dropped: frozenset[tuple[int, int]] = frozenset()
    replaced: Mapping[tuple[int, int], bytes] = dataclasses.field(default_factory=dict)
    whole: bool = True

    @classmethod
    def of(cls, tail: Tail, columns: Sequence[str] | None = None) -> Projection:
        """Return the projection to columns or paths, all if None, in the order of the file.


        Raises `ColumnNotFoundError` for an unknown column.
        """
        types = tail.types
        if columns is None:
            selected = set(range(len(types)))
        else:
            selected = {0}.union(*(needed_columns(types, path) for path in columns))
        numbers = sorted(selected)
        positions = {number: index for index, number in enumerate(numbers)}
        whole = all(selected.issuperset(types.subtree(top)) for top in types.top_levels() if top in selected)
        return cls(
            tuple(numbers), tuple(_renumbered(types.types[n], positions) for n in numbers), whole=whole
        )

    @property
    def names(self) -> list[str]:
        """The names of the top-level columns."""
        return list(self.types[0].field_names)

    @property
    def plain(self) -> bool:
        """Return whether Arrow can read these columns by name: no column is changed, and no name has a
        dot.
        """
        changed = self.dropped or self.replaced or not self.whole
        return not changed and not any("." in name for name in self.names)

    def part(self, tops: Sequence[int]) -> Projection:
        """Return the projection to the top-level columns at the positions `tops` of the image."""
        last = [*self.types[0].subtypes, len(self.types)]
        ends = {top: last[index + 1] for index, top in enumerate(last[:-1])}
        old_positions = [0, *(position for top in tops for position in range(top, ends[top]))]
        new_positions = {position: index for index, position in enumerate(old_positions)}
        return Projection(
            tuple(self.numbers[position] for position in old_positions),
            tuple(_renumbered(self.types[position], new_positions) for position in old_positions),
            frozenset(
                (new_positions[position], kind)
                for position, kind in self.dropped
                if position in new_positions
            ),
            {
                (new_positions[position], kind): data
                for (position, kind), data in self.replaced.items()
                if position in new_positions
            },
            self.whole,
        )

    def parts(self, streams: Sequence[Stream], variants: Variants, max_bytes: int) -> list[Projection]:
        """Return the projection split into parts of about `max_bytes` stored bytes, by complete columns."""
        sizes = dict.fromkeys(range(len(self.numbers)), 0)
        for position, stream in self.select(streams, variants):
            sizes[position] += stream.length
        groups: list[list[int]] = []
        remaining = 0
        tops = [*self.types[0].subtypes, len(self.types)]
        for top, end in itertools.pairwise(tops):
            size = sum(sizes[position] for position in range(top, end))
            if not groups or size > remaining:
                groups.append([])
                remaining = max_bytes
            groups[-1].append(top)
            remaining -= size
        return [self] if len(groups) < 2 else [self.part(group) for group in groups]

    def select(self, streams: Sequence[Stream], variants: Variants) -> list[tuple[int, Stream]]:
        """Return the data streams for the image, each with its column's number in the image."""
        positions = {number: index for index, number in enumerate(self.numbers)}
        return [
            (positions[stream.column], stream)
            for stream in streams
            if stream.column in positions
            and stream.kind not in INDEX_KINDS
            and variants.variant_of(stream.column) == stream.variant
            and (positions[stream.column], stream.kind) not in self.dropped
        ]

    def stored(self, source: Source, selection: Sequence[tuple[int, Stream]]) -> list[memoryview | bytes]:
        """Return the stored bytes of streams, or their replacements."""
        ranges = [
            (stream.offset, stream.length)
            for position, stream in selection
            if (position, stream.kind) not in self.replaced
        ]
        read = iter(source.read_ranges(ranges))
        return [self.replaced.get((position, stream.kind)) or next(read) for position, stream in selection]


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
    kept_attributes = [
        attribute for attribute in type_.attributes if attribute.key not in ENCRYPTION_ATTRIBUTES
    ]
    del copy.attributes[:]
    copy.attributes.extend(kept_attributes)
    return copy


def stripe_image(
    source: Source, tail: Tail, variants: Variants, stripe: Stripe, projection: Projection
) -> pa.Buffer:
    """Return the image of a stripe; the thread's next call reuses the buffer, so decode the image first."""
    selection = projection.select(stripe.streams, variants)
    stored = projection.stored(source, selection)
    footer = stripe_footer(stripe, variants, projection)
    for (position, stream), data in zip(selection, stored, strict=True):
        footer.streams.add(kind=stream.kind, column=position, length=len(data))
    size = sum(map(len, stored))
    end_of_file = ending(
        tail, projection, frame(tail.codec, footer.SerializeToString(), tail.block_size), size, stripe.rows
    )
    length = len(MAGIC) + size + len(end_of_file)
    buffer = _buffer(length + SLACK)
    view = memoryview(buffer)
    view[: len(MAGIC)] = MAGIC
    position = len(MAGIC)
    for (column, stream), data in zip(selection, stored, strict=True):
        end = position + len(data)
        if stream.variant is None or (column, stream.kind) in projection.replaced:
            view[position:end] = data
        elif stream.length:
            key = variants.stripe_key(stream.variant, stripe.index)
            cipher = stream_cipher(key, stream.column, stream.kind, variants.stripe_id(stripe.index))
            cipher.update_into(data, view[position : end + SLACK])
        position = end
    view[position:length] = end_of_file
    return pa.py_buffer(buffer).slice(0, length)


def empty_image(tail: Tail, projection: Projection) -> pa.Buffer:
    """Return an image without rows, from which Arrow reads the schema."""
    return pa.py_buffer(MAGIC + ending(tail, projection, None, 0, 0))


def stripe_footer(stripe: Stripe, variants: Variants, projection: Projection) -> proto.Message:
    """Return the footer of the image's stripe, without its streams."""
    footer = proto.StripeFooter()
    if stripe.footer.writer_timezone:  # A reader would look up an empty time zone and fail.
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
    """Return the stripe footer, file footer and postscript of an image, without indexes and statistics."""
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
    reusable: bytearray | None = getattr(_buffers, "held", None)
    if reusable is not None and len(reusable) >= length:
        return reusable
    _buffers.held = None
    buffer = bytearray(length + length // 8)
    if len(buffer) <= KEEP:
        _buffers.held = buffer
    return buffer
