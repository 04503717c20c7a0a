"""What refers to files of a table besides its snapshots: tags, branches and index manifests.

Source: Paimon's `TagManager` and `BranchManager`: a tag is a copy of its snapshot's file, a branch a folder
with snapshots and tags of its own over the same data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.errors import CorruptFileError
from lockgate.framework.store.avro import read_container
from lockgate.framework.store.snapshot import Snapshot

if TYPE_CHECKING:
    from lockgate.framework.store.table import Table


@dataclass(frozen=True)
class IndexManifest:
    """The index files that an index manifest names, with their sizes."""

    files: dict[str, int]


def read_index_manifest(table: Table, name: str) -> IndexManifest:
    """Read an index manifest; CorruptFileError if it is missing or damaged."""
    path = table.paths.manifest(name)
    try:
        records = read_container(table.file_system.read_bytes(path), path)
        return IndexManifest({record["_FILE_NAME"]: int(record["_FILE_SIZE"]) for record in records})
    except FileNotFoundError:
        raise CorruptFileError(f"{path} is missing, but a snapshot refers to it") from None
    except KeyError as missing:
        raise CorruptFileError(f"{path}: a record lacks {missing}") from None


def protected_snapshots(table: Table) -> list[Snapshot]:
    """Return the snapshots that tags and branches hold, whether or not they have expired."""
    found = _snapshots_in(table, f"{table.location}/tag", "tag-")
    for branch in table.file_system.list(f"{table.location}/branch"):
        found += _snapshots_in(table, f"{branch.path}/snapshot", "snapshot-")
        found += _snapshots_in(table, f"{branch.path}/tag", "tag-")
    return found


def _snapshots_in(table: Table, folder: str, prefix: str) -> list[Snapshot]:
    paths = [info.path for info in table.file_system.list(folder) if info.name.startswith(prefix)]
    return [Snapshot.from_bytes(table.file_system.read_bytes(path), path) for path in paths]
