"""Statistics of each stripe, decrypted if the key is available."""

from __future__ import annotations

from lockgate.framework.orc.encryption.stream_cipher import crypt
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import unframe
from lockgate.framework.orc.format.layout import StreamKind, corrupt
from lockgate.framework.orc.format.orc_statistics import ColumnStatistics, column_statistics
from lockgate.framework.orc.format.tail import Tail, parse
from lockgate.framework.orc.sources.file_source import Source


def stripe_statistics(source: Source, tail: Tail, variants: Variants) -> list[dict[str, ColumnStatistics]]:
    """Return the statistics of top-level columns by name, for each stripe; empty if the file has none."""
    metadata = read_metadata(source, tail)
    if metadata is None:
        return []
    decrypted = decrypted_statistics(source, tail, variants)
    by_stripe: list[dict[str, ColumnStatistics]] = []
    for index, stripe in enumerate(metadata.stripe_stats):
        rows = tail.footer.stripes[index].number_of_rows
        columns: dict[str, ColumnStatistics] = {}
        for name, column in zip(tail.types.names, tail.types.top_levels(), strict=True):
            if column in decrypted:
                message = decrypted[column][index]
            elif column < len(stripe.col_stats):
                message = stripe.col_stats[column]
            else:
                continue
            columns[name] = column_statistics(tail.types.types[column], message, rows)
        by_stripe.append(columns)
    return by_stripe


def read_metadata(source: Source, tail: Tail) -> proto.Message | None:
    """Return the metadata, which has the unencrypted statistics of each stripe; None if the file has none."""
    if not tail.postscript.metadata_length or not tail.stripes:
        return None
    raw = source.read_at(tail.metadata_offset, tail.postscript.metadata_length)
    metadata = parse(
        proto.Metadata,
        _unframe(tail, bytes(raw), tail.metadata_offset),
        tail.name,
        tail.metadata_offset,
        "the metadata",
    )
    if len(metadata.stripe_stats) != tail.stripes:
        raise corrupt(
            tail.name,
            tail.metadata_offset,
            f"statistics of {len(metadata.stripe_stats)} stripes, not {tail.stripes}",
        )
    return metadata


def decrypted_statistics(source: Source, tail: Tail, variants: Variants) -> dict[int, list[proto.Message]]:
    """Return the statistics of the encrypted columns with an available key, one message for each stripe."""
    by_column: dict[int, list[proto.Message]] = {}
    offset = tail.stripe_statistics_offset
    for variant in range(len(variants)):
        for stream in variants.stripe_statistics(variant):
            if variants.variant_of(stream.column) == variant:
                data = bytes(source.read_at(offset, stream.length))
                key = variants.footer_key(variant)
                content = crypt(key, stream.column, StreamKind.STRIPE_STATISTICS, tail.stripes + 1, data)
                message = parse(
                    proto.ColumnarStripeStatistics,
                    _unframe(tail, content, offset),
                    tail.name,
                    offset,
                    "stripe statistics",
                )
                if len(message.col_stats) != tail.stripes:
                    raise corrupt(
                        tail.name,
                        offset,
                        f"statistics of {len(message.col_stats)} stripes, not {tail.stripes}",
                    )
                by_column[stream.column] = list(message.col_stats)
            offset += stream.length
    return by_column


def _unframe(tail: Tail, data: bytes, offset: int) -> bytes:
    try:
        return unframe(tail.codec, data, tail.block_size)
    except ValueError as error:
        raise corrupt(tail.name, offset, f"statistics are damaged: {error}") from error
