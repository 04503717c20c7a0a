"""`reset_consumer` and `clear_consumers`: change where consumers continue, or forget them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError, NotFoundError, nearest
from lockgate.framework.access import Action
from lockgate.framework.store import grant
from lockgate.procedures.arguments import parse_pattern
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, TableName, TypedProcedure


@dataclass(frozen=True)
class _ResetConsumerArguments:
    table: TableName
    consumer_id: Annotated[str, "the name"]
    next_snapshot_id: Annotated[int | None, "the snapshot (default: forget the consumer)"] = None
    dry_run: Annotated[bool, "only check the names"] = False


@dataclass(frozen=True)
class _ResetConsumerRow:
    previous_snapshot_id: Annotated[int | None, "the snapshot it needed before; NULL if it was not known"]
    next_snapshot_id: Annotated[int | None, "the snapshot it needs now"]
    deleted_consumers_count: Annotated[int, "1 if it was forgotten"]


class ResetConsumer(TypedProcedure[_ResetConsumerArguments, _ResetConsumerRow]):
    """Set the snapshot that a consumer of a table needs next, or forget the consumer."""

    name = "reset_consumer"
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _ResetConsumerArguments) -> list[_ResetConsumerRow]:
        """Reset; NotFoundError if a consumer to be forgotten is not known."""
        table = context.table(arguments.table)
        grant(table, Action.ALTER)
        name, wanted = arguments.consumer_id, arguments.next_snapshot_id
        consumers = table.consumers()
        if wanted is None and name not in consumers:
            hint = nearest(name, consumers) or "; the table has none"
            raise NotFoundError(f"{table.identifier} has no consumer {name!r}{hint}")
        if wanted is not None and wanted < 1:
            raise InputError(f"next_snapshot_id cannot be {wanted}: snapshots count from 1")
        table.consumer_files.path(name)
        if not arguments.dry_run:
            if wanted is None:
                table.delete_consumer(name)
            else:
                table.record_consumer(name, wanted)
        return [_ResetConsumerRow(consumers.get(name), wanted, int(wanted is None))]


@dataclass(frozen=True)
class _ClearConsumersArguments:
    table: TableName
    including_consumers: Annotated[str | None, "names to forget (default: all)"] = None
    excluding_consumers: Annotated[str | None, "names to keep although they match (default: none)"] = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class _ClearConsumersRow:
    deleted_consumers_count: Annotated[int, "consumers that were forgotten"]
    remaining_consumers_count: Annotated[int, "consumers that are left"]


class ClearConsumers(TypedProcedure[_ClearConsumersArguments, _ClearConsumersRow]):
    """Forget consumers of a table."""

    name = "clear_consumers"
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _ClearConsumersArguments) -> list[_ClearConsumersRow]:
        """Clear; a name is kept if both patterns match it, in whole."""
        table = context.table(arguments.table)
        grant(table, Action.ALTER)
        wanted = parse_pattern("including_consumers", arguments.including_consumers, ".*")
        kept = parse_pattern("excluding_consumers", arguments.excluding_consumers, "(?!)")
        consumers = table.consumers()
        gone = [name for name in consumers if wanted.fullmatch(name) and not kept.fullmatch(name)]
        if not arguments.dry_run:
            for name in gone:
                table.delete_consumer(name)
        return [_ClearConsumersRow(len(gone), len(consumers) - len(gone))]
