"""`reset_consumer` and `clear_consumers`: change where consumers continue, or forget them."""

from __future__ import annotations

from typing import Any

from lockgate.errors import InputError, NotFoundError, nearest
from lockgate.framework.access import Action
from lockgate.framework.store import grant
from lockgate.procedures.arguments import parse_pattern
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_TABLE = Parameter("table", "STRING", doc="the table, 'database.table'")


class ResetConsumer(Procedure):
    """Sets the snapshot that a consumer needs next, or forgets the consumer."""

    name = "reset_consumer"
    needs_all_rows = False
    description = "Set the snapshot that a consumer of a table needs next, or forget the consumer."
    parameters = (
        _TABLE,
        Parameter("consumer_id", "STRING", doc="the name of the consumer"),
        Parameter("next_snapshot_id", "BIGINT", None, "the snapshot (default: forget the consumer)"),
        Parameter("dry_run", "BOOLEAN", False, "only check the names"),
    )
    result = (
        ("previous_snapshot_id", "BIGINT"),
        ("next_snapshot_id", "BIGINT"),
        ("deleted_consumers_count", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Reset; NotFoundError if a consumer to be forgotten is not known."""
        table = context.table(arguments["table"])
        grant(table, Action.ALTER)
        name, wanted = arguments["consumer_id"], arguments["next_snapshot_id"]
        consumers = table.consumers()
        if wanted is None and name not in consumers:
            hint = nearest(name, consumers) or "; the table has none"
            raise NotFoundError(f"{table.identifier} has no consumer {name!r}{hint}")
        if wanted is not None and wanted < 1:
            raise InputError(f"next_snapshot_id cannot be {wanted}: snapshots count from 1")
        table.consumer_files.path(name)
        if not arguments["dry_run"]:
            if wanted is None:
                table.delete_consumer(name)
            else:
                table.record_consumer(name, wanted)
        return [(consumers.get(name), wanted, int(wanted is None))]


class ClearConsumers(Procedure):
    """Forgets the consumers whose names match; expiry no longer spares what they needed."""

    name = "clear_consumers"
    needs_all_rows = False
    description = "Forget consumers of a table."
    parameters = (
        _TABLE,
        Parameter("including_consumers", "STRING", None, "pattern of names to forget (default: all)"),
        Parameter("excluding_consumers", "STRING", None, "pattern of names to keep (default: none)"),
        Parameter("dry_run", "BOOLEAN", False, "only count"),
    )
    result = (("deleted_consumers_count", "BIGINT"), ("remaining_consumers_count", "BIGINT"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Clear; a name is kept if both patterns match it, in whole."""
        table = context.table(arguments["table"])
        grant(table, Action.ALTER)
        wanted = parse_pattern("including_consumers", arguments["including_consumers"], ".*")
        kept = parse_pattern("excluding_consumers", arguments["excluding_consumers"], "(?!)")
        consumers = table.consumers()
        gone = [name for name in consumers if wanted.fullmatch(name) and not kept.fullmatch(name)]
        if not arguments["dry_run"]:
            for name in gone:
                table.delete_consumer(name)
        return [(len(gone), len(consumers) - len(gone))]
