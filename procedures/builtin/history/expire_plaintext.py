"""`expire_plaintext`: removal of values of encrypted columns that are still in the clear."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated

from lockgate.errors import CommitConflictError
from lockgate.framework.store import (
    Exposure,
    Table,
    check_writable,
    expire_snapshots,
    exposure_reasons,
    exposures,
)
from lockgate.framework.store.maintenance import (
    CompactRequest,
    ExpireResult,
    OrphanResult,
    compact,
    expire_changelogs,
    remove_orphan_files,
)
from lockgate.framework.store.schema.schema import now_millis
from lockgate.framework.types import micros_of
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import TypedProcedure

# Others may rewrite the same files concurrently.
_ATTEMPTS = 3


@dataclass(frozen=True)
class _Arguments:
    table: Annotated[str, "the table, or a branch of it"]
    older_than: Annotated[
        datetime.datetime | None,
        "keep snapshots that were still the newest after this time; without it none is kept",
    ] = None
    drop_tags: Annotated[bool, "delete tags that hold values in the clear"] = False
    allow_recent: Annotated[
        bool, "also delete unreferenced files younger than a day, because nothing is writing to the table"
    ] = False
    dry_run: Annotated[bool, "only inspect; the counts of removals are NULL"] = False


@dataclass(frozen=True)
class _Row:
    plain_files_before: Annotated[int, "files in the folder that show values"]
    files_rewritten: Annotated[int | None, "data files of the newest snapshot"]
    deleted_snapshots_count: Annotated[int | None, "expired snapshots, deleted tags"]
    deleted_tags_count: int | None
    deleted_data_files_count: Annotated[
        int | None, "data files with their indexes; manifests and other metadata"
    ]
    deleted_other_files_count: int | None
    plain_files_after: Annotated[int | None, "files in the folder that show values after the call"]
    remaining: Annotated[
        str | None,
        "what still needs files with values, how many, and what to do; NULL if there are none",
    ]


class ExpirePlaintext(TypedProcedure[_Arguments, _Row]):
    """Remove values of a table's encrypted columns that are still in the clear.

    Opens files strictly: without a key, it raises KeyMissingError and changes nothing. Each step is complete
    in itself, so the next call finishes the work of a killed one. Rows stay the same, and
    rows written concurrently survive.
    """

    name = "expire_plaintext"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Run all steps, or with `dry_run` count; `remaining` lists what stays in the clear, and what to
        do.
        """
        table = context.table(arguments.table)
        check_writable(table.schema)
        before = exposures(table)
        if arguments.dry_run:
            return [_Row(len(before), None, None, None, None, None, None, _text(table, before))]
        if not before:
            return [_Row(0, 0, 0, 0, 0, 0, 0, None)]
        rewritten = _rewrite(table, context.report)
        done = _Expiry(context.table(arguments.table), arguments)
        done.run()
        after = exposures(table)
        return [_Row(len(before), rewritten, *done.counts(), len(after), _text(table, after))]


def _text(table: Table, found: Sequence[Exposure]) -> str | None:
    return "; ".join(exposure_reasons(table, found)) or None


def _rewrite(table: Table, report: Callable[[str], None]) -> int:
    """Encrypt the newest snapshot's files; return how many were rewritten."""
    request = CompactRequest(full=False, report=report)
    for _ in range(_ATTEMPTS - 1):
        with suppress(CommitConflictError):
            return compact(table, request).files_rewritten
    return compact(table, request).files_rewritten


@dataclass
class _Expiry:
    """The removals that follow once the newest snapshot shows nothing."""

    table: Table
    arguments: _Arguments
    _tags: Collection[str] = ()
    _snapshots: ExpireResult = field(default_factory=ExpireResult)
    _orphans: OrphanResult = field(default_factory=OrphanResult)
    _released: tuple[int, int] = (0, 0)

    def run(self) -> None:
        found = exposures(self.table)
        if self.arguments.drop_tags:
            self._drop_tags(found)
        self._expire(found)
        if any(not each.holders for each in found):
            self._remove_orphans()

    def counts(self) -> tuple[int, int, int, int]:
        data, others = self._released
        return (
            self._snapshots.snapshots,
            len(self._tags),
            self._snapshots.data_files + self._orphans.data_files + data,
            self._snapshots.manifests + self._orphans.other_files + others,
        )

    @property
    def _branch(self) -> str | None:
        return self.table.identifier.branch

    def _drop_tags(self, found: Sequence[Exposure]) -> None:
        holders = [holder for each in found for holder in each.holders if holder.branch == self._branch]
        self._tags = sorted({holder.tag for holder in holders if holder.tag is not None})
        for name in self._tags:
            released = self.table.delete_tag(name)
            self._released = (
                self._released[0] + released.data_files,
                self._released[1] + released.manifests,
            )

    def _expire(self, found: Sequence[Exposure]) -> None:
        """Expire up to the last snapshot that shows anything, the newest excepted."""
        holders = [holder for each in found for holder in each.holders if holder.branch == self._branch]
        shown = max((holder.snapshot for holder in holders if holder.snapshot is not None), default=0)
        latest = self.table.snapshot_files.latest_id() or 0
        if not shown:
            return
        kept, older_than = max(latest - shown, 1), self.arguments.older_than
        self._snapshots = expire_snapshots(
            self.table,
            retain_min=kept,
            retain_max=kept if older_than is None else latest,
            older_than_millis=None if older_than is None else micros_of(older_than) // 1000,
            max_deletes=latest,
        )
        # Snapshots that went may live on as changelogs, which hold the same values.
        expire_changelogs(
            self.table,
            retain_min=1,
            retain_max=1 if older_than is None else latest,
            older_than_millis=None if older_than is None else micros_of(older_than) // 1000,
            max_deletes=latest,
        )

    def _remove_orphans(self) -> None:
        recent = self.arguments.allow_recent
        older_than = now_millis() if recent else None
        self._orphans = remove_orphan_files(self.table, older_than_millis=older_than, allow_recent=recent)
