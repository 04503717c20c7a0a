"""Merging of segments into one, without the files that they cover being read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lockgate.pushdown.index.ordered import distinct
from lockgate.pushdown.index.postings import Words, sorted_pairs
from lockgate.pushdown.index.segment import Files, PartContent, PartName, Segment, write_segment

_GONE = -1
# A column that a rule has chosen is left out where most places have most of its values.
MOST_DENSITY, LEAST_PLACES = 0.5, 8


def merge_segments(
    sources: Sequence[Segment],
    name_of: Callable[[str], str | None] = lambda name: name,
    keeps: Callable[[PartName], bool] = lambda part: True,
) -> bytes | None:
    """Return the bytes of one segment that says what several say; None if no file is left.

    `name_of` gives the name of a file, None for one that is gone; `keeps` says which parts stay. Of a file
    that several segments cover all parts are kept. Raises CorruptFileError for a damaged segment.
    """
    joined = _Joined(sources, name_of)
    if not joined.files.names:
        return None
    wanted = sorted({part for source in sources for part in source.parts if keeps(part)})
    parts = {part: joined.part(part) for part in wanted}
    return write_segment(
        joined.files, {name: part for name, part in parts.items() if _pays(part, joined.files)}
    )


def _pays(part: PartContent, files: Files) -> bool:
    values = len(distinct(part.keys)) if part.chosen and files.places >= LEAST_PLACES else 0
    return not values or len(part.keys) / values <= MOST_DENSITY * files.places


class _Joined:
    """The files of several segments, and where each place of a segment lies among all."""

    def __init__(self, sources: Sequence[Segment], name_of: Callable[[str], str | None]) -> None:
        self._sources = sources
        numbers: dict[str, int] = {}
        rows: list[int] = []
        sizes: list[int] = []
        self._files: list[npt.NDArray[np.int64]] = []
        for source in sources:
            found = []
            for at, name in enumerate(source.files.names):
                new = name_of(name)
                if new is not None and new not in numbers:
                    numbers[new] = len(numbers)
                    rows.append(int(source.files.rows[at]))
                    sizes.append(int(source.files.block_rows[at]))
                found.append(_GONE if new is None else self._same(source, at, new, numbers, rows, sizes))
            self._files.append(np.array(found, np.int64))
        self.files = Files(tuple(numbers), np.array(rows, np.int64), np.array(sizes, np.int64))
        self._places = [self._map(source, files) for source, files in zip(sources, self._files, strict=True)]

    @staticmethod
    def _same(
        source: Segment, at: int, name: str, numbers: dict[str, int], rows: list[int], sizes: list[int]
    ) -> int:
        """Return the number of a file; it is left out where another segment divides it otherwise."""
        number = numbers[name]
        own = (int(source.files.rows[at]), int(source.files.block_rows[at]))
        return number if own == (rows[number], sizes[number]) else _GONE

    def _map(self, source: Segment, files: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the new number of each place, -1 for those of files that are gone."""
        counts = np.diff(source.files.starts)
        first = np.where(files == _GONE, 0, self.files.starts[np.maximum(files, 0)])
        within = np.arange(source.files.places) - np.repeat(source.files.starts[:-1], counts)
        return np.where(np.repeat(files, counts) == _GONE, _GONE, np.repeat(first, counts) + within)

    def part(self, name: PartName) -> PartContent:
        """Return a part of all segments that have it."""
        keys, places = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
        covered, nulls, values, chosen = BitMap(), BitMap(), BitMap(), True
        for source, files, moved in zip(self._sources, self._files, self._places, strict=True):
            if name not in source.parts:
                continue
            content = source.parts[name].content()
            own_keys, own_places = _moved(content, moved)
            keys.append(own_keys)
            places.append(own_places)
            covered |= _renumbered(content.covered, files)
            nulls |= _renumbered(content.nulls, moved)
            values |= _renumbered(content.values, moved)
            chosen &= content.chosen
        found = sorted_pairs(np.concatenate(keys), np.concatenate(places))
        return PartContent(*found, covered, nulls, values, chosen)


def _moved(content: PartContent, moved: npt.NDArray[np.int64]) -> tuple[Words, Words]:
    places = moved[content.places.astype(np.int64)]
    there = places != _GONE
    return content.keys[there], places[there].astype(np.uint64)


def _renumbered(numbers: BitMap, moved: npt.NDArray[np.int64]) -> BitMap:
    found = moved[np.asarray(numbers.to_array(), np.int64)]
    return BitMap(found[found != _GONE].astype(np.uint32))
