"""Another changelog producer, or deletion vectors, for a table that has rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import UnsupportedError
from lockgate.framework import options as table_options
from lockgate.framework.options import CHANGELOG_PRODUCER

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.schema.schema import TableSchema


def check_changelog_switch(table: TableHandle, changed: TableSchema) -> None:
    """Raise UnsupportedError if streams would lose rows, or get them twice, by another changelog producer.

    A producer tells of rows when they are written or when a compaction takes them in; rows that lie between
    would be told by both or by neither (Paimon's issue #2787).
    """
    before, after = table.schema.changelog_producer, changed.changelog_producer
    if before == after:
        return
    top = changed.table_options.get_option(table_options.NUM_LEVELS) - 1
    waiting = [
        entry for entry in table.manifests.live_files(table.latest_snapshot()) if entry.file.level < top
    ]
    if waiting:
        raise UnsupportedError(
            f"option {CHANGELOG_PRODUCER.key!r} of table {table.identifier} cannot become {after!r}: streams "
            f"would lose the rows of {len(waiting)} files that no full compaction has read, or get them "
            f"twice; run CALL sys.compact('{table.identifier}') first"
        )


def check_vectors_switch(table: TableHandle, changed: TableSchema) -> None:
    """Raise UnsupportedError if a key table gets deletion vectors while rows of one key may lie in several
    files.

    Readers of tables with vectors merge nothing, so that such rows would show twice (Paimon's issue #5874).
    """
    if not changed.has_primary_key or not changed.has_vectors or table.schema.has_vectors:
        return
    top = changed.table_options.get_option(table_options.NUM_LEVELS) - 1
    files = table.manifests.live_files(table.latest_snapshot())
    lower = [entry for entry in files if entry.file.level < top]
    if lower:
        raise UnsupportedError(
            f"option {table_options.DELETION_VECTORS.key!r} of table {table.identifier} cannot become "
            f"'true': rows of {len(lower)} files that no full compaction has read would show twice, or not "
            f"at all; run CALL sys.compact('{table.identifier}') first"
        )
