"""Replacement of a table in its place: new columns, keys, options and rows in one commit.

Files of the new rows are written into the table's folder under a schema that nobody has seen yet; `publish`
stores it and commits one OVERWRITE snapshot, which replaces all rows and makes the schema hold at once (see
`generations`). Older snapshots stay, with their own columns. Source: Paimon's `Catalog.replaceTable`, which
truncates first.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lockgate.errors import CommitConflictError, LockgateError
from lockgate.framework.plugins import TableChanged, publish
from lockgate.framework.store.confidential.named_keys import check_named_keys
from lockgate.framework.store.confidential.stored_wrapped_keys import check_wrapped_keys
from lockgate.framework.store.ddl.validation import first_schema
from lockgate.framework.store.metadata.generations import GENERATION, generation_of, placed_after
from lockgate.framework.store.schema.nested_fields import numbered
from lockgate.framework.store.schema.schema import Schema, TableSchema, now_millis
from lockgate.framework.store.tables.table import Table

if TYPE_CHECKING:
    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.metadata.snapshot import Snapshot


@dataclass(frozen=True, eq=False, repr=False)
class Replacement(Table):
    """A table as it will be, over the table that it replaces; files written to it wait for `publish`."""

    replaced: Table
    messages: list[CommitMessage] = field(default_factory=list)

    @classmethod
    def of(cls, replaced: Table, schema: TableSchema) -> Replacement:
        """Return what is to replace a table, as a schema that is not stored yet says."""
        context = replace(replaced.context, keys=replaced.keys)
        return cls(replaced.identifier, replaced.location, schema, context, replaced)

    def hold(self, messages: Sequence[CommitMessage]) -> None:
        """Keep what was written until it is published."""
        self.messages.extend(messages)

    def publish(self, *, base_snapshot_id: int | None = None, base_commit_id: str | None = None) -> Snapshot:
        """Put the new table in the place of the old one; others see either, and never anything between.

        `base_snapshot_id` and `base_commit_id` as for `commit`, if the rows were computed from the old table.
        Raises CommitConflictError if that was altered, replaced, or its rows changed concurrently; then
        nothing has changed, and the files stay for `discard`.
        """
        from lockgate.framework.store.commit.base_snapshot import BaseSnapshot
        from lockgate.framework.store.commit.commit import commit_messages
        from lockgate.framework.store.commit.commit_request import InnerCommit
        from lockgate.framework.store.write.new_rows import show_new_rows, shows_new_rows

        try:
            self.schema_files.create(self.schema)
        except FileExistsError:
            raise CommitConflictError(
                f"table {self.identifier} was altered or replaced concurrently; repeat the statement"
            ) from None
        try:
            base = None if base_snapshot_id is None else BaseSnapshot(base_snapshot_id, base_commit_id)
            snapshot = commit_messages(
                self, InnerCommit(self.messages, "OVERWRITE", base=base, overwrite={}, replaces=True)
            )
        except BaseException:
            self._withdraw_schema()
            raise
        publish(TableChanged(table=self.location, change="replaced", schema_id=self.schema.id))
        if shows_new_rows(self.schema):
            show_new_rows(self)
        return snapshot

    def discard(self) -> None:
        """Delete the files of a replacement that came to nothing."""
        self.abort(self.messages)

    def _withdraw_schema(self) -> None:
        """Give the table that stays a newest schema again, for engines that look at no other."""
        with suppress(LockgateError, OSError):
            latest = self.latest_snapshot()
            generation = 0 if latest is None else generation_of(self.schema_of(latest.schema_id))
            present = self.replaced.schema
            if generation == generation_of(present):
                again = replace(present, id=present.id + 1, time_millis=now_millis())
                self.schema_files.create(placed_after(self.schema_files, again, present))


def replacement(table: Table, schema: Schema) -> Replacement:
    """Return what is to replace `table`, a table that Python and Spark can write to before it is there.

    Raises what `validation.first_schema` does.
    """
    first = first_schema(schema)
    check_wrapped_keys(first)
    check_named_keys(first, table.keys)
    stored = [table.schema_files.load(schema_id) for schema_id in table.schema_files.ids()[-1:]]
    newest = max((table.schema, *stored), key=lambda one: one.id)
    highest, fields = max(table.schema.highest_field_id, newest.highest_field_id), []
    for each in first.fields:
        own = highest + 1
        kind, highest = numbered(each.type, own)
        fields.append(replace(each, id=own, type=kind))
    own_id = newest.id + 1
    return Replacement.of(
        table,
        replace(
            first,
            id=own_id,
            fields=tuple(fields),
            highest_field_id=highest,
            options={**first.options, GENERATION: str(own_id)},
            table_id=table.schema.table_id,
        ),
    )
