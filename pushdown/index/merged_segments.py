"""Merging of segments into one, without reading the files that they cover."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lockgate.pushdown.index.ordered import distinct
from lockgate.pushdown.index.postings import Words, sorted_pairs
from lockgate.pushdown.index.segment import Files, PartContent, PartName, Segment, write_segment

_REMOVED = -1
# Merging drops an automatically indexed column if most places have most of its values.
MOST_DENSITY, LEAST_PLACES = 0.5, 8


def merge_segments(
    sources: Sequence[Segment],
    name_of: Callable[[str], str | None] = lambda name: name,
    keeps: Callable[[PartName], bool] = lambda part: True,
) -> bytes | None:
    """Return the bytes of a segment with the content of several; None if no file remains.

    `name_of` returns the new name of a file, None if the file no longer exists. `keeps` returns whether to
    keep a part. For a file that several segments cover, all their parts are kept. Raises CorruptFileError for
    a damaged segment.
    """
    merged_files = _MergedFiles(sources, name_of)
    if not merged_files.files.names:
        return None
    part_names = sorted({part for source in sources for part in source.parts if keeps(part)})
    parts = {part: merged_files.part(part) for part in part_names}
    return write_segment(
        merged_files.files,
        {name: part for name, part in parts.items() if _is_selective(part, merged_files.files)},
    )


def _is_selective(part: PartContent, files: Files) -> bool:
    values = len(distinct(part.keys)) if part.chosen and files.places >= LEAST_PLACES else 0
    return not values or len(part.keys) / values <= MOST_DENSITY * files.places


class _MergedFiles:
    """The files of several segments, and the new number of each place of a segment."""

    def __init__(self, sources: Sequence[Segment], name_of: Callable[[str], str | None]) -> None:
        self._sources = sources
        numbers: dict[str, int] = {}
        rows: list[int] = []
        sizes: list[int] = []
        self._file_numbers: list[npt.NDArray[np.int64]] = []
        for source in sources:
            numbers_of_source = []
            for at, name in enumerate(source.files.names):
                new = name_of(name)
                if new is not None and new not in numbers:
                    numbers[new] = len(numbers)
                    rows.append(int(source.files.rows[at]))
                    sizes.append(int(source.files.block_rows[at]))
                numbers_of_source.append(
                    _REMOVED if new is None else self._number_of(source, at, new, numbers, rows, sizes)
                )
            self._file_numbers.append(np.array(numbers_of_source, np.int64))
        self.files = Files(tuple(numbers), np.array(rows, np.int64), np.array(sizes, np.int64))
        self._place_numbers = [
            self._new_places(source, files) for source, files in zip(sources, self._file_numbers, strict=True)
        ]

    @staticmethod
    def _number_of(
        source: Segment, at: int, name: str, numbers: dict[str, int], rows: list[int], sizes: list[int]
    ) -> int:
        """Return the number of a file, `_REMOVED` if another segment divides it into other blocks."""
        number = numbers[name]
        row_counts = (int(source.files.rows[at]), int(source.files.block_rows[at]))
        return number if row_counts == (rows[number], sizes[number]) else _REMOVED

    def _new_places(self, source: Segment, files: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the new number of each place, `_REMOVED` for places of removed files."""
        counts = np.diff(source.files.starts)
        first_places = np.where(files == _REMOVED, 0, self.files.starts[np.maximum(files, 0)])
        offsets = np.arange(source.files.places) - np.repeat(source.files.starts[:-1], counts)
        return np.where(
            np.repeat(files, counts) == _REMOVED, _REMOVED, np.repeat(first_places, counts) + offsets
        )

    def part(self, name: PartName) -> PartContent:
        """Return the merged content of a part from all segments that have it."""
        keys, places = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
        covered, nulls, values, chosen = BitMap(), BitMap(), BitMap(), True
        for source, file_numbers, place_numbers in zip(
            self._sources, self._file_numbers, self._place_numbers, strict=True
        ):
            if name not in source.parts:
                continue
            content = source.parts[name].content()
            own_keys, own_places = _with_new_places(content, place_numbers)
            keys.append(own_keys)
            places.append(own_places)
            covered |= _renumbered(content.covered, file_numbers)
            nulls |= _renumbered(content.nulls, place_numbers)
            values |= _renumbered(content.values, place_numbers)
            chosen &= content.chosen
        pairs = sorted_pairs(np.concatenate(keys), np.concatenate(places))
        return PartContent(*pairs, covered, nulls, values, chosen)


def _with_new_places(content: PartContent, place_numbers: npt.NDArray[np.int64]) -> tuple[Words, Words]:
    places = place_numbers[content.places.astype(np.int64)]
    is_kept = places != _REMOVED
    return content.keys[is_kept], places[is_kept].astype(np.uint64)


def _renumbered(numbers: BitMap, new_numbers: npt.NDArray[np.int64]) -> BitMap:
    renumbered = new_numbers[np.asarray(numbers.to_array(), np.int64)]
    return BitMap(renumbered[renumbered != _REMOVED].astype(np.uint32))
