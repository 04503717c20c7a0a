"""Types of plugins that know of manifests what they list, so that scans need not open them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from lockgate.framework.plugins.contracts import CommitParticipant, FilePruner, IndexFileChanges

if TYPE_CHECKING:
    from lockgate.framework.store import IndexEntry, ManifestEntry, ManifestFileMeta, TableSchema
    from lockgate.pushdown import Predicate


@dataclass(frozen=True)
class SkippedManifests:
    """Manifests by name of which no file has a match, and the amount of data that they list.

    `places` are their partitions, as serialized rows, each with a bucket.
    """

    names: frozenset[str]
    places: frozenset[tuple[bytes, int]]
    files: int
    rows: int
    bytes: int


@runtime_checkable
class ManifestPruner(FilePruner, Protocol):
    """A step of pruning that also knows which manifests a scan need not open."""

    def manifests(
        self,
        predicate: Predicate,
        schema: TableSchema,
        manifests: Sequence[ManifestFileMeta],
        index_manifest: str | None,
    ) -> SkippedManifests | None:
        """Return the manifests of a snapshot that list no file with a match, None if it knows of none.

        Asked of append tables alone. A manifest that lists a deletion is opened whatever the answer is.
        `predicate` names columns of `schema`, partition columns included. An error ends the query.
        """


@dataclass(frozen=True)
class ListedManifest:
    """A manifest of the snapshot that a commit makes; `entries` are those of one that it has just written."""

    meta: ManifestFileMeta
    entries: tuple[ManifestEntry, ...] | None = None


@runtime_checkable
class ManifestParticipant(CommitParticipant, Protocol):
    """A participant whose index files tell of manifests: each attempt of a commit makes its own."""

    def manifest_files(
        self, manifests: Sequence[ListedManifest], present: Sequence[IndexEntry]
    ) -> IndexFileChanges:
        """Return the changes of its index files for an attempt that makes a snapshot of some manifests.

        `present` are the index files that the snapshot keeps; only they can be removed.
        """
