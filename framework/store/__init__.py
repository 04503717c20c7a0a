"""The table store: Paimon's table format, read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.store.codec.simple_stats import EMPTY_STATS, SimpleStats
    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.manifests.manifest import (
        DataFileMeta,
        FileKind,
        FileSource,
        ManifestEntry,
        ManifestFileMeta,
    )
    from lockgate.framework.store.metadata.identifier import Identifier
    from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
    from lockgate.framework.store.metadata.tag_files import Tag
    from lockgate.framework.store.schema.schema import Schema, TableSchema
    from lockgate.framework.store.tables.catalog import Catalog
    from lockgate.framework.store.tables.table import Table

_HOMES = {
    "Catalog": ".tables.catalog",
    "Identifier": ".metadata.identifier",
    "Table": ".tables.table",
    "CommitKind": ".metadata.snapshot",
    "CommitMessage": ".commit.message",
    "DataFileMeta": ".manifests.manifest",
    "EMPTY_STATS": ".codec.simple_stats",
    "FileKind": ".manifests.manifest",
    "FileSource": ".manifests.manifest",
    "ManifestEntry": ".manifests.manifest",
    "ManifestFileMeta": ".manifests.manifest",
    "Schema": ".schema.schema",
    "SimpleStats": ".codec.simple_stats",
    "Snapshot": ".metadata.snapshot",
    "TableSchema": ".schema.schema",
    "Tag": ".metadata.tag_files",
}

__all__ = [
    "EMPTY_STATS",
    "Catalog",
    "CommitKind",
    "CommitMessage",
    "DataFileMeta",
    "FileKind",
    "FileSource",
    "Identifier",
    "ManifestEntry",
    "ManifestFileMeta",
    "Schema",
    "SimpleStats",
    "Snapshot",
    "Table",
    "TableSchema",
    "Tag",
]

# Parts of the store are loaded when they are first used, so that a codec alone stays quick to import.
__getattr__ = lazy_attributes(__name__, _HOMES)
