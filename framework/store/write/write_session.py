"""A write by an engine's tasks: begun, written by tasks into files, then committed or aborted as a whole.

Tasks get a `WritePlan`; what they did comes back as `TaskResults`.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.errors import UnsupportedError
from lockgate.framework.options import INPUT_CHANGELOG
from lockgate.framework.store.commit.base_snapshot import BaseSnapshot
from lockgate.framework.store.commit.commit_request import CommitRequest
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.commit.task_keys import asked_of_tasks
from lockgate.framework.store.confidential.column_visibility import require_write_keys
from lockgate.framework.store.formats.parquet_output import empty_footer
from lockgate.framework.store.grants import grant
from lockgate.framework.store.merge.merge_options import merge_plan
from lockgate.framework.store.metadata.data_folders import data_files_in
from lockgate.framework.store.rows.file_statistics import StatsMode, stats_modes
from lockgate.framework.store.rows.row_conversion import file_field_ids, file_schema
from lockgate.framework.store.rows.row_kinds import KindPolicy, kind_policy
from lockgate.framework.store.schema.written_formats import PARQUET, WrittenFormat, written_format
from lockgate.framework.store.write.abort import live_names
from lockgate.framework.store.write.key_places import KeyPlaces
from lockgate.framework.store.write.sent_keys import (
    INLINE_BYTES,
    has_key_files,
    keys_folder,
    remove_keys,
    with_sent_keys,
)
from lockgate.framework.store.write.task_results import TaskResults, rewritten_files, row_deletions
from lockgate.framework.store.write.write import check_rows_writable

if TYPE_CHECKING:
    from lockgate.framework.access import Action
    from lockgate.framework.plugins import TaskKeys
    from lockgate.framework.store.commit.commit_request import Overwrite, StreamEpoch
    from lockgate.framework.store.merge.merge_plan import MergePlan
    from lockgate.framework.store.metadata.snapshot import Snapshot
    from lockgate.framework.store.tables.table import Table

# EXPLAIN of an INSERT begins a write that nobody ends.
_REMEMBERED = 1000

# Ways to write that replace partitions.
_PARTITIONS_REPLACED = frozenset({"overwrite", "dynamic"})

# Ways to write that leave the table as it is if there are no rows to write.
_NOTHING_WITHOUT_FILES = frozenset({"append", "delete", "dynamic", "rewrite"})


@dataclass(frozen=True)
class WriteOptions:
    """How a write changes its table.

    `mode` is one of `append`, `delete` (rows by keys), `rewrite` (of files that a statement has read),
    `truncate` (all rows are replaced), `dynamic` (partitions that get rows are) and `overwrite` (those that
    its commit names are). `actions` need rights. `makes_table`: it fills a table that is made or replaced.
    """

    mode: str
    actions: frozenset[Action] = frozenset()
    makes_table: bool = False

    @property
    def replaces_all(self) -> bool:
        """Tell whether all rows of the table are replaced, or the table itself."""
        return self.mode == "truncate" or self.makes_table

    @property
    def adds(self) -> bool:
        """Tell whether rows come, or go by their keys; a commit calls all else an overwrite."""
        return self.mode in ("append", "delete")


@dataclass(frozen=True)
class WritePlan:
    """What tasks need to know to write files as the store does, besides the table's schema and options.

    `statistics` are kept of the columns that they name. `records`: rows are also stored as they come, in a
    changelog. `parquet_footer` is that of a Parquet file of the table without rows; None: files are of ORC.
    `keys` are to be collected for the index database: messages hold up to `keys_inline_bytes` of them, others
    are left in files of `keys_folder`.
    """

    first_sequence: int
    merge: MergePlan | None
    kinds: KindPolicy | None
    statistics: Mapping[str, StatsMode]
    records: bool
    format: WrittenFormat
    parquet_footer: bytes | None
    keys: TaskKeys | None
    keys_folder: str
    keys_inline_bytes: int


@dataclass(frozen=True)
class WriteSession:
    """A write of `table`, as it was when the write began.

    The files have the schema of that table, not that of one made later under its name.
    """

    table: Table
    options: WriteOptions
    places: KeyPlaces
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @classmethod
    def begin(cls, table: Table, options: WriteOptions) -> WriteSession:
        """Begin a write; raises if the table does not take it, rights or keys are missing."""
        schema = table.schema
        check_rows_writable(schema)
        if schema.moves_keys and options.mode in _PARTITIONS_REPLACED and not options.replaces_all:
            raise UnsupportedError(
                f"partitions of {table.identifier} cannot be overwritten, because its keys move between them "
                "(the primary key lacks partition columns): overwrite all of it, or use DELETE and INSERT"
            )
        require_write_keys(table)
        for action in sorted(options.actions):
            grant(table, action)
        return cls(table, options, KeyPlaces.of(table, replace_all=options.replaces_all))

    @classmethod
    def resume(cls, table: Table, options: WriteOptions, write_id: str) -> WriteSession:
        """Return a write of a table as it is now, of whose beginning only the id is known."""
        return cls(table, options, KeyPlaces(table), write_id)

    def plan(self) -> WritePlan:
        """Return what tasks need to know."""
        schema = self.table.schema
        merge = merge_plan(schema)
        written = written_format(schema.table_options)
        footer = None
        if written.name == PARQUET:
            footer = empty_footer(file_schema(schema), file_field_ids(schema))
        return WritePlan(
            first_sequence=self._first_sequence(),
            merge=merge,
            kinds=None if merge is None else kind_policy(schema),
            statistics=stats_modes(schema),
            # An overwrite writes no changelog, as in Paimon.
            records=schema.changelog_producer == INPUT_CHANGELOG
            and self.options.adds
            and not self.options.makes_table,
            format=written,
            parquet_footer=footer,
            keys=asked_of_tasks(self.table),
            keys_folder=keys_folder(self.table),
            keys_inline_bytes=INLINE_BYTES,
        )

    def _first_sequence(self) -> int:
        """Return a number above those of all live files; tables without a key do not compare them."""
        if not self.table.schema.primary_keys:
            return 0
        live = self.table.manifests.live_files(self.table.latest_snapshot())
        return max((entry.file.max_sequence_number for entry in live), default=-1) + 1

    def complete(self, results: TaskResults) -> list[CommitMessage]:
        """Return the messages on the new files, with what the commit needs to know of their keys."""
        messages = self.places.completed(with_sent_keys(self.table, self.id, results.files))
        if has_key_files(results.files):
            remove_keys(self.table, self.id)
        return messages

    def commit(
        self,
        results: TaskResults,
        *,
        epoch: StreamEpoch | None = None,
        base: BaseSnapshot | None = None,
        partitions: Overwrite | None = None,
    ) -> Snapshot | None:
        """Make all that tasks did visible at once; None if that is nothing.

        `partitions` are those that a write of mode `overwrite` replaces; the rest is as in `CommitRequest`.
        If the epoch was committed before, the new files are deleted. Raises CommitConflictError if others
        got in the way; the files stay then (see `abort`).
        """
        options, table = self.options, self.table
        messages = self.complete(results)
        read = base or BaseSnapshot(0)
        marked, emptied = row_deletions(table, results, read)
        rewritten = rewritten_files(table, results, read)
        changes = [*messages, *emptied, *rewritten]
        if not changes and not marked and epoch is None and options.mode in _NOTHING_WITHOUT_FILES:
            return None
        if options.mode == "truncate":
            partitions = {}
        elif options.mode == "dynamic":
            partitions = {message.partition for message in (*messages, *emptied)}.__contains__
        before = table.latest_snapshot()
        snapshot = table.commit(
            CommitRequest(changes, "APPEND" if options.adds else "OVERWRITE", epoch, base, partitions, marked)
        )
        if epoch is not None and before is not None and snapshot.id <= before.id:
            # An earlier run has committed it: the table has the files of that run.
            table.abort([*messages, *emptied])
        return snapshot

    def abort(self, results: TaskResults) -> None:
        """Delete every file of a write that came to nothing.

        That includes files of tasks that ended while the job was failing, whose results never came. A task
        that still runs must delete its own.
        """
        table = self.table
        table.abort([file.message for file in results.files])
        live = live_names(table)
        own = tuple(f"{kind}-{self.id}-" for kind in ("data", "changelog"))
        for file in list(data_files_in(table)):
            if file.name.startswith(own) and file.name not in live:
                table.file_system.delete(file.path)
        remove_keys(table, self.id)


class WriteSessions:
    """By their ids: the writes that have begun and neither committed nor aborted.

    The oldest are forgotten beyond a thousand. Their commit loads the table and checks that it still is the
    one that the query was analysed with, which refuses more than it must and writes nothing wrong.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, WriteSession] = OrderedDict()

    def add(self, session: WriteSession) -> None:
        """Remember a write that has begun."""
        with self._lock:
            self._sessions[session.id] = session
            while len(self._sessions) > _REMEMBERED:
                self._sessions.popitem(last=False)

    def get(self, write_id: str) -> WriteSession | None:
        """Return a write that has begun, None if it is not known (any more)."""
        with self._lock:
            return self._sessions.get(write_id)

    def end(self, write_id: str) -> WriteSession | None:
        """Return a write that ends, None if it is not known (any more)."""
        with self._lock:
            return self._sessions.pop(write_id, None)

    def __len__(self) -> int:
        return len(self._sessions)
