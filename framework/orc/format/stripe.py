"""Stripe footers: the locations of a stripe's streams and the encodings of its columns."""

from __future__ import annotations

from dataclasses import dataclass

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import unframe
from lockgate.framework.orc.format.layout import INDEX_KINDS, PLACEHOLDERS, StreamKind, check_text, corrupt
from lockgate.framework.orc.format.tail import Tail, parse
from lockgate.framework.orc.sources.file_source import Source

_ENCODINGS = 4


@dataclass(frozen=True)
class Stream:
    """A stored stream; `variant` is the number of its encrypted variant, None if it is not encrypted."""

    variant: int | None
    kind: int
    column: int
    offset: int
    length: int


@dataclass(frozen=True)
class Stripe:
    """A stripe's footer, with its streams in stored order."""

    index: int
    rows: int
    footer: proto.Message
    streams: tuple[Stream, ...]


def read_stripe(source: Source, tail: Tail, index: int) -> Stripe:
    """Read the footer of stripe `index`; `CorruptFileError` if its streams do not fill the stripe exactly."""
    information = tail.footer.stripes[index]
    offset = information.offset + information.index_length + information.data_length
    what = f"the footer of stripe {index}"
    raw = source.read_at(offset, information.footer_length)
    try:
        content = unframe(tail.codec, raw, tail.block_size)
    except ValueError as error:
        raise corrupt(tail.name, offset, f"{what} is damaged: {error}") from error
    footer = parse(proto.StripeFooter, content, tail.name, offset, what)
    _check_encodings(tail, footer, offset, what, information.number_of_rows)
    streams = _streams(tail, information, footer, offset, what)
    stripe = Stripe(index, information.number_of_rows, footer, streams)
    source.describe_stripe(stripe)
    return stripe


def _streams(
    tail: Tail, information: proto.Message, footer: proto.Message, end: int, what: str
) -> tuple[Stream, ...]:
    """Return the streams in stored order: index, then data; in each the unencrypted, then each variant."""
    position = information.offset
    areas = [(None, footer.streams), *enumerate(variant.streams for variant in footer.encryption)]
    streams: list[Stream] = []
    for is_index in (True, False):
        for variant, messages in areas:
            for stream in messages:
                if stream.kind in PLACEHOLDERS or (stream.kind in INDEX_KINDS) is not is_index:
                    continue
                _check_stream(tail, variant, stream, end, what)
                streams.append(Stream(variant, stream.kind, stream.column, position, stream.length))
                position += stream.length
        if is_index and position != information.offset + information.index_length:
            raise corrupt(
                tail.name,
                end,
                f"{what} lists index streams up to byte {position}, but the index ends elsewhere",
            )
    if position != end:
        raise corrupt(
            tail.name, end, f"{what} lists streams up to byte {position}, but the data ends at {end}"
        )
    return tuple(streams)


def _check_stream(tail: Tail, variant: int | None, stream: proto.Message, end: int, what: str) -> None:
    if stream.kind > StreamKind.BLOOM_FILTER_UTF8:
        raise corrupt(tail.name, end, f"{what} lists a stream of kind {stream.kind}, which does not exist")
    columns = (
        range(len(tail.types))
        if variant is None
        else tail.types.subtree(tail.footer.encryption.variants[variant].root)
    )
    if stream.column not in columns:
        raise corrupt(
            tail.name, end, f"{what} lists a stream of column {stream.column}, which does not belong there"
        )


def _check_encodings(tail: Tail, footer: proto.Message, offset: int, what: str, rows: int) -> None:
    variants = tail.footer.encryption.variants
    if len(footer.columns) != len(tail.types) or len(footer.encryption) != len(variants):
        raise corrupt(
            tail.name,
            offset,
            f"{what} describes {len(footer.columns)} columns and {len(footer.encryption)} encrypted ones, "
            f"not {len(tail.types)} and {len(variants)}",
        )
    encodings = list(footer.columns)
    for variant, variant_footer in zip(variants, footer.encryption, strict=True):
        if len(variant_footer.encoding) != len(tail.types.subtree(variant.root)):
            raise corrupt(
                tail.name,
                offset,
                f"{what} describes {len(variant_footer.encoding)} columns under column {variant.root}",
            )
        encodings.extend(variant_footer.encoding)
    for encoding in encodings:
        if encoding.kind >= _ENCODINGS:
            raise corrupt(
                tail.name, offset, f"{what} names an encoding number {encoding.kind}, which does not exist"
            )
    _check_dictionaries(tail, footer, offset, what, rows)
    check_text(tail.name, offset, f"the time zone in {what}", footer.writer_timezone)


def _check_dictionaries(tail: Tail, footer: proto.Message, offset: int, what: str, rows: int) -> None:
    """Raise if a flat column claims more dictionary entries than rows; readers would allocate memory for
    them.
    """
    sizes = {column: footer.columns[column].dictionary_size for column in tail.types.top_levels()}
    for variant, variant_footer in zip(tail.footer.encryption.variants, footer.encryption, strict=True):
        if variant.root in sizes:
            sizes[variant.root] = max(sizes[variant.root], variant_footer.encoding[0].dictionary_size)
    for column, size in sizes.items():
        if size > rows:
            raise corrupt(
                tail.name, offset, f"{what} says column {column} has {size} dictionary entries in {rows} rows"
            )
