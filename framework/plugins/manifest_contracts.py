"""Contracts of plugins that index the content of manifests, so that scans can skip some unopened."""

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
    """Names of manifests that list no matching file, with the amount of data that they list.

    `places` are their partitions, as serialized rows, each with a bucket.
    """

    names: frozenset[str]
    places: frozenset[tuple[bytes, int]]
    files: int
    rows: int
    bytes: int


@runtime_checkable
class ManifestPruner(FilePruner, Protocol):
    """A step of pruning that also skips manifests without opening them."""

    def manifests(
        self,
        predicate: Predicate,
        schema: TableSchema,
        manifests: Sequence[ManifestFileMeta],
        index_manifest: str | None,
    ) -> SkippedManifests | None:
        """Return the manifests of a snapshot that list no matching file, None if it finds none.

        Called only for append tables. A manifest that lists a deletion is always opened.
        `predicate` names columns of `schema`, partition columns included. An error ends the query.
        """


@dataclass(frozen=True)
class ListedManifest:
    """A manifest of a commit's snapshot; `entries` is its content if this commit has written it."""

    meta: ManifestFileMeta
    entries: tuple[ManifestEntry, ...] | None = None


@runtime_checkable
class ManifestParticipant(CommitParticipant, Protocol):
    """A participant whose index files describe manifests: each attempt of a commit makes new ones."""

    def manifest_files(
        self, manifests: Sequence[ListedManifest], present: Sequence[IndexEntry]
    ) -> IndexFileChanges:
        """Return the changes of its index files for an attempt whose snapshot has these manifests.

        `present` are the index files that the snapshot keeps; only they can be removed.
        """
