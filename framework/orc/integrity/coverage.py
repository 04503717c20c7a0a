"""Coverage of integrity tags: the bytes of a file that each tag covers."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from lockgate.framework.orc.format.layout import MAGIC
from lockgate.framework.orc.format.stripe import Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.integrity.header import StoredTags, damaged_tags
from lockgate.framework.orc.integrity.mac import FOOTER_ORDINAL, GRANULE, TAG_LENGTH, Mac, granules

# Number of stripes whose streams are cached; the footer of another stripe is read again.
_CACHED_STRIPES = 32


class Granule(NamedTuple):
    """Bytes `start` to `end` of a file, and the inputs of their tag."""

    start: int
    end: int
    stripe: int
    ordinal: int
    number: int
    tag: int


@dataclass(frozen=True)
class _Areas:
    """Non-empty streams and stripe footers, by ascending offset."""

    starts: list[int]
    ends: list[int]
    stripes: list[int]
    ordinals: list[int]
    tags: list[int]

    def granule(self, position: int) -> Granule | None:
        index = bisect_right(self.starts, position) - 1
        if index < 0 or position >= self.ends[index]:
            return None
        number = (position - self.starts[index]) // GRANULE
        start = self.starts[index] + number * GRANULE
        return Granule(
            start,
            min(start + GRANULE, self.ends[index]),
            self.stripes[index],
            self.ordinals[index],
            number,
            self.tags[index] + number,
        )


class Coverage:
    """The granules of a file by offset; thread-safe.

    Stripe footers have the offsets of streams: `describe` takes a stripe that was read, and `lookup(index)`
    reads any other one.
    """

    def __init__(self, tail: Tail, stored: StoredTags, mac: Mac, lookup: Callable[[int], Stripe]) -> None:
        self._tail = tail
        self._lookup = lookup
        self._mac = mac
        self._tags = memoryview(stored.tags)
        self._counts = stored.header.counts
        self._first = [0, *accumulate(self._counts)]
        stripes = tail.footer.stripes
        self._stripe_starts = [int(stripe.offset) for stripe in stripes]
        self._footers = self._footer_areas()
        self.end = self._footers.ends[-1] if stripes else len(MAGIC)
        self._streams: OrderedDict[int, _Areas] = OrderedDict()
        self._lock = threading.Lock()

    def describe(self, stripe: Stripe) -> None:
        """Take the offsets of a stripe's streams.

        Raises `IntegrityError` if the file has another number of tags for them.
        """
        areas = self._stream_areas(stripe)
        with self._lock:
            self._streams[stripe.index] = areas
            self._streams.move_to_end(stripe.index)
            while len(self._streams) > _CACHED_STRIPES:
                self._streams.popitem(last=False)

    def at(self, position: int) -> Granule | None:
        """Return the granule of the byte at `position`; None for padding and bytes outside of stripes."""
        index = bisect_right(self._stripe_starts, position) - 1
        if index < 0 or position >= self._footers.ends[index]:
            return None
        areas = self._footers if position >= self._footers.starts[index] else self._areas(index)
        return areas.granule(position)

    def granules(self, start: int, end: int) -> Iterator[Granule]:
        """Yield the granules that have bytes between `start` and `end`, in order."""
        position = start
        while position < end:
            granule = self.at(position)
            if granule is None:
                position = self._after_gap(position, end)
            else:
                yield granule
                position = granule.end

    def fits(self, granule: Granule, data: memoryview) -> bool:
        """Return whether the stored bytes of a granule match their tag."""
        offset = granule.tag * TAG_LENGTH
        tag = self._tags[offset : offset + TAG_LENGTH]
        return self._mac.fits(tag, granule.stripe, granule.ordinal, granule.number, data)

    def location(self, granule: Granule) -> str:
        """Return the location of a granule, for messages."""
        if granule.ordinal == FOOTER_ORDINAL:
            return f"the footer of stripe {granule.stripe}"
        return f"stream {granule.ordinal} of stripe {granule.stripe}"

    def _after_gap(self, position: int, end: int) -> int:
        """Return the start of the next stripe after a byte outside of all stripes."""
        following = bisect_right(self._stripe_starts, position)
        return min(end, self._stripe_starts[following]) if following < len(self._stripe_starts) else end

    def _footer_areas(self) -> _Areas:
        areas = _Areas([], [], [], [], [])
        for index, stripe in enumerate(self._tail.footer.stripes):
            start = stripe.offset + stripe.index_length + stripe.data_length
            areas.starts.append(start)
            areas.ends.append(start + stripe.footer_length)
            areas.stripes.append(index)
            areas.ordinals.append(FOOTER_ORDINAL)
            areas.tags.append(self._first[index + 1] - granules(stripe.footer_length))
        return areas

    def _areas(self, stripe: int) -> _Areas:
        with self._lock:
            areas = self._streams.get(stripe)
        return self._stream_areas(self._lookup(stripe)) if areas is None else areas

    def _stream_areas(self, stripe: Stripe) -> _Areas:
        areas, tag = _Areas([], [], [], [], []), self._first[stripe.index]
        for ordinal, stream in enumerate(stripe.streams):
            if stream.length:
                areas.starts.append(stream.offset)
                areas.ends.append(stream.offset + stream.length)
                areas.stripes.append(stripe.index)
                areas.ordinals.append(ordinal)
                areas.tags.append(tag)
                tag += granules(stream.length)
        if tag != self._footers.tags[stripe.index]:
            count = tag - self._first[stripe.index] + self._first[stripe.index + 1]
            count -= self._footers.tags[stripe.index]
            raise damaged_tags(
                self._tail,
                f"stripe {stripe.index} has {self._counts[stripe.index]} tags, but its streams need {count}",
            )
        return areas
