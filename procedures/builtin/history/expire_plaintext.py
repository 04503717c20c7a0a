"""`expire_plaintext`: removal of values of encrypted columns that are still in the clear."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lockgate.errors import CommitConflictError
from lockgate.framework.store import Exposure, Table, check_writable, expire_snapshots, exposures
from lockgate.framework.store.confidential.exposure_text import reasons
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
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

# Others may rewrite the same files concurrently.
_ATTEMPTS = 3


class ExpirePlaintext(Procedure):
    """Encrypts values in the clear, and expires the files that held them.

    Opens files strictly: without a key, it raises KeyMissingError and changes nothing. Each step is complete
    in itself, so the next call finishes the work of a killed one. Rows stay the same, and
    rows written concurrently survive.
    """

    name = "expire_plaintext"
    description = "Remove values of a table's encrypted columns that are still in the clear."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table', or a branch of it"),
        Parameter(
            "older_than",
            "TIMESTAMP",
            None,
            "snapshots that were the newest later than this stay, for queries that still read them "
            "(default: none stays)",
        ),
        Parameter("drop_tags", "BOOLEAN", False, "delete tags that hold values in the clear"),
        Parameter(
            "allow_recent",
            "BOOLEAN",
            False,
            "delete files of less than a day that nothing refers to, because nothing is writing to the table",
        ),
        Parameter("dry_run", "BOOLEAN", False, "only look: what is readable, where, and what would remain"),
    )
    result = (
        ("plain_files_before", "BIGINT"),
        ("files_rewritten", "BIGINT"),
        ("deleted_snapshots_count", "BIGINT"),
        ("deleted_tags_count", "BIGINT"),
        ("deleted_data_files_count", "BIGINT"),
        ("deleted_other_files_count", "BIGINT"),
        ("plain_files_after", "BIGINT"),
        ("remaining", "STRING"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Run all steps, or with `dry_run` count; `remaining` lists what stays in the clear, and what to
        do.
        """
        table = context.table(arguments["table"])
        check_writable(table.schema)
        before = exposures(table)
        if arguments["dry_run"]:
            return [(len(before), None, None, None, None, None, None, _text(table, before))]
        if not before:
            return [(0, 0, 0, 0, 0, 0, 0, None)]
        rewritten = _rewrite(table, context.report)
        done = _Expiry(context.table(arguments["table"]), arguments)
        done.run()
        after = exposures(table)
        return [(len(before), rewritten, *done.counts(), len(after), _text(table, after))]


def _text(table: Table, found: Sequence[Exposure]) -> str | None:
    return "; ".join(reasons(table, found)) or None


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
    arguments: dict[str, Any]
    _tags: Collection[str] = ()
    _snapshots: ExpireResult = field(default_factory=ExpireResult)
    _orphans: OrphanResult = field(default_factory=OrphanResult)
    _released: tuple[int, int] = (0, 0)

    def run(self) -> None:
        found = exposures(self.table)
        if self.arguments["drop_tags"]:
            self._drop_tags(found)
        self._expire(found)
        if any(not each.holders for each in found):
            self._remove_orphans()

    def counts(self) -> tuple[int, ...]:
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
        kept, older_than = max(latest - shown, 1), self.arguments["older_than"]
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
        recent = self.arguments["allow_recent"]
        older_than = now_millis() if recent else None
        self._orphans = remove_orphan_files(self.table, older_than_millis=older_than, allow_recent=recent)
