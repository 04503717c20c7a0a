"""Index files of plugins in a commit: written once, and named in the index manifest of each attempt.

They describe files by name, and names are never reused, so no change of the table makes one wrong. Entries of
removed files are dropped only to save space.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lockgate.errors import CommitConflictError, PluginError
from lockgate.framework.plugins import (
    IndexFileChanges,
    ListedManifest,
    ManifestParticipant,
    NewIndexFile,
)
from lockgate.framework.store.codec.binary_row import decode_row, encode_row
from lockgate.framework.store.manifests.index_manifest import OWN_KINDS, IndexEntry, index_path

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

Partition = tuple[Any, ...]


class OwnIndexFiles:
    """Changes of plugins' index files in the attempts of one commit."""

    def __init__(
        self,
        table: TableHandle,
        changes: Sequence[IndexFileChanges | None],
        of_manifests: Sequence[ManifestParticipant] = (),
    ) -> None:
        self._table = table
        self._of_manifests = of_manifests
        self._changes = [each for each in changes if each is not None and each != IndexFileChanges()]
        # The files are kept with their entries, so that no later one gets the id of one that is gone.
        self._written: dict[int, tuple[NewIndexFile, IndexEntry]] = {}
        self._used: list[NewIndexFile] = []
        self._overwrite: Callable[[Partition], bool] | None = None
        self._everything = False

    @property
    def changes_nothing(self) -> bool:
        """Say whether the index files stay."""
        return not self._changes and not self._of_manifests and self._overwrite is None

    def overwritten(self, partitions: Callable[[Partition], bool] | None, *, everything: bool) -> None:
        """Note which partitions an attempt replaces; `everything`: all files that were there."""
        self._overwrite, self._everything = partitions, everything

    def applied(
        self, before: Sequence[IndexEntry], manifests: Sequence[ListedManifest] = ()
    ) -> list[IndexEntry]:
        """Return the entries of a snapshot of some manifests after the changes; writes files that are new.

        Raises CommitConflictError if a file that goes is gone already.
        """
        kept = [each for each in before if not self._is_replaced(each)]
        self._used = []
        for changes in self._changes:
            kept = self._changed(kept, changes)
        for participant in self._of_manifests:
            kept = self._changed(kept, participant.manifest_files(manifests, kept))
        return [*kept, *(self._entry(each) for each in self._used)]

    def _changed(self, kept: Sequence[IndexEntry], changes: IndexFileChanges) -> list[IndexEntry]:
        """Return the entries that stay, and note the files that are used."""
        fitting = self._fitting(changes, kept)
        self._used += fitting.added
        return [each for each in kept if each.file_name not in fitting.removed]

    def _is_replaced(self, entry: IndexEntry) -> bool:
        if not entry.kind.startswith(OWN_KINDS) or self._overwrite is None:
            return False
        if self._everything:
            return True
        schema = self._table.schema
        partition = decode_row(entry.partition, schema.types_of(schema.partition_keys))
        return not _is_of_several(partition) and self._overwrite(partition)

    def _fitting(self, changes: IndexFileChanges, there: Sequence[IndexEntry]) -> IndexFileChanges:
        names = {each.file_name for each in there}
        if changes.removed <= names:
            return changes
        if changes.otherwise is not None:
            return self._fitting(changes.otherwise, there)
        raise CommitConflictError(
            f"index files of {self._table.identifier} were replaced by another commit concurrently: "
            f"{', '.join(sorted(changes.removed - names))}; call again"
        )

    def _entry(self, new: NewIndexFile) -> IndexEntry:
        if id(new) not in self._written:
            if not new.kind.startswith(OWN_KINDS):
                raise PluginError(f"an index file of kind {new.kind!r}: kinds begin with {OWN_KINDS!r}", "")
            found = self._named(new)
            self._written[id(new)] = (new, found)
            self._table.file_system.write_new(index_path(self._table, found), new.data)
        return self._written[id(new)][1]

    def _named(self, new: NewIndexFile) -> IndexEntry:
        keys = self._table.schema.partition_keys
        values = (None,) * len(keys) if new.partition is None else new.partition
        return IndexEntry(
            partition=encode_row(values, self._table.schema.types_of(keys)),
            bucket=0,
            kind=new.kind,
            file_name=f"index-{uuid.uuid4()}-0",
            file_size=len(new.data),
            row_count=new.rows,
        )

    def drop_unused(self) -> None:
        """Delete what the attempt that succeeded does not name."""
        used = {id(each) for each in self._used}
        self._delete([entry for key, (_, entry) in self._written.items() if key not in used])

    def clean_up(self) -> None:
        """Delete all that was written."""
        self._delete([entry for _, entry in self._written.values()])
        self._written = {}

    def _delete(self, entries: Sequence[IndexEntry]) -> None:
        for entry in entries:
            with suppress(OSError):
                self._table.file_system.delete(index_path(self._table, entry))


def _is_of_several(partition: Partition) -> bool:
    """Say whether an index file is about several partitions, or about that of nulls, which looks the same."""
    return bool(partition) and all(value is None for value in partition)
