"""`rescale`: another number of buckets for the rows of a table, or of some of its partitions."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Annotated

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.options import BUCKET
from lockgate.framework.store import SetOption, Table, grant
from lockgate.framework.store.maintenance import rescale
from lockgate.procedures.arguments import Partitions, Where, parse_selection
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, Int, TypedProcedure


@dataclass(frozen=True)
class _Arguments:
    table: Annotated[str, "the table, with a fixed number of buckets"]
    bucket_num: Annotated[Int | None, "the number of buckets (default: option `bucket`)"] = None
    partitions: Partitions = None
    dry_run: DryRun = False
    where: Where = None


@dataclass(frozen=True)
class _Row:
    rescaled_partitions_count: Annotated[int, "partitions that had another number of buckets"]
    files_rewritten: Annotated[int, "files removed and added; the second is NULL in a dry run"]
    files_written: int | None
    rows: Annotated[int, "rows in the removed files, not merged"]
    snapshot_id: Annotated[int | None, "the new snapshot; NULL if there was nothing to do"]


class Rescale(TypedProcedure[_Arguments, _Row]):
    """Divide the rows of a table, or of partitions, into another number of buckets.

    Opens every file strictly: without a key that the files need, it raises KeyMissingError and changes
    nothing. Memory holds one partition at a time. Without `partitions` and `where`, the table's option
    `bucket` follows; killed before that, it can be called again. Source: Paimon's `RescaleProcedure`.
    """

    name = "rescale"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Rescale; CommitConflictError, with nothing changed, if others write to the partitions."""
        table = context.table(arguments.table)
        grant(table, Action.ALTER)
        count = _count(table, arguments.bucket_num)
        chosen = parse_selection(arguments.partitions, arguments.where, table.schema)
        result = rescale(table, count, chosen, dry_run=arguments.dry_run)
        is_whole = not (arguments.partitions or arguments.where)
        if is_whole and not arguments.dry_run and count != table.schema.bucket_count:
            context.catalog.alter_table(str(table.identifier), [SetOption(BUCKET.key, str(count))])
        return [_Row(*astuple(result))]


def _count(table: Table, wanted: int | None) -> int:
    now = table.schema.bucket_count
    if now < 1:
        raise InputError(
            f"table {table.identifier} has 'bucket' = '{now}': only tables with a fixed number of buckets "
            "are rescaled"
        )
    if wanted is not None and wanted < 1:
        raise InputError(f"bucket_num must be 1 or more, not {wanted}")
    return wanted or now
