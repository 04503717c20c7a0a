"""The plugin of file indexes: a step of pruning, a collector of new files, a system table and a procedure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lockgate.framework.options import table_options as options_of_tables
from lockgate.framework.plugins import FileCollector, FilePruner, SystemTable, hookimpl

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.procedures import Procedure


@hookimpl
def lockgate_pruners(table: TableHandle) -> Sequence[FilePruner]:
    """Ask indexes of tables that have some, unless `file-index.read.enabled` says no."""
    if not _has_options(table) or not table.options.get_option(options_of_tables.FILE_INDEX_READ):
        return []
    from lockgate.framework.index.pruner import ByFileIndex

    return [ByFileIndex(table)]


@hookimpl
def lockgate_file_collectors(table: TableHandle) -> Sequence[FileCollector]:
    """Index the files of tables whose options ask for it."""
    if not _has_options(table):
        return []
    from lockgate.framework.index.collector import IndexCollector
    from lockgate.framework.store.schema.file_indexes import wanted_indexes

    collector = IndexCollector(table.schema, wanted_indexes(table.schema.options))
    return [collector] if collector.indexes else []


@hookimpl
def lockgate_system_tables() -> Mapping[str, SystemTable]:
    """Offer `t$file_indexes`."""
    from lockgate.framework.index.system_table import FileIndexTable

    return {"file_indexes": FileIndexTable()}


@hookimpl
def lockgate_procedures() -> Sequence[Procedure]:
    """Offer `rewrite_file_index`."""
    from lockgate.framework.index.rewrite import RewriteFileIndex

    return (RewriteFileIndex(),)


def _has_options(table: TableHandle) -> bool:
    # Most tables have none, and are to pay nothing for this.
    return any(key.startswith("file-index.") for key in table.schema.options)
