"""Values of encrypted columns in manifests, and manifest entries without them.

Files that were written before a column was encrypted, or by a writer that ignores `orc.encrypt`, have entries
with the column's bounds, which for short values are the values. Entries are written without them, deletions
too.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lockgate.errors import CorruptFileError
from lockgate.framework.store.codec.foreign_file_index import indexed_columns
from lockgate.framework.store.codec.simple_stats import SimpleStats
from lockgate.framework.store.confidential.confidential_columns import ConfidentialColumns
from lockgate.framework.store.manifests.manifest import DataFileMeta, ManifestEntry, ManifestFileMeta
from lockgate.framework.store.manifests.manifest_files import ManifestFiles
from lockgate.framework.store.schema.schema import TableSchema, load_json


class ExposedStatistics:
    """Tells and removes what manifest entries show of columns that are to be encrypted."""

    def __init__(self, secrets: ConfidentialColumns, schema_of: Callable[[int], TableSchema]) -> None:
        self.secrets = secrets
        self._schema_of = schema_of
        self._hidden: dict[int, frozenset[str]] = {}

    def shown(self, file: DataFileMeta) -> frozenset[str]:
        """Return the columns that a file's entry shows bounds or null counts of, as the file names them."""
        hidden = self.hidden_in(file) if self.secrets else frozenset()
        stats = file.value_stats
        if not hidden or not (stats.null_counts or stats.min or stats.max):
            return frozenset()
        return hidden & frozenset(self._columns(file))

    def indexed(self, file: DataFileMeta) -> frozenset[str]:
        """Return the columns that a file's embedded index may hold values of."""
        if not self.secrets or file.embedded_index is None:
            return frozenset()
        columns = indexed_columns(file.embedded_index)
        hidden = self.hidden_in(file)
        return hidden if columns is None else hidden & columns

    def shows(self, entry: ManifestEntry) -> bool:
        """Say whether an entry shows anything."""
        return bool(self.shown(entry.file) or self.indexed(entry.file))

    def in_manifests(self, files: ManifestFiles, metas: Sequence[ManifestFileMeta]) -> bool:
        """Say whether one of some manifests shows anything; reads them all."""
        if not self.secrets:
            return False
        return any(self.shows(entry) for meta in metas for entry in files.read_manifest(meta))

    def without(self, entry: ManifestEntry) -> ManifestEntry:
        """Return an entry that shows nothing; the same one where it does not."""
        file, shown = entry.file, self.shown(entry.file)
        if shown:
            file = _without_columns(file, self._columns(file), shown)
        if self.indexed(file):
            # It is one piece for all columns, and an index is never needed to read right.
            file = dataclasses.replace(file, embedded_index=None)
        return entry if file is entry.file else dataclasses.replace(entry, file=file)

    def all_without(self, entries: Iterable[ManifestEntry]) -> tuple[ManifestEntry, ...]:
        """Return entries that show nothing."""
        return tuple(self.without(entry) for entry in entries)

    def in_statistics(self, content: bytes, path: str) -> frozenset[str]:
        """Return the columns that a statistics file of the table (Paimon's ANALYZE) shows anything of.

        Raises CorruptFileError if it cannot be read.
        """
        columns = load_json(content, path).get("colStats") or {}
        if not isinstance(columns, dict):
            raise CorruptFileError(f"{path}: colStats cannot be {json.dumps(columns)[:40]}")
        return frozenset(name for name, stats in columns.items() if self._is_secret(stats))

    def _is_secret(self, stats: object) -> bool:
        number = stats.get("colId") if isinstance(stats, dict) else None
        return not isinstance(number, int) or self.secrets.has_id(number)

    def hidden_in(self, file: DataFileMeta) -> frozenset[str]:
        """Return the columns of a file that are to be encrypted, or have a part that is."""
        if file.schema_id not in self._hidden:
            self._hidden[file.schema_id] = self.secrets.top_level(self._schema_of(file.schema_id))
        return self._hidden[file.schema_id]

    def _columns(self, file: DataFileMeta) -> Sequence[str]:
        for columns in (file.value_stats_cols, file.write_cols):
            if columns is not None:
                return columns
        return self._schema_of(file.schema_id).field_names


def _without_columns(file: DataFileMeta, columns: Sequence[str], hidden: frozenset[str]) -> DataFileMeta:
    stats = file.value_stats
    kept = [index for index, name in enumerate(columns) if name not in hidden]
    parts = [_places(values, kept) for values in (stats.min, stats.max, stats.null_counts)]
    return dataclasses.replace(
        file, value_stats=SimpleStats(*parts), value_stats_cols=tuple(columns[index] for index in kept)
    )


def _places(values: Sequence[Any], kept: Iterable[int]) -> tuple[Any, ...]:
    # Other writers leave out what they do not know.
    return tuple(values[index] if index < len(values) else None for index in kept)
