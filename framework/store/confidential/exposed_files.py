"""Plain files: those of a table that hold values of columns to be encrypted in the clear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import CorruptFileError
from lockgate.framework.orc import Audit, audit_file
from lockgate.framework.store.codec.foreign_file_index import indexed_columns
from lockgate.pushdown.index import is_index

if TYPE_CHECKING:
    from lockgate.framework.keys import KeyProvider
    from lockgate.framework.store.confidential.confidential_columns import ConfidentialColumns
    from lockgate.framework.store.confidential.exposed_statistics import ExposedStatistics
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.manifests.manifest import ManifestEntry
    from lockgate.framework.store.metadata.snapshot import Snapshot

ORC_SUFFIX = ".orc"


def audit_entry(
    table: TableHandle, entry: ManifestEntry, secrets: ConfidentialColumns, keys: KeyProvider | None = None
) -> Audit:
    """Compare a file with how its columns should be encrypted; see `orc.audit_file`, whose errors it raises.

    The file names its columns as they were called when it was written. One of another format than ORC has no
    encrypted column at all. Without `keys`, old versions of keys do not count.
    """
    path = table.paths.data_file(entry.partition, entry.bucket, entry.file)
    encrypt = secrets.under(table.schema_of(entry.file.schema_id))
    if not path.endswith(ORC_SUFFIX):
        return Audit(tuple(encrypt), ())
    return audit_file((table.file_system, path), encrypt, keys, name=path)


def indexed_columns_of(table: TableHandle, entry: ManifestEntry, plain: ExposedStatistics) -> frozenset[str]:
    """Return the columns to be encrypted that indexes of a file, in its entry or next to it, may show."""
    hidden, found = plain.hidden_in(entry.file), plain.indexed(entry.file)
    for path in table.paths.extra_files(entry.partition, entry.bucket, entry.file) if hidden else ():
        if is_index(path):
            found |= columns_in_index(table, path, hidden)
    return found


def columns_in_index(table: TableHandle, path: str, hidden: frozenset[str]) -> frozenset[str]:
    """Return which of some columns an index file may show; none if it is gone."""
    try:
        columns = indexed_columns(table.file_system.read_bytes(path))
    except FileNotFoundError:
        return frozenset()
    return hidden if columns is None else hidden & columns


def snapshot_shows(table: TableHandle, snapshot: Snapshot | None, plain: ExposedStatistics) -> bool:
    """Say whether manifests or statistics of a snapshot show values of columns that are to be encrypted."""
    if snapshot is None or not plain.secrets:
        return False
    if plain.in_manifests(table.manifests, table.manifests.manifests(snapshot)):
        return True
    return snapshot.statistics is not None and statistics_show(table, snapshot.statistics, plain)


def statistics_show(table: TableHandle, name: str, plain: ExposedStatistics) -> bool:
    """Say whether a statistics file shows, or may show, values; nothing needs one to be read right."""
    if not plain.secrets:
        return False
    path = table.paths.statistics_file(name)
    try:
        return bool(plain.in_statistics(table.file_system.read_bytes(path), path))
    except CorruptFileError:
        return True
    except FileNotFoundError:
        return False
