"""`expire_snapshots`: removal of old snapshots, with the files that only they need."""

from __future__ import annotations

from typing import Any

from lockgate.framework.store import expire_snapshots
from lockgate.framework.types import micros_of
from lockgate.procedures.arguments import OPTIONS, parse_options, with_options
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

# Options that may differ for one call: what is retained.
_OPTIONS = (
    "snapshot.num-retained.min",
    "snapshot.num-retained.max",
    "snapshot.time-retained",
    "snapshot.expire.limit",
    "consumer.expiration-time",
)


class ExpireSnapshots(Procedure):
    """Removes old snapshots and the files that no snapshot, tag, branch or consumer needs any more.

    Data is only deleted, never read, so no key is needed. If killed halfway, it can be called again.
    """

    name = "expire_snapshots"
    description = "Remove old snapshots of a table and the files that only they need."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("retain_max", "INT", None, "number of snapshots above which even young ones are removed"),
        Parameter("retain_min", "INT", None, "snapshots that stay whatever their age"),
        Parameter("older_than", "TIMESTAMP", None, "snapshots older than this may go"),
        Parameter("max_deletes", "INT", None, "most snapshots removed by this call"),
        Parameter("options", "STRING", None, OPTIONS),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be removed"),
    )
    result = (
        ("deleted_snapshots_count", "BIGINT"),
        ("deleted_data_files_count", "BIGINT"),
        ("deleted_manifests_count", "BIGINT"),
        ("deleted_bytes", "BIGINT"),
        ("earliest_snapshot_id", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Expire; missing arguments come from the table's options `snapshot.*`."""
        table = with_options(context.table(arguments["table"]), parse_options(arguments["options"]), _OPTIONS)
        older_than = arguments["older_than"]
        done = expire_snapshots(
            table,
            retain_max=arguments["retain_max"],
            retain_min=arguments["retain_min"],
            older_than_millis=None if older_than is None else micros_of(older_than) // 1000,
            max_deletes=arguments["max_deletes"],
            dry_run=arguments["dry_run"],
        )
        return [(done.snapshots, done.data_files, done.manifests, done.bytes, done.earliest_snapshot)]
