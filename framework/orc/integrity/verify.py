"""The integrity check of a complete file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import CorruptFileError, IntegrityError
from lockgate.framework.io import named_errors
from lockgate.framework.keys import provider_from
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format.layout import MAGIC, StreamKind
from lockgate.framework.orc.format.stripe import Stripe, read_stripe
from lockgate.framework.orc.format.tail import Tail, check_magic, read_tail
from lockgate.framework.orc.integrity.authenticate import authenticate
from lockgate.framework.orc.integrity.coverage import Granule
from lockgate.framework.orc.integrity.mac import FOOTER_ORDINAL
from lockgate.framework.orc.integrity.verified_source import VerifyingSource
from lockgate.framework.orc.sources.file_source import Source, open_source

Progress = Callable[[int, int], object]
# Bytes of one read; fewer bytes would take more requests for remote files.
_READ_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Damage:
    """Changed bytes from `start` to `end`, and the stream or footer to which they belong."""

    start: int
    end: int
    location: str

    def __str__(self) -> str:
        return f"bytes {self.start} to {self.end} ({self.location}) are not as they were written"


@dataclass(frozen=True)
class IntegrityReport:
    """The result of the integrity check of a complete file.

    `status` is "verified" if no byte has changed, "damaged" if some have (see `damage`, by ascending offset),
    "absent" if the file has no tags, and "unverified" if there was no key for its tags. `size` and `checked`
    count bytes, `tags` counts the checked tags of stripes.
    """

    name: str
    status: Literal["verified", "damaged", "absent", "unverified"]
    size: int
    stripes: int
    checked: int = 0
    tags: int = 0
    damage: tuple[Damage, ...] = ()

    def raise_for_damage(self) -> None:
        """Raise `IntegrityError` with the first damaged bytes, if there are any."""
        if self.damage:
            more = f", and {len(self.damage) - 1} more" if len(self.damage) > 1 else ""
            raise IntegrityError(f"{self.name}: {self.damage[0]}{more}; restore the file from a copy")


@checked_arguments
@named_errors
def verify_file(
    source: Any, keys: Any = None, *, progress: Progress | None = None, name: str | None = None
) -> IntegrityReport:
    """Read a complete file and check it: masks, encrypted columns, indexes, statistics and padding.

    `source` and `keys` are as in `EncryptedOrcFile`; one key of the file is enough. `progress` is called with
    the number of checked bytes and of all bytes. No value is decoded.

    The report lists all damage to stripes. Damage to the tail raises an error, because the tail locates
    everything else: `IntegrityError`, `CorruptFileError`, or `WrongKeyError` if the damage looks like a wrong
    key.
    """
    provider = provider_from(keys)
    opened = open_source(source, name)
    try:
        tail = read_tail(opened)
        check_magic(opened)
        checking, status = authenticate(opened, tail, Variants(tail, provider))
        if not isinstance(checking, VerifyingSource):
            assert status in ("absent", "unverified")
            return IntegrityReport(tail.name, status, opened.size, tail.stripes)
        return _Check(opened, checking, tail, progress).run()
    finally:
        if opened is not source:
            opened.close()


class _Check:
    """One pass over the stripes of a file whose tail is unchanged."""

    def __init__(
        self, source: Source, checking: VerifyingSource, tail: Tail, progress: Progress | None
    ) -> None:
        self._source = source
        self._checking = checking
        self._coverage = checking.coverage
        self._tail = tail
        self._progress = progress
        self._damage: list[Damage] = []
        self._tags = 0

    def run(self) -> IntegrityReport:
        """Check the file stripe by stripe."""
        position = len(MAGIC)
        for index, stripe in enumerate(self._tail.footer.stripes):
            self._padding(position, stripe.offset)
            position = stripe.offset + stripe.index_length + stripe.data_length + stripe.footer_length
            self._stripe(index, stripe.offset, position)
        size = self._source.size
        self._report(size)
        status: Literal["verified", "damaged"] = "damaged" if self._damage else "verified"
        return IntegrityReport(
            self._tail.name, status, size, self._tail.stripes, size, self._tags, tuple(self._damage)
        )

    def _stripe(self, index: int, start: int, end: int) -> None:
        try:
            stripe = read_stripe(self._checking, self._tail, index)
        except CorruptFileError:
            # The damaged footer has the locations of streams and their tags.
            self._damage.append(Damage(start, end, f"stripe {index}, whose footer is damaged"))
            self._report(end)
            return
        for first, last in _steps(start, end):
            self._granules(stripe, first, last)
            self._report(last)

    def _granules(self, stripe: Stripe, start: int, end: int) -> None:
        """Check the granules that start between `start` and `end`."""
        granules = [each for each in self._coverage.granules(start, end) if each.start >= start]
        if not granules:
            return
        begin = granules[0].start
        view = self._source.read_at(begin, granules[-1].end - begin)
        for granule in granules:
            self._tags += 1
            if not self._coverage.fits(granule, view[granule.start - begin : granule.end - begin]):
                self._damage.append(Damage(granule.start, granule.end, self._place(stripe, granule)))

    def _place(self, stripe: Stripe, granule: Granule) -> str:
        if granule.ordinal == FOOTER_ORDINAL:
            return self._coverage.location(granule)
        stream = stripe.streams[granule.ordinal]
        kind = StreamKind(stream.kind).name
        column = f"column {self._tail.types.top_name(stream.column)!r}" if stream.column else "all columns"
        hidden = "" if stream.variant is None else ", encrypted"
        return f"stream {kind} of {column}{hidden}, in stripe {stripe.index}"

    def _padding(self, start: int, end: int) -> None:
        for first, last in _steps(start, end):
            if bytes(self._source.read_at(first, last - first)).strip(b"\0"):
                self._damage.append(Damage(first, last, "padding between stripes"))

    def _report(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._source.size)


def _steps(start: int, end: int) -> Iterator[tuple[int, int]]:
    for first in range(start, end, _READ_BYTES):
        yield first, min(first + _READ_BYTES, end)
