"""`compact_manifest`: the manifests of a table written again, without files that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockgate.framework.options import MANIFEST_TARGET_SIZE
from lockgate.framework.store import CommitKind, ManifestFileMeta, check_writable, commit_messages
from lockgate.framework.store.manifests.manifest_merge import worth_merging
from lockgate.procedures.arguments import OPTIONS, parse_options, with_options
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_OPTIONS = (MANIFEST_TARGET_SIZE.key,)


class CompactManifest(Procedure):
    """Writes all manifests of a table again in a COMPACT snapshot; data files stay as they are.

    Additions of files that were deleted since go with their deletions, and small manifests become one. No
    key is needed. Commits that land concurrently keep their manifests.
    """

    name = "compact_manifest"
    description = "Rewrite the manifests of a table into few, without files that are gone."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("dry_run", "BOOLEAN", False, "only count; counts of new manifests are NULL"),
        Parameter("options", "STRING", None, OPTIONS),
    )
    result = (
        ("manifests_before", "BIGINT"),
        ("manifests_after", "BIGINT"),
        ("entries_before", "BIGINT"),
        ("entries_after", "BIGINT"),
        ("bytes_before", "BIGINT"),
        ("bytes_after", "BIGINT"),
        ("snapshot_id", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Compact; `snapshot_id` is NULL if there was nothing to gain or nothing was done."""
        table = with_options(context.table(arguments["table"]), parse_options(arguments["options"]), _OPTIONS)
        check_writable(table.schema)
        snapshot = table.latest_snapshot()
        before = [] if snapshot is None else table.manifests.manifests(snapshot)
        if not worth_merging(before):
            return [_row(before, before, None)]
        if arguments["dry_run"]:
            return [_row(before, None, None)]
        made = commit_messages(table, [], kind=CommitKind.COMPACT, merges_manifests=True)
        return [_row(before, table.manifests.manifests(made), made.id)]


def _row(
    before: Sequence[ManifestFileMeta], after: Sequence[ManifestFileMeta] | None, snapshot_id: int | None
) -> tuple[Any, ...]:
    counts = [None] * 3 if after is None else _counts(after)
    pairs = zip(_counts(before), counts, strict=True)
    return (*(number for pair in pairs for number in pair), snapshot_id)


def _counts(metas: Sequence[ManifestFileMeta]) -> list[int]:
    entries = sum(meta.num_added_files + meta.num_deleted_files for meta in metas)
    return [len(metas), entries, sum(meta.file_size for meta in metas)]
