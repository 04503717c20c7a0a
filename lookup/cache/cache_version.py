"""Reading one cached state: keys in, rows out, vectorised from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.backends import CacheReader, FoundRows, is_passing, open_reader
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.cache.version_info import CacheVersionInfo
from lockgate.lookup.codec.byte_rows import Bools, Int64s, Rows, offsets_of, ragged
from lockgate.lookup.codec.cache_cipher import CacheCipher
from lockgate.lookup.codec.lists import unpack
from lockgate.lookup.spec.lookup_spec import CacheLayout

# The rows of each key where a key has one at most: no caller needs them.
_ONE_EACH: Int64s = np.zeros(0, np.int64)


@dataclass(frozen=True)
class LookupResult:
    """The answer to a batch of keys.

    `rows` are the matching rows in the order of the keys, `indices[i]` (int64, ascending) is the key that
    row i answers, `matched` (boolean, one a key) says which keys have a row. All are of one
    snapshot.
    """

    rows: pa.RecordBatch
    indices: pa.Array
    matched: pa.Array
    snapshot_id: int


class AnswerTooLarge(Exception):  # noqa: N818 - a turn of events inside the package, not an error
    """An answer would take more memory than allowed; requested in `parts`, each takes about that much."""

    def __init__(self, parts: int) -> None:
        super().__init__(f"an answer must be given in {parts} parts")
        self.parts = parts


class DamagedVersionError(LookupCacheError):
    """Raised where the files of a state cannot be read: the cache is discarded and built again."""


class KeyedState:
    """The state of a dimension at one snapshot, open for reading: `reader` finds the values of its keys."""

    def __init__(self, info: CacheVersionInfo, layout: CacheLayout, reader: CacheReader) -> None:
        self.info = info
        self.layout = layout
        self._store = reader
        self._answer = [layout.row_schema.get_field_index(name) for name in layout.columns]

    @property
    def snapshot_id(self) -> int:
        """The snapshot whose state this is."""
        return self.info.snapshot_id

    def close(self) -> None:
        """Release the files."""
        self._store.close()

    def get(self, keys: Sequence[pa.Array]) -> LookupResult:
        """Look up keys, given as one array for each key column.

        Raises InputError naming both types if a column's type does not widen to the dimension's.
        """
        rows, counts = self.matches(keys)
        indices = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        return LookupResult(rows, pa.array(indices), pa.array(counts > 0), self.snapshot_id)

    def matches(
        self, keys: Sequence[pa.Array], most_bytes: int | None = None
    ) -> tuple[pa.RecordBatch, Int64s]:
        """Return the matching rows in the order of the keys, and how many each key has.

        Raises AnswerTooLarge if the answer to several keys would have more than `most_bytes`.
        """
        found, at, counts = self._find(keys, most_bytes)
        if self.layout.many:
            lists = offsets_of(counts)
            each = np.where(at >= 0, counts[at], 0) if len(counts) else np.zeros(len(at), np.int64)
            taken = ragged(lists[at[each > 0]], each[each > 0])
            return found.take(pa.array(taken)), each
        each = (at >= 0).astype(np.int64)
        return found.take(pa.array(at[at >= 0])), each

    def aligned(
        self, keys: Sequence[pa.Array], most_bytes: int | None = None
    ) -> tuple[pa.RecordBatch, Bools]:
        """Return a row for each key, all null where there is none, and a mask; only with one row a key.

        Raises AnswerTooLarge as `matches` does.
        """
        found, at, _ = self._find(keys, most_bytes)
        missing = at < 0
        indices = pa.array(at, mask=missing) if missing.any() else pa.array(at)
        return found.take(indices), ~missing

    def _find(
        self, keys: Sequence[pa.Array], most_bytes: int | None
    ) -> tuple[pa.RecordBatch, Int64s, Int64s]:
        # Decoded rows of the distinct keys that were found, the index of each key among them (-1: none), and
        # their numbers of rows.
        encoded = self.layout.key_codec.encode(keys)
        groups = encoded.distinct()
        indices = np.full(len(groups), -1, np.int64)
        parts = self._store.find(encoded.rows.take(groups.first))
        if most_bytes is not None and len(encoded.valid) > 1:
            _check_size(parts, groups.inverse, len(groups), most_bytes)
        batches, counts, end = [], [], 0
        for found in parts:
            indices[found.at] = np.arange(end, end + len(found.at))
            end += len(found.at)
            rows, each = unpack(found.rows) if self.layout.many else (found.rows, _ONE_EACH)
            batches.append(self.layout.row_codec.decode(rows).select(self._answer))
            counts.append(each)
        at = np.full(len(encoded.valid), -1, np.int64)
        at[encoded.valid] = indices[groups.inverse]
        return self._joined(batches), at, np.concatenate([_ONE_EACH, *counts])

    def _joined(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return self.layout.row_codec.decode(Rows.empty()).select(self._answer)
        return pa.concat_batches(batches)


class CacheVersion(KeyedState):
    """A state that lies in the folder of a cache."""

    def __init__(
        self,
        directory: CacheDirectory,
        snapshot_id: int,
        cache_bytes: int,
        cipher: CacheCipher | None = None,
        reader: CacheReader | None = None,
    ) -> None:
        info = directory.version(snapshot_id)
        if info is None:
            directory.layout()  # raises the more telling error when there is no cache at all
            raise LookupCacheError(
                f"the lookup cache {directory.path} does not hold snapshot {snapshot_id} (any more); "
                f"it holds {directory.versions() or 'none'}"
            )
        layout = directory.layout().with_cipher(cipher)
        if layout.keys and cipher is None:
            raise LookupCacheError(f"the lookup cache {directory.path} is encrypted: its key is needed")
        if reader is None:
            path = directory.version_path(snapshot_id) / "db"
            try:
                reader = open_reader(path, info.storage, cache_bytes, cipher)
            except LookupCacheError as error:
                raise error if is_passing(error) else DamagedVersionError(str(error)) from None
        super().__init__(info, layout, reader)


def _check_size(found: Sequence[FoundRows], asked: Int64s, distinct: int, most_bytes: int) -> None:
    # `asked` has the number of the distinct key for each key asked for: a value counts each time.
    words = max((int(part.rows.lengths.max()) for part in found if len(part.at)), default=0)
    if words * 8 * len(asked) <= most_bytes:
        return
    sizes = np.zeros(distinct, np.int64)
    for part in found:
        sizes[part.at] = part.rows.lengths
    total = int(sizes[asked].sum()) * 8
    if total > most_bytes:
        raise AnswerTooLarge(min(len(asked), total // most_bytes + 1))
