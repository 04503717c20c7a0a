"""Rows whose keys another commit has put into other buckets, moved into those buckets.

Two writers of a table with dynamic buckets may give one new key to two buckets. The second commit notices
before anything is visible; its rows then move to the buckets that the keys have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lockgate.framework import options as table_options
from lockgate.framework.store.commit.hash_index import BucketsTakenError
from lockgate.framework.store.merge.merge import VALUE_KIND
from lockgate.framework.store.scan.read import FileReader
from lockgate.framework.store.write.abort import abort_messages
from lockgate.framework.store.write.write import write_files

if TYPE_CHECKING:
    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot


def commit_reassigning(
    table: TableHandle,
    messages: Sequence[CommitMessage],
    commit: Callable[[Sequence[CommitMessage]], Snapshot],
) -> Snapshot:
    """Commit, after rows have moved to the buckets of their keys where others changed those.

    Rows that move are in memory as a whole. If it fails, files of `messages` are left for the caller.
    """
    current = messages
    try:
        for _ in range(table.options.get_option(table_options.COMMIT_MAX_RETRIES)):
            try:
                snapshot = commit(current)
            except BucketsTakenError:
                current = _moved(table, messages, current)
                continue
            if current is not messages:
                abort_messages(table, messages)
            return snapshot
        return commit(current)
    except BaseException:
        if current is not messages:
            abort_messages(table, current)
        raise


def _moved(
    table: TableHandle, first: Sequence[CommitMessage], current: Sequence[CommitMessage]
) -> list[CommitMessage]:
    """Write the rows of messages again, by the newest index; what was written for that before goes."""
    names = [*table.schema.field_names, VALUE_KIND]
    reader = FileReader(table, table.schema, strict=True)
    # Where there is a changelog, it has the rows as they came.
    files = [(message, file) for message in first for file in message.changelog or message.added]
    # Of rows of one key, which lie in one bucket, the later has the greater number.
    files.sort(key=lambda each: each[1].min_sequence_number)
    parts = [
        reader.whole(
            table.paths.data_file(message.partition, message.bucket, file),
            file,
            names,
            dict(zip(table.schema.partition_keys, message.partition, strict=True)),
        )
        for message, file in files
    ]
    rows = pa.concat_tables(parts)
    moved = write_files(table, rows.drop_columns(VALUE_KIND), kinds=rows[VALUE_KIND], stored=True)
    if current is not first:
        abort_messages(table, current)
    return moved
