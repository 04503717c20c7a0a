"""Randomly damaged copies of ORC files for test_fuzz.py."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc.encryption.stream_cipher import crypt
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame, unframe
from lockgate.framework.orc.format.layout import INDEX_KINDS, MAGIC, PLACEHOLDERS, StreamKind
from lockgate.framework.orc.format.stripe import Stream, read_stripe
from lockgate.framework.orc.format.tail import Tail, read_tail
from lockgate.framework.orc.sources.file_source import open_source

KINDS = (
    "bytes",
    "cut",
    "tail",
    "stripe footer",
    "metadata",
    "file statistics",
    "stripe statistics",
    "index",
    "stream",
)

Rng = random.Random


@dataclass
class Base:
    """An undamaged file and its content."""

    data: bytes
    tail: Tail
    variants: Variants
    keys: MemoryKeyProvider


@dataclass
class Part:
    """A stream of a stripe: `content` is decrypted; as stored it is encrypted again."""

    stream: Stream
    content: bytes


@dataclass
class StripeParts:
    information: proto.Message
    footer: proto.Message
    parts: list[Part]


def opened(data: bytes, keys: MemoryKeyProvider) -> Base:
    tail = read_tail(open_source(data))
    return Base(data, tail, Variants(tail, keys), keys)


def remove_tags(footer: proto.Message) -> None:
    """Make it a file of others: with tags, damage would be found before anything is decoded."""
    del footer.metadata[:]
    for attribute in list(footer.types[0].attributes):
        footer.types[0].attributes.remove(attribute)


# --- taking a file apart, and putting it together with lengths that fit ---


def taken_apart(base: Base) -> list[StripeParts]:
    source, found = open_source(base.data), []
    for index in range(base.tail.stripes):
        stripe = read_stripe(source, base.tail, index)
        parts = [
            Part(each, crypted(base, each, index, bytes(source.read_at(each.offset, each.length))))
            for each in stripe.streams
        ]
        found.append(StripeParts(copied(base.tail.footer.stripes[index]), copied(stripe.footer), parts))
    return found


def crypted(base: Base, stream: Stream, stripe: int, data: bytes) -> bytes:
    if stream.variant is None or not data:
        return data
    key = base.variants.stripe_key(stream.variant, stripe)
    return crypt(key, stream.column, stream.kind, base.variants.stripe_id(stripe), data)


def copied(message: proto.Message) -> proto.Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def put_together(
    base: Base,
    stripes: list[StripeParts],
    change_footer: Callable[[proto.Message], Any],
    change_postscript: Callable[[proto.Message], Any] = lambda message: None,
    metadata: bytes | None = None,
    statistics: bytes | None = None,
) -> bytes:
    tail, out = base.tail, io.BytesIO()
    out.write(MAGIC)
    footer, postscript = copied(tail.footer), copied(tail.postscript)
    for index, stripe in enumerate(stripes):
        described = footer.stripes[index]
        described.offset = out.tell()
        for is_index in (True, False):
            start = out.tell()
            for part in stripe.parts:
                if (part.stream.kind in INDEX_KINDS) is is_index:
                    out.write(crypted(base, part.stream, index, part.content))
            setattr(described, "index_length" if is_index else "data_length", out.tell() - start)
        relist(stripe)
        content = frame(tail.codec, stripe.footer.SerializeToString(), tail.block_size)
        described.footer_length = out.write(content)
    footer.content_length = out.tell()
    kept = base.data[tail.stripe_statistics_offset : tail.metadata_offset]
    postscript.stripe_statistics_length = out.write(kept if statistics is None else statistics)
    stored = base.data[tail.metadata_offset : tail.footer_offset] if metadata is None else metadata
    postscript.metadata_length = out.write(stored)
    change_footer(footer)
    postscript.footer_length = out.write(frame(tail.codec, footer.SerializeToString(), tail.block_size))
    change_postscript(postscript)
    ending = postscript.SerializeToString()[:255]
    out.write(ending + bytes([len(ending)]))
    return out.getvalue()


def relist(stripe: StripeParts) -> None:
    """Set the new lengths of changed streams in the stripe's footer."""
    lengths = {
        (part.stream.variant, part.stream.column, part.stream.kind): len(part.content)
        for part in stripe.parts
    }
    areas = [(None, stripe.footer.streams), *enumerate(each.streams for each in stripe.footer.encryption)]
    for variant, listed in areas:
        for stream in listed:
            if stream.kind not in PLACEHOLDERS:
                stream.length = lengths.get((variant, stream.column, stream.kind), stream.length)


# --- what is done to them ---


def numbers(rng: Rng, old: int) -> int:
    choices = (0, 1, 2, old + 1, max(old - 1, 0), old ^ (1 << rng.randrange(31)), 127, 255, 1 << 16)
    return rng.choice(
        [*choices, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]
    )


def mutate_message(rng: Rng, message: proto.Message) -> None:
    """Change, drop, repeat or enlarge a random field of a message."""
    spots = list(fields_of(message))
    if not spots:
        return
    holder, field = rng.choice(spots)
    value = getattr(holder, field.name)
    if field.is_repeated and rng.random() < 0.4:
        change_list(rng, field, value)
        return
    if field.message_type is not None:
        holder.ClearField(field.name)
        return
    index = rng.randrange(len(value)) if field.is_repeated else None
    old = value if index is None else value[index]
    new = other_value(rng, field, old)
    try:
        if index is None:
            setattr(holder, field.name, new)
        else:
            value[index] = new
    except (ValueError, TypeError):  # it does not fit into the field
        holder.ClearField(field.name)


def fields_of(message: proto.Message) -> Iterator[tuple[proto.Message, Any]]:
    for field, value in message.ListFields():
        yield message, field
        if field.message_type is not None:
            for each in value if field.is_repeated else (value,):
                yield from fields_of(each)


def change_list(rng: Rng, field: Any, value: Any) -> None:
    index = rng.randrange(len(value))
    action = rng.randrange(3)
    if action == 0:
        del value[index]
    elif action == 1:
        value.append(value[index])
    elif field.message_type is None:
        value.extend([value[index]] * rng.choice((10, 1000)))
    else:
        value.extend([value[index]] * rng.choice((1, 100)))


def other_value(rng: Rng, field: Any, old: Any) -> Any:
    if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        text = old if isinstance(old, bytes) else str(old).encode()
        new = rng.choice(
            (b"", b"1E999999999", b"-1E-999999999", b"NaN", text * 50, text[::-1], mutated_bytes(rng, text))
        )
        return new if field.type == field.TYPE_BYTES else new.decode(errors="replace")
    if field.type == field.TYPE_DOUBLE:
        return rng.choice((float("nan"), float("inf"), -0.0, 1e308))
    if field.type == field.TYPE_BOOL:
        return not old
    new_number = numbers(rng, int(old))
    return -new_number if rng.random() < 0.2 else new_number


def mutated_bytes(rng: Rng, data: bytes) -> bytes:
    """Flip, cut, insert, repeat or overwrite."""
    if not data:
        return rng.randbytes(rng.randrange(1, 20))
    changed = bytearray(data)
    action = rng.randrange(6)
    place = rng.randrange(len(changed))
    if action <= 1:
        for _ in range(rng.choice((1, 1, 2, 8))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif action == 2:
        del changed[place : place + rng.choice((1, 2, 16, len(changed)))]
    elif action == 3:
        changed[place:place] = rng.randbytes(rng.choice((1, 2, 3, 64)))
    elif action == 4:
        changed[place:place] = changed[place : place + 32] * rng.choice((1, 20))
    else:
        changed[place : place + 4] = rng.choice((bytes(4), b"\xff" * 4, rng.randbytes(4)))
    return bytes(changed)


def mutate_stream(rng: Rng, base: Base, stripes: list[StripeParts], only_index: bool) -> None:
    """Change a stream's content before encryption, and half of the time before compression."""
    parts = [
        part
        for stripe in stripes
        for part in stripe.parts
        if part.content and (part.stream.kind in INDEX_KINDS or not only_index)
    ]
    part = rng.choice(parts)
    if rng.random() < 0.3:
        part.content = mutated_bytes(rng, part.content)
        return
    try:
        content = unframe(base.tail.codec, part.content, base.tail.block_size)
    except ValueError:  # it was changed before
        part.content = mutated_bytes(rng, part.content)
        return
    try:
        index = proto.RowIndex.FromString(content if part.stream.kind == StreamKind.ROW_INDEX else b"")
    except proto.DecodeError:
        index = None
    if index and index.entry and rng.random() < 0.8:
        mutate_message(rng, index)
        content = index.SerializeToString()
    else:
        content = mutated_bytes(rng, content)
    part.content = frame(base.tail.codec, content, base.tail.block_size)


def mutant(rng: Rng, base: Base) -> tuple[str, bytes]:
    """A damaged copy, and the kind of damage."""
    kind = rng.choice(KINDS)
    if kind == "bytes":
        return kind, mutated_bytes(rng, base.data)
    if kind == "cut":
        return kind, base.data[: rng.randrange(len(base.data))]
    stripes = taken_apart(base)
    footers: list[Callable[[proto.Message], None]] = []
    postscripts: list[Callable[[proto.Message], None]] = []
    metadata = statistics = None
    if kind == "tail":
        where = postscripts if rng.random() < 0.15 else footers
        where.extend([lambda message: mutate_message(rng, message)] * rng.choice((1, 1, 2, 4)))
    elif kind == "stripe footer":
        mutate_message(rng, rng.choice(stripes).footer)
    elif kind == "metadata":
        metadata = mutated_metadata(rng, base)
    elif kind == "file statistics":
        footers.append(lambda footer: mutate_file_statistics(rng, base, footer))
    elif kind == "stripe statistics":
        statistics, relisted = mutated_stripe_statistics(rng, base)
        footers.append(relisted)
    else:
        for _ in range(rng.choice((1, 1, 3))):
            mutate_stream(rng, base, stripes, only_index=kind == "index")
    return kind, put_together(
        base,
        stripes,
        lambda footer: [change(footer) for change in footers],
        lambda postscript: [change(postscript) for change in postscripts],
        metadata,
        statistics,
    )


def mutated_metadata(rng: Rng, base: Base) -> bytes:
    tail = base.tail
    stored = base.data[tail.metadata_offset : tail.footer_offset]
    if rng.random() < 0.3:
        return mutated_bytes(rng, stored)
    message = proto.Metadata.FromString(unframe(tail.codec, stored, tail.block_size))
    mutate_message(rng, message)
    return frame(tail.codec, message.SerializeToString(), tail.block_size)


def mutate_file_statistics(rng: Rng, base: Base, footer: proto.Message) -> None:
    """Change the statistics of the file, in the clear or encrypted."""
    variants = footer.encryption.variants
    if not variants or rng.random() < 0.4:
        mutate_message(rng, rng.choice(footer.statistics))
        return
    number = rng.randrange(len(variants))
    variant = variants[number]
    place = (variant.root, StreamKind.FILE_STATISTICS, base.tail.stripes + 1)
    variant.file_statistics = mutated_secret(
        rng, base, number, place, variant.file_statistics, proto.FileStatistics
    )


def mutated_stripe_statistics(rng: Rng, base: Base) -> tuple[bytes, Callable[[proto.Message], None]]:
    """Change the encrypted statistics of the stripes; return them and the streams with their new lengths."""
    footer, offset = copied(base.tail.footer), base.tail.stripe_statistics_offset
    listed = [
        (number, stream)
        for number, variant in enumerate(footer.encryption.variants)
        for stream in variant.stripe_statistics
    ]
    chosen = rng.randrange(len(listed)) if listed else None
    found = []
    for index, (number, stream) in enumerate(listed):
        stored = base.data[offset : offset + stream.length]
        offset += stream.length
        if index == chosen:
            place = (stream.column, StreamKind.STRIPE_STATISTICS, base.tail.stripes + 1)
            stored = mutated_secret(rng, base, number, place, stored, proto.ColumnarStripeStatistics)
            stream.length = len(stored)
        found.append(stored)

    def relist(message: proto.Message) -> None:
        message.encryption.CopyFrom(footer.encryption)

    return b"".join(found), relist


def mutated_secret(
    rng: Rng, base: Base, variant: int, place: tuple[int, int, int], stored: bytes, kind: proto.Message
) -> bytes:
    """Change a message before its encryption."""
    key, tail = base.variants.footer_key(variant), base.tail
    content = unframe(tail.codec, crypt(key, *place, stored), tail.block_size)
    if rng.random() < 0.2:
        content = mutated_bytes(rng, content)
    else:
        message = kind.FromString(content)
        mutate_message(rng, message)
        content = message.SerializeToString()
    return crypt(key, *place, frame(tail.codec, content, tail.block_size))
