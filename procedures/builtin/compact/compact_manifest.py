"""`compact_manifest`: the manifests of a table written again, without files that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from lockgate.framework.options import MANIFEST_TARGET_SIZE
from lockgate.framework.store import ManifestFileMeta, check_writable
from lockgate.framework.store.maintenance import merge_manifests, worth_merging
from lockgate.procedures.arguments import parse_options, with_options
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import TableName, TypedProcedure

_OPTIONS = (MANIFEST_TARGET_SIZE.key,)


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    dry_run: Annotated[bool, "only count; counts of new manifests are NULL"] = False
    options: Annotated[str | None, "options of the table for this call: `manifest.target-file-size`"] = None


@dataclass(frozen=True)
class _Row:
    manifests_before: Annotated[int, "manifests of the newest snapshot"]
    manifests_after: int | None
    entries_before: Annotated[int, "additions and deletions in them"]
    entries_after: int | None
    bytes_before: Annotated[int, "their size"]
    bytes_after: int | None
    snapshot_id: Annotated[int | None, "the new snapshot; NULL if none was made"]


class CompactManifest(TypedProcedure[_Arguments, _Row]):
    """Rewrite the manifests of a table into few, without files that are gone.

    Additions of files that were deleted since go with their deletions, and small manifests become one. No
    key is needed. Commits that land concurrently keep their manifests.
    """

    name = "compact_manifest"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Compact; `snapshot_id` is NULL if there was nothing to gain or nothing was done."""
        table = with_options(context.table(arguments.table), parse_options(arguments.options), _OPTIONS)
        check_writable(table.schema)
        snapshot = table.latest_snapshot()
        before = [] if snapshot is None else table.manifests.manifests(snapshot)
        if not worth_merging(before):
            return [_row(before, before, None)]
        if arguments.dry_run:
            return [_row(before, None, None)]
        made = merge_manifests(table)
        return [_row(before, table.manifests.manifests(made), made.id)]


def _row(
    before: Sequence[ManifestFileMeta], after: Sequence[ManifestFileMeta] | None, snapshot_id: int | None
) -> _Row:
    manifests, entries, size = _counts(before)
    new = (None, None, None) if after is None else _counts(after)
    return _Row(manifests, new[0], entries, new[1], size, new[2], snapshot_id)


def _counts(metas: Sequence[ManifestFileMeta]) -> tuple[int, int, int]:
    entries = sum(meta.num_added_files + meta.num_deleted_files for meta in metas)
    return len(metas), entries, sum(meta.file_size for meta in metas)
