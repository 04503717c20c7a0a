"""Conflicts between changes and a state of the table that their writer did not know.

Source: Paimon's `ConflictDetection`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.errors import CommitConflictError
from lockgate.framework.options import ORC_ENCRYPT, ORC_MASK
from lockgate.framework.store.manifests.manifest import FileKind, ManifestEntry
from lockgate.framework.store.metadata.generations import generation_of
from lockgate.framework.store.pruning.split import key_order
from lockgate.framework.store.schema.schema import TableSchema

if TYPE_CHECKING:
    from lockgate.framework.store.commit.vector_changes import RowDeletions


def check_files(base: Collection[ManifestEntry], changes: Sequence[ManifestEntry], *, has_key: bool) -> None:
    """Raise CommitConflictError if `changes` cannot be applied to the live files `base`.

    Deleted files must be there, added ones must not, and compacted files of a key table must not overlap
    others of their level. `base` needs to hold the files of the changed partitions only.
    """
    live = {entry.identifier: entry for entry in base}
    for change in changes:
        if change.kind is FileKind.DELETE:
            if live.pop(change.identifier, None) is None:
                raise CommitConflictError(
                    f"file {change.file.file_name} of bucket {change.bucket} is gone: another commit "
                    "replaced it; read the table again and repeat the change"
                )
        elif change.identifier in live:
            raise CommitConflictError(f"file {change.file.file_name} is already in the table")
        else:
            live[change.identifier] = change
    if has_key and any(change.kind is FileKind.ADD and change.file.level > 0 for change in changes):
        _check_levels(live.values(), {(change.partition, change.bucket) for change in changes})


def check_marked(base: Collection[ManifestEntry], marked: Sequence[RowDeletions]) -> None:
    """Raise CommitConflictError if rows are deleted of a file that is not live any more."""
    live = {entry.identifier for entry in base} if marked else set()
    for each in marked:
        if each.entry.identifier not in live:
            raise CommitConflictError(
                f"file {each.entry.file.file_name}, from which rows were deleted, is gone: another commit "
                "replaced it; repeat the statement"
            )


def _check_levels(entries: Iterable[ManifestEntry], buckets: set[tuple[Any, ...]]) -> None:
    """Raise if key ranges overlap within a level above 0, because readers do not merge there."""
    levels: dict[tuple[Any, ...], list[ManifestEntry]] = {}
    for entry in entries:
        if entry.file.level > 0 and (entry.partition, entry.bucket) in buckets:
            levels.setdefault((entry.partition, entry.bucket, entry.file.level), []).append(entry)
    for (_, bucket, level), members in levels.items():
        members.sort(key=lambda entry: key_order(entry.file.min_key))
        for before, after in itertools.pairwise(members):
            if key_order(before.file.max_key) >= key_order(after.file.min_key):
                raise CommitConflictError(
                    f"files {before.file.file_name} and {after.file.file_name} overlap in level {level} of "
                    f"bucket {bucket}: two compactions ran at once; repeat the later one"
                )


def check_buckets(base: Iterable[ManifestEntry], changes: Iterable[ManifestEntry]) -> None:
    """Raise CommitConflictError if a partition would hold files of different bucket counts."""
    counts = {entry.partition: entry.total_buckets for entry in base if entry.total_buckets > 0}
    for change in changes:
        count = counts.setdefault(change.partition, change.total_buckets)
        if change.kind is FileKind.ADD and count > 0 and change.total_buckets not in (count, -1):
            raise CommitConflictError(
                f"partition {change.partition!r} has {count} buckets, the new files were written for "
                f"{change.total_buckets}; overwrite the partition to change its buckets, or set the table's "
                f"option 'bucket' to {count}"
            )


def check_rewritten(written: TableSchema, changes: Sequence[ManifestEntry]) -> None:
    """Raise CommitConflictError if files are written again by a schema that is older than theirs.

    A writer that does not know all columns of a file loses the values of those that were added.
    """
    if not any(change.kind is FileKind.ADD for change in changes):
        return
    for change in changes:
        if change.kind is FileKind.DELETE and change.file.schema_id > written.id:
            raise CommitConflictError(
                f"file {change.file.file_name} was written after the table was altered, but its "
                "replacement lacks the new columns; read the table again and repeat the change"
            )


def check_schema(written: TableSchema, latest: TableSchema, *, overwrite: bool) -> None:
    """Raise CommitConflictError if the table changed so that files written for `written` no longer fit."""
    if written.id == latest.id:
        return
    if generation_of(written) != generation_of(latest):
        raise CommitConflictError("the table has been replaced by another; write again")
    if written.bucket_count != latest.bucket_count and not overwrite:
        raise CommitConflictError(
            f"the table was changed from {written.bucket_count} to {latest.bucket_count} buckets; write again"
        )
    for option in (ORC_ENCRYPT, ORC_MASK):
        if written.table_options.get_option(option) != latest.table_options.get_option(option):
            raise CommitConflictError(f"option {option.key!r} of the table was changed; write again")
