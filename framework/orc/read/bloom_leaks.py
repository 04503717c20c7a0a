"""Bloom filters of encrypted values that a writer left in the clear.

ORC's Java library (2.3.0 at least) writes the Bloom filters of an encrypted column under the name of the
stream that is not encrypted: first those of the true values, then those of the mask.
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
    """Return whether Bloom filters of the encrypted column `root`, or in it, are in the clear.

    The mask has one for each row group, and any more are of the values. One that cannot be read counts as a
    leak.
    """
    columns = tail.types.subtree(root)
    return any(
        _holds_more(source, tail, stripe, stream)
        for stripe in stripes
        for stream in stripe.streams
        if stream.variant is None and stream.kind in BLOOM_FILTERS and stream.column in columns
    )


def _holds_more(source: Source, tail: Tail, stripe: Stripe, stream: Stream) -> bool:
    try:
        stored = source.read_at(stream.offset, stream.length)
        index = proto.BloomFilterIndex.FromString(unframe(tail.codec, stored, tail.block_size))
    except (ValueError, proto.DecodeError):
        return True
    return len(index.bloom_filter) > group_count(tail, stripe.rows)
