"""The plugin of indexes: pruners, collectors, index kinds, a system table and procedures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lockgate.framework import options as options_of_tables
from lockgate.framework.plugins import (
    CommitParticipant,
    Event,
    FileCollector,
    FilePruner,
    IndexKind,
    ScanPlanned,
    SystemTable,
    hookimpl,
)
from lockgate.framework.store import has_table_indexes

if TYPE_CHECKING:
    from lockgate.framework.store import TableHandle
    from lockgate.procedures import Procedure


@hookimpl
def lockgate_pruners(table: TableHandle) -> Sequence[FilePruner]:
    """Return pruners for a table with indexes, unless `*index.read.enabled` disables them."""
    pruners: list[FilePruner] = []
    if _has_index(table) and table.options.get_option(options_of_tables.INDEX_READ):
        from lockgate.framework.index.database.segment_pruner import ByIndex

        pruners.append(ByIndex(table))
    if _has_options(table) and table.options.get_option(options_of_tables.FILE_INDEX_READ):
        from lockgate.framework.index.file_index_pruner import ByFileIndex

        pruners.append(ByFileIndex(table))
    return pruners


@hookimpl
def lockgate_file_collectors(table: TableHandle) -> Sequence[FileCollector]:
    """Return collectors that index the new files of a table, as its options require."""
    return [*_file_index_collectors(table), *_segment_collectors(table)]


def _file_index_collectors(table: TableHandle) -> Sequence[FileCollector]:
    if not _has_options(table):
        return []
    from lockgate.framework.index.file_index_collector import IndexCollector
    from lockgate.framework.store import wanted_indexes

    collector = IndexCollector(table.schema, wanted_indexes(table.schema.options))
    return [collector] if collector.indexes else []


def _segment_collectors(table: TableHandle) -> Sequence[FileCollector]:
    if not _writes_segments(table):
        return []
    from lockgate.framework.index.database.segment_collector import SegmentCollector

    collector = SegmentCollector(table)
    return [collector] if collector.indexed else []


def _has_index(table: TableHandle) -> bool:
    return has_table_indexes(table.schema.options)


def _writes_segments(table: TableHandle) -> bool:
    return _has_index(table) and table.options.get_option(options_of_tables.INDEX_WRITE)


@hookimpl
def lockgate_commit_participants(table: TableHandle) -> Sequence[CommitParticipant]:
    """Return participants that add segments and manifest bounds to commits, except for encrypted columns."""
    indexed, encrypts = _has_index(table), bool(table.options.get_option(options_of_tables.ORC_ENCRYPT))
    if not indexed and not encrypts:
        return []
    from lockgate.framework.index.database.bounds import BoundsParticipant
    from lockgate.framework.index.database.participant import SegmentParticipant

    segments = [SegmentParticipant(table)] if encrypts or _writes_segments(table) else []
    return [*segments, BoundsParticipant(table)]


@hookimpl
def lockgate_index_kinds() -> Mapping[str, IndexKind]:
    """Return the kinds of the index database."""
    from lockgate.framework.index.database.blooms import BLOOM, Blooms
    from lockgate.framework.index.database.bounds import BOUNDS, Bounds
    from lockgate.framework.index.database.segment_kinds import NGRAMS, VALUES, Ngrams, Values
    from lockgate.framework.index.database.words import WORDS, Words

    return {VALUES: Values(), NGRAMS: Ngrams(), WORDS: Words(), BLOOM: Blooms(), BOUNDS: Bounds()}


@hookimpl
def lockgate_event(event: Event) -> None:
    """Count searches for `index_advice`."""
    if isinstance(event, ScanPlanned) and event.searched:
        from lockgate.framework.index.database.searches import SEARCHES

        SEARCHES.note(event)


@hookimpl
def lockgate_system_tables() -> Mapping[str, SystemTable]:
    """Return `t$file_indexes`."""
    from lockgate.framework.index.file_indexes_table import FileIndexTable

    return {"file_indexes": FileIndexTable()}


@hookimpl
def lockgate_procedures() -> Sequence[Procedure]:
    """Return `rewrite_file_index` and the procedures of the index database."""
    from lockgate.framework.index.database.advice import IndexAdvice
    from lockgate.framework.index.database.maintenance import BuildIndex, DropIndex, MergeIndex
    from lockgate.framework.index.rewrite_file_index import RewriteFileIndex

    return (RewriteFileIndex(), BuildIndex(), MergeIndex(), DropIndex(), IndexAdvice())


def _has_options(table: TableHandle) -> bool:
    # Most tables have no file index; do not import the module for them.
    return any(key.startswith("file-index.") for key in table.schema.options)
