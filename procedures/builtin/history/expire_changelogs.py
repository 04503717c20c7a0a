"""`expire_changelogs`: removal of changes that were kept longer than their snapshots."""

from __future__ import annotations

from typing import Any

from lockgate.errors import InputError
from lockgate.framework.store.maintenance import expire_changelogs
from lockgate.framework.types import micros_of
from lockgate.procedures.arguments import OPTIONS, parse_options, with_options
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

# Options that may differ for one call: what is retained.
_OPTIONS = (
    "changelog.num-retained.min",
    "changelog.num-retained.max",
    "changelog.time-retained",
    "snapshot.expire.limit",
    "consumer.expiration-time",
)
_LIMITS = ("retain_max", "retain_min", "older_than", "max_deletes")


class ExpireChangelogs(Procedure):
    """Removes changelogs that outlived their snapshots, and the files that nothing else needs.

    Data is only deleted, never read, so no key is needed. If killed halfway, it can be called again.
    """

    name = "expire_changelogs"
    description = "Remove old changes of a table that were kept longer than their snapshots."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("retain_max", "INT", None, "number of commits above which even young changes are removed"),
        Parameter("retain_min", "INT", None, "commits whose changes stay whatever their age"),
        Parameter("older_than", "TIMESTAMP", None, "changes committed before this may go"),
        Parameter("max_deletes", "INT", None, "most changelogs removed by this call"),
        Parameter("delete_all", "BOOLEAN", False, "remove all, also those that consumers need"),
        Parameter("options", "STRING", None, OPTIONS),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be removed"),
    )
    result = (
        ("deleted_changelogs_count", "BIGINT"),
        ("deleted_data_files_count", "BIGINT"),
        ("deleted_manifests_count", "BIGINT"),
        ("deleted_bytes", "BIGINT"),
        ("earliest_changelog_id", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Expire; missing arguments come from the table's options `changelog.*`, or else `snapshot.*`."""
        table = with_options(context.table(arguments["table"]), parse_options(arguments["options"]), _OPTIONS)
        given = [name for name in _LIMITS if arguments[name] is not None]
        if arguments["delete_all"] and given:
            raise InputError(f"delete_all and {given[0]} contradict each other: give one of them")
        older_than = arguments["older_than"]
        done = expire_changelogs(
            table,
            retain_max=arguments["retain_max"],
            retain_min=arguments["retain_min"],
            older_than_millis=None if older_than is None else micros_of(older_than) // 1000,
            max_deletes=arguments["max_deletes"],
            delete_all=arguments["delete_all"],
            dry_run=arguments["dry_run"],
        )
        return [(done.changelogs, done.data_files, done.manifests, done.bytes, done.earliest)]
