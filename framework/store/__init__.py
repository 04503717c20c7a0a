"""The table store: Paimon's table format, read and written."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockgate.framework.store.catalog import Catalog
    from lockgate.framework.store.identifier import Identifier
    from lockgate.framework.store.manifests.manifest import (
        DataFileMeta,
        FileKind,
        FileSource,
        ManifestEntry,
        ManifestFileMeta,
    )
    from lockgate.framework.store.manifests.simple_stats import EMPTY_STATS, SimpleStats
    from lockgate.framework.store.manifests.tag_files import Tag
    from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
    from lockgate.framework.store.schema.schema import Schema, TableSchema
    from lockgate.framework.store.table import Table
    from lockgate.framework.store.write.message import CommitMessage

_HOMES = {
    "Catalog": "catalog",
    "Identifier": "identifier",
    "Table": "table",
    "CommitKind": "metadata.snapshot",
    "CommitMessage": "write.message",
    "DataFileMeta": "manifests.manifest",
    "EMPTY_STATS": "manifests.simple_stats",
    "FileKind": "manifests.manifest",
    "FileSource": "manifests.manifest",
    "ManifestEntry": "manifests.manifest",
    "ManifestFileMeta": "manifests.manifest",
    "Schema": "schema.schema",
    "SimpleStats": "manifests.simple_stats",
    "Snapshot": "metadata.snapshot",
    "TableSchema": "schema.schema",
    "Tag": "manifests.tag_files",
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


def __getattr__(name: str) -> Any:
    # Parts of the store are loaded when they are first used, so that a codec alone stays quick to import.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
