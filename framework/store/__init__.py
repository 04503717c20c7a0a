"""The table store: Paimon's table format, read and written."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockgate.framework.store.catalog import Catalog
    from lockgate.framework.store.identifier import Identifier
    from lockgate.framework.store.manifest import (
        DataFileMeta,
        FileKind,
        FileSource,
        ManifestEntry,
        ManifestFileMeta,
    )
    from lockgate.framework.store.message import CommitMessage
    from lockgate.framework.store.schema import Schema, TableSchema
    from lockgate.framework.store.snapshot import CommitKind, Snapshot
    from lockgate.framework.store.statistics import EMPTY_STATS, SimpleStats
    from lockgate.framework.store.table import Table
    from lockgate.framework.store.tags import Tag

_HOMES = {
    "Catalog": "catalog",
    "Identifier": "identifier",
    "Table": "table",
    "CommitKind": "snapshot",
    "CommitMessage": "message",
    "DataFileMeta": "manifest",
    "EMPTY_STATS": "statistics",
    "FileKind": "manifest",
    "FileSource": "manifest",
    "ManifestEntry": "manifest",
    "ManifestFileMeta": "manifest",
    "Schema": "schema",
    "SimpleStats": "statistics",
    "Snapshot": "snapshot",
    "TableSchema": "schema",
    "Tag": "tags",
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
