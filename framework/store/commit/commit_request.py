"""Requests to commit, with the checks that need no state of the table."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from lockgate.errors import InputError, UnsupportedError, nearest
from lockgate.framework.store.commit.base_snapshot import BaseSnapshot
from lockgate.framework.store.commit.file_collectors import collected, indexed
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.manifests.manifest import FileKind, ManifestEntry
from lockgate.framework.store.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import FLOAT_KINDS, has_partition_values, to_arrow

if TYPE_CHECKING:
    from lockgate.framework.plugins import IndexFileChanges
    from lockgate.framework.store.commit.vector_changes import RowDeletions
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.manifests.index_manifest import WrittenIndex
    from lockgate.framework.store.metadata.snapshot import Snapshot

Partition: TypeAlias = tuple[Any, ...]
# The partitions to replace: those with some values, or those of which a function says so.
Overwrite: TypeAlias = Mapping[str, Any] | Callable[[Partition], bool]


class GivenIndex(Protocol):
    """The index of a new snapshot, as a caller makes it."""

    def check(self, head: Snapshot | None) -> None:
        """Raise CommitConflictError if it does not fit the newest snapshot."""

    def write(self) -> WrittenIndex:
        """Write it and return it."""


@dataclass(frozen=True)
class StreamEpoch:
    """The name of a commit that happens once: the user that it counts for, whose identifiers must grow.

    Without an identifier it only says who commits.
    """

    user: str
    identifier: int = BATCH_COMMIT_IDENTIFIER


@dataclass(frozen=True)
class CommitRequest:
    """A commit as it is asked for.

    `overwrite` maps partition columns to values, or says of a partition's values whether it goes, and deletes
    all files of matching partitions as they are when the commit lands (an empty mapping: of the whole table).
    With `base`, the snapshot that the changes were computed from, they are refused if partitions that are
    overwritten, or ranges of keys that are upserted, have changed since then, or if that was rolled back; see
    `base_snapshot`. `marked` rows are deleted where they lie, by deletion vectors; files that go must still
    have the vectors that their messages tell.
    """

    messages: Sequence[CommitMessage] = ()
    kind: str = CommitKind.APPEND
    epoch: StreamEpoch | None = None
    base: BaseSnapshot | None = None
    overwrite: Overwrite | None = None
    marked: Sequence[RowDeletions] = ()


@dataclass(frozen=True)
class InnerCommit(CommitRequest):
    """A commit that only the store itself asks for.

    `replaces` is for `replace.Replacement` alone: the table's schema begins to hold with the snapshot. With
    `merges_manifests` all manifests are written again, into few. `index` is that of the new snapshot, where
    it does not follow from the newest; `index_files` a plugin's.
    """

    replaces: bool = False
    merges_manifests: bool = False
    index: GivenIndex | None = None
    index_files: IndexFileChanges | None = None


@dataclass(frozen=True)
class PreparedCommit:
    """A commit that was checked: what changes, what is replaced, and what it was computed from.

    `collected` is what file collectors made of each added file, by name of the file and of the collector.
    `hashes` are those of the keys that are written, by partition and bucket, of tables with dynamic buckets.
    `changelog` are the files that tell what became of keys. `placed` is the state in which keys that move
    between partitions were looked up. The rest is as in `InnerCommit`.
    """

    kind: CommitKind
    user: str
    identifier: int
    changes: tuple[ManifestEntry, ...]
    overwrite: Callable[[Partition], bool] | None
    base_snapshot: BaseSnapshot | None
    replaces: bool = False
    merges_manifests: bool = False
    index: GivenIndex | None = None
    index_files: IndexFileChanges | None = None
    marked: tuple[RowDeletions, ...] = ()
    collected: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict, hash=False)
    hashes: Mapping[tuple[Partition, int], bytes] = field(default_factory=dict, hash=False)
    changelog: tuple[ManifestEntry, ...] = ()
    placed: BaseSnapshot | None = None

    @property
    def deletes(self) -> bool:
        """Say whether it takes files away."""
        return self.overwrite is not None or any(entry.kind is FileKind.DELETE for entry in self.changes)

    @property
    def does_more(self) -> bool:
        """Say whether it makes a snapshot even if no file comes or goes."""
        indexes = self.index is not None or self.index_files is not None
        return bool(self.marked) or self.merges_manifests or self.replaces or indexes

    @property
    def is_stream(self) -> bool:
        """Say whether it is one of a series that happens once each."""
        return self.identifier != BATCH_COMMIT_IDENTIFIER


def prepared(table: TableHandle, request: CommitRequest) -> PreparedCommit:
    """Return what a commit is asked for, checked; InputError if that cannot be meant.

    Raises UnsafePathError for files that the table cannot have, UnsupportedError for those of keys that move
    between partitions and were not looked up.
    """
    inner = request if isinstance(request, InnerCommit) else InnerCommit()
    messages, overwrite = indexed(table, request.messages), request.overwrite
    try:
        commit_kind = CommitKind(request.kind)
    except ValueError:
        hint = nearest(str(request.kind), [each.value for each in CommitKind])
        raise InputError(f"a commit cannot be of kind {request.kind!r}{hint}") from None
    changes = [*_entries(messages, FileKind.DELETE), *_entries(messages, FileKind.ADD)]
    changelog = [
        ManifestEntry(FileKind.ADD, message.partition, message.bucket, message.total_buckets, file)
        for message in messages
        for file in message.changelog
    ]
    for entry in (*changes, *changelog):  # an executor may have said anything
        table.paths.check_entry(entry)
    deletes = overwrite is not None or any(entry.kind is FileKind.DELETE for entry in changes)
    # A given index takes one state of the table only, so that its maker knows where all keys lie.
    placed = None if inner.index is not None else _placed(table, messages, commit_kind, overwrite)
    if commit_kind is CommitKind.APPEND and (deletes or request.marked):
        # Followers of changes take APPEND as rows to add, so what takes rows away must not be called that.
        commit_kind = CommitKind.OVERWRITE
    epoch = request.epoch or StreamEpoch(str(uuid.uuid4()))
    return PreparedCommit(
        kind=commit_kind,
        user=epoch.user,
        identifier=epoch.identifier,
        changes=tuple(changes),
        overwrite=_matching(table.schema, overwrite) if isinstance(overwrite, Mapping) else overwrite,
        base_snapshot=request.base,
        replaces=inner.replaces,
        merges_manifests=inner.merges_manifests,
        index=inner.index,
        index_files=inner.index_files,
        marked=tuple(request.marked),
        collected=collected(table, messages),
        hashes=_hashes(messages),
        changelog=tuple(changelog),
        placed=placed,
    )


def _placed(
    table: TableHandle, messages: Sequence[CommitMessage], kind: CommitKind, overwrite: Overwrite | None
) -> BaseSnapshot | None:
    """Return the state by which keys that move between partitions were placed, None if it does not matter.

    InputError for two of them, and for a write that was meant for another kind of commit.
    """
    if not table.schema.moves_keys:
        return None
    found = {message.placed for message in messages if message.added}
    if kind is CommitKind.COMPACT:
        if found - {None}:
            raise InputError(f"rows that are written into {table.identifier} are not committed as COMPACT")
        return None
    everything = isinstance(overwrite, Mapping) and not overwrite
    if found and overwrite is not None and not everything:
        raise UnsupportedError(
            f"partitions of {table.identifier} cannot be overwritten, because its keys move between them: "
            "overwrite the whole table, or delete rows and append others"
        )
    if None in found:
        raise UnsupportedError(
            f"files cannot be added to {table.identifier}: its keys move between partitions, and the writer "
            "did not look up where they lie; write by Table.write"
        )
    if len(found) > 1:
        raise InputError(
            f"{table.identifier} takes the rows of one write a commit: its keys move between partitions, and "
            "two writes do not know of each other's"
        )
    placed = next(iter(found), None)
    if placed is None:
        return None
    if placed.replace_all != everything:
        given, other = ("", "out") if everything else ("out", "")
        raise InputError(
            f"the rows for {table.identifier} were written with{other} overwrite={{}} and are committed "
            f"with{given} it: its keys move between partitions, so give it to both or to neither"
        )
    return None if everything else BaseSnapshot(placed.snapshot_id, placed.commit_id)


def _hashes(messages: Sequence[CommitMessage]) -> dict[tuple[Partition, int], bytes]:
    """Return the hashes of each bucket, which several writers may have written to."""
    found: dict[tuple[Partition, int], bytes] = {}
    for message in messages:
        where = (message.partition, message.bucket)
        if message.hashes:
            found[where] = found.get(where, b"") + message.hashes
    return found


def _matching(schema: TableSchema, spec: Mapping[str, Any]) -> Callable[[Partition], bool]:
    """Return the question whether a partition has the values of `spec`."""
    keys = schema.partition_keys
    for name in spec:
        if name not in keys:
            raise InputError(
                f"cannot overwrite by {name!r}: it is not a partition column{nearest(name, keys)}"
            )
    types = {name: schema.field(name).type for name in spec}
    stored = {
        name: pa.scalar(value, to_arrow(types[name])).as_py()  # 0 as 0.0, a FLOAT of 0.1 as it is rounded
        if types[name].kind in FLOAT_KINDS and isinstance(value, int | float)
        else value
        for name, value in spec.items()
    }
    return has_partition_values(keys, stored)


def _entries(messages: Sequence[CommitMessage], kind: FileKind) -> list[ManifestEntry]:
    return [
        ManifestEntry(
            kind,
            message.partition,
            message.bucket,
            message.total_buckets,
            file,
            message.vectors.get(file.file_name),
        )
        for message in messages
        for file in (message.added if kind is FileKind.ADD else message.deleted)
    ]
