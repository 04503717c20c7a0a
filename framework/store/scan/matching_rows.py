"""Rows to read of a file: no vector deletes them and no pruner rules them out; other stripes are skipped.

An engine with readers of its own gets the bytes of the stripes to read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.errors import CorruptFileError, LockgateError, PluginError
from lockgate.framework.orc import EncryptedOrcFile, open_source, read_tail
from lockgate.framework.plugins import CandidateFile, RowPruner, plugins
from lockgate.framework.store.deletion_vectors.deletion_vector import DeletedRows
from lockgate.framework.store.formats.data_file import DataFile, FileFormat, format_of
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.pruning.candidates import candidate_of
from lockgate.framework.store.pruning.split import Split
from lockgate.framework.store.scan.scan import ScanPlan
from lockgate.pushdown import col, conjuncts, normalize

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lockgate.framework.store.handle import TableHandle

Mask = npt.NDArray[np.bool_]

# Of so many files, where pruners rule rows out, the places of stripes are looked up while a query is planned.
_MOST_TAILS = 64


class MatchingRows:
    """The rows of each file that pruners leave for a plan's predicate."""

    def __init__(self, table: TableHandle, plan: ScanPlan) -> None:
        self._table = table
        self._schema = plan.schema
        self._index_manifest = plan.index_manifest
        self._predicate = normalize(plan.predicate)
        found = plugins().pruners(table) if conjuncts(self._predicate) else []
        self._pruners = [(plugin, each) for plugin, each in found if isinstance(each, RowPruner)]

    def of(self, split: Split, file: DataFileMeta) -> BitMap | None:
        """Return the rows of a file that may match, None if any may; PluginError if a plugin fails."""
        chosen: BitMap | None = None
        for plugin, pruner in self._pruners:
            rows = self._asked(plugin, pruner, self._candidate(split, file))
            chosen = rows if chosen is None else chosen if rows is None else chosen & rows
        return chosen

    def _candidate(self, split: Split, file: DataFileMeta) -> CandidateFile:
        values = [split.partition[name] for name in self._schema.partition_keys]
        return candidate_of(self._table, self._schema, values, split.bucket, file, self._index_manifest)

    def _asked(self, plugin: str, pruner: RowPruner, file: CandidateFile) -> BitMap | None:
        try:
            return pruner.rows(self._predicate, file)
        except CorruptFileError:
            raise  # it names the file
        except Exception as error:  # a plugin may raise anything
            raise PluginError(
                f"plugin {plugin!r}: pruner {pruner.name!r} failed on {file.path}: "
                f"{type(error).__name__}: {error}",
                plugin,
            ) from error


@dataclass(frozen=True)
class StripeRange:
    """The bytes of stripes that lie one behind the other in a file, and the number of their rows."""

    start: int
    length: int
    rows: int


def stripe_ranges(table: TableHandle, plan: ScanPlan) -> dict[str, tuple[StripeRange, ...]]:
    """Return the stripes that may have matching rows, by path of file; other files are read as a whole.

    Those are files to merge, files of other formats, and those that cannot be opened: the reader of such
    a file raises the error. PluginError if a plugin fails.
    """
    single = [split for split in plan.splits if not split.merge]
    if sum(len(split.files) for split in single) > _MOST_TAILS:
        return {}
    matching, found = MatchingRows(table, plan), {}
    for split in single:
        for path, file in zip(split.paths, split.files, strict=True):
            chosen = matching.of(split, file) if format_of(path) is FileFormat.ORC else None
            ranges = None if chosen is None else _ranges(table, path, file.row_count, chosen)
            if ranges is not None:
                found[path] = ranges
    return found


def _ranges(table: TableHandle, path: str, count: int, chosen: BitMap) -> tuple[StripeRange, ...] | None:
    if not chosen:
        return ()
    if len(chosen) >= count:
        return None  # its tail would tell nothing
    try:
        source = open_source((table.file_system, path), path)
        try:
            tail = read_tail(source)
        finally:
            source.close()
    except (LockgateError, OSError):
        return None
    ranges: list[StripeRange] = []
    first = 0
    for stripe in tail.footer.stripes:
        rows, start = int(stripe.number_of_rows), int(stripe.offset)
        length = int(stripe.index_length + stripe.data_length + stripe.footer_length)
        if chosen.range_cardinality(first, first + rows):
            last = ranges[-1] if ranges else None
            if last is not None and last.start + last.length == start:
                ranges[-1] = StripeRange(last.start, last.length + length, last.rows + rows)
            else:
                ranges.append(StripeRange(start, length, rows))
        first += rows
    return tuple(ranges)


class LiveRows:
    """The batches of a file that hold rows to be read, and which rows of each these are."""

    def __init__(self, source: DataFile, deleted: DeletedRows | None, chosen: BitMap | None) -> None:
        self._source = source
        self._deleted = deleted
        self._chosen = None if chosen is None else _mask(chosen, source.num_rows)
        self._stripes = self._matching_stripes()
        self._at = 0

    def _matching_stripes(self) -> list[tuple[int, int, int]] | None:
        """Return number, first and last row of the stripes to be read; None: all of the file."""
        if self._chosen is None or not isinstance(self._source, EncryptedOrcFile):
            return None
        ends = np.cumsum([0, *self._source.stripe_rows])
        places = zip(range(len(ends)), ends[:-1].tolist(), ends[1:].tolist(), strict=False)
        found = [each for each in places if self._chosen[each[1] : each[2]].any()]
        self._chosen = np.concatenate([self._chosen[a:b] for _, a, b in found]) if found else self._chosen[:0]
        return found

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read columns batch by batch."""
        if self._stripes is None or not isinstance(self._source, EncryptedOrcFile):
            return self._source.iter_batches(columns=columns)
        return self._source.iter_batches(columns=columns, stripes=[number for number, *_ in self._stripes])

    def kept(self, rows: int) -> Mask | None:
        """Return which of the next so many rows are to be read; None: all."""
        first, self._at = self._at, self._at + rows
        live = self._live(first, rows)
        if self._chosen is None:
            return live
        chosen = self._chosen[first : first + rows]
        return chosen if live is None else chosen & live

    def _live(self, first: int, rows: int) -> Mask | None:
        if self._deleted is None or self._stripes is None:
            return None if self._deleted is None else self._deleted.kept(first, rows)
        passed = 0
        for _, start, end in self._stripes:
            if first < passed + end - start:
                # A batch lies in one stripe.
                return self._deleted.kept(start + first - passed, rows)
            passed += end - start
        return None


@dataclass(frozen=True)
class WantedKeys:
    """Values of `column`, the first of a key table's key, ascending and distinct; others may be left out.

    Files of key tables are sorted by their key, so that few row groups have rows of few values.
    """

    column: str
    values: pa.Array

    @cached_property
    def _plain(self) -> list[Any]:
        return list(self.values.to_pylist())

    def within(self, low: Any, high: Any) -> WantedKeys:
        """Return the values from `low` to `high`, which are None if they are not known."""
        first = 0 if low is None else bisect_left(self._plain, low)
        end = len(self._plain) if high is None else bisect_right(self._plain, high)
        return replace(self, values=self.values.slice(first, max(0, end - first)))

    def in_file(self, file: DataFileMeta) -> bool:
        """Say whether a file of the table may have rows of the values, by its smallest and largest key."""
        if not file.min_key or not file.max_key:
            return True
        low, high = file.min_key[0], file.max_key[0]
        first = bisect_left(self._plain, low)
        return first < len(self._plain) and self._plain[first] <= high

    def batches(
        self, source: DataFile, inside: str | None, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Read at least the rows of the values; `inside` is the column's name in the file, if it is there."""
        if inside is None or not isinstance(source, EncryptedOrcFile):
            yield from source.iter_batches(columns=columns)
            return
        statistics = source.stripe_statistics or [{}] * source.num_stripes
        for number, columns_of_stripe in enumerate(statistics):
            bounds = columns_of_stripe.get(inside)
            low, high = (None, None) if bounds is None else (bounds.minimum, bounds.maximum)
            some = self.within(low, high).values
            if len(some):
                condition = col(inside).isin(list(some))
                yield from source.iter_batches(columns=columns, predicate=condition, stripes=[number])


def _mask(chosen: BitMap, rows: int) -> Mask:
    mask = np.zeros(rows, np.bool_)
    mask[np.asarray(chosen.to_array())] = True
    return mask
