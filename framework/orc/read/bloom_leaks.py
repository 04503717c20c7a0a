"""Detection of Bloom filters that expose encrypted values in the clear.

ORC's Java library (2.3.0 at least) writes the Bloom filters of an encrypted column into its unencrypted
stream: first the filters of the true values, then those of the mask.
"""

from __future__ import annotations

from collections.abc import Iterable

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import unframe
from lockgate.framework.orc.format.layout import BLOOM_FILTERS
from lockgate.framework.orc.format.stripe import Stream, Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.read.read_report import group_count
from lockgate.framework.orc.sources.file_source import Source


def leaks_bloom_filters(source: Source, tail: Tail, stripes: Iterable[Stripe], root: int) -> bool:
    """Return whether Bloom filters of the encrypted column `root`, or a part of it, are in the clear.

    The mask has one filter for each row group; more than that are filters of the values. An unreadable filter
    counts as a leak.
    """
    columns = tail.types.subtree(root)
    return any(
        _has_extra_filters(source, tail, stripe, stream)
        for stripe in stripes
        for stream in stripe.streams
        if stream.variant is None and stream.kind in BLOOM_FILTERS and stream.column in columns
    )


def _has_extra_filters(source: Source, tail: Tail, stripe: Stripe, stream: Stream) -> bool:
    try:
        stored = source.read_at(stream.offset, stream.length)
        index = proto.BloomFilterIndex.FromString(unframe(tail.codec, stored, tail.block_size))
    except (ValueError, proto.DecodeError):
        return True
    return len(index.bloom_filter) > group_count(tail, stripe.rows)
