"""LIMIT, and ORDER BY with LIMIT: files are left out once those that are kept surely hold enough rows.

Rows can be counted only where every row of a file is a row of the table, and only if no filter remains to be
applied to them; files that must be merged by key are kept, or left out, but never counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lockgate.framework.store.manifests.column_bounds import ColumnBounds
from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.pruning.split import Section

Buckets = list[list[Section]]


def limited(buckets: Buckets, limit: int) -> Buckets:
    """Keep only as many sections as surely hold `limit` rows, those that need no merge first."""
    chosen: set[int] = set()
    rows = 0
    sections = (section for bucket in buckets for section in bucket)
    for section in sorted(sections, key=lambda section: section.merge):
        if rows >= limit:
            break
        chosen.add(id(section))
        rows += 0 if section.merge else section.row_count
    return _kept(buckets, chosen)


@dataclass(frozen=True)
class FileExtent:
    """The extent of a column in one section.

    `low` and `high` bound its values, None if they are not known; `values` and `nulls` are rows it surely has
    with and without a value; `may_be_null` and `may_have_values` say whether there may be such rows at all.
    """

    low: Any
    high: Any
    values: int
    nulls: int
    may_be_null: bool
    may_have_values: bool


def first_of_order(
    buckets: Buckets, extents: dict[int, FileExtent], limit: int, *, descending: bool, nulls_first: bool
) -> Buckets | None:
    """Keep the sections that may hold one of the first `limit` rows; None if all may.

    `extents` are of the column that rows are sorted by first, by `id` of the section; rows with equal values
    may come in any order, so that the sections of all of them are kept.
    """
    ranges = list(extents.values())
    if nulls_first and sum(extent.nulls for extent in ranges) >= limit:
        return _kept(buckets, {key for key, extent in extents.items() if extent.may_be_null})
    threshold = _threshold(ranges, limit, descending)
    if threshold is None:
        return None
    chosen = {
        key
        for key, extent in extents.items()
        if (nulls_first and extent.may_be_null) or _reaches(extent, threshold[0], descending)
    }
    return _kept(buckets, chosen)


def _threshold(extents: Iterable[FileExtent], limit: int, descending: bool) -> tuple[Any] | None:
    """Return the value that `limit` rows surely do not lie behind, in a tuple; None if there is none."""
    ends = [
        (extent.low if descending else extent.high, extent.values)
        for extent in extents
        if extent.values > 0 and extent.low is not None and extent.high is not None
    ]
    rows = 0
    for end, values in sorted(ends, key=lambda item: item[0], reverse=descending):
        rows += values
        if rows >= limit:
            return (end,)
    return None


def _reaches(extent: FileExtent, threshold: Any, descending: bool) -> bool:
    if not extent.may_have_values:
        return False
    nearest = extent.high if descending else extent.low
    if nearest is None:
        return True
    return bool(nearest >= threshold) if descending else bool(nearest <= threshold)


def _kept(buckets: Buckets, chosen: set[int]) -> Buckets:
    kept = [[section for section in bucket if id(section) in chosen] for bucket in buckets]
    return [bucket for bucket in kept if bucket]


UNKNOWN = FileExtent(None, None, 0, 0, may_be_null=True, may_have_values=True)


def extents_of(
    buckets: Buckets, bounds: ColumnBounds, numbers: dict[int, int], is_loose: Callable[[Section], bool]
) -> dict[int, FileExtent]:
    """Return the extents of a column by `id` of the section; `numbers` are the places of files in `bounds`,
    by `id` of the entry. The files of sections that are loose bound nothing.
    """
    return {
        id(section): UNKNOWN
        if is_loose(section)
        else _extent(section, bounds, [numbers[id(entry)] for entry in section.entries])
        for bucket in buckets
        for section in bucket
    }


def _extent(section: Section, bounds: ColumnBounds, places: Sequence[int]) -> FileExtent:
    valued = [index for index in places if not bounds.all_null[index]]
    sure = bool(valued) and all(bounds.valid[index] for index in valued)
    nulls = [int(bounds.nulls[index]) for index in places]
    counted = not section.merge and min(nulls) >= 0
    # Statistics count deleted rows too, which may have been any.
    deleted = sum(entry.file.row_count - entry.live_rows for entry in section.entries)
    return FileExtent(
        low=min(bounds.low[index] for index in valued) if sure else None,
        high=max(bounds.high[index] for index in valued) if sure else None,
        values=max(0, section.row_count - sum(nulls)) if counted else 0,
        nulls=max(0, sum(nulls) - deleted) if counted else 0,
        may_be_null=any(nulls),
        may_have_values=bool(valued),
    )


def positions_of(entries: Sequence[ManifestEntry], wanted: Buckets) -> dict[int, int]:
    """Return where in `entries` those of sections are, by `id` of the entry."""
    ids = {id(entry) for bucket in wanted for section in bucket for entry in section.entries}
    return {id(entry): number for number, entry in enumerate(entries) if id(entry) in ids}
