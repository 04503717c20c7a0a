"""`rescale`: another number of buckets for the rows of a table, or of some of its partitions."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.options import BUCKET
from lockgate.framework.store import SetOption, Table, grant
from lockgate.framework.store.maintenance import rescale
from lockgate.procedures.arguments import PARTITIONS, WHERE, parse_selection
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext


class Rescale(Procedure):
    """Divides the rows of partitions into another number of buckets, in one OVERWRITE snapshot.

    Opens every file strictly: without a key that the files need, it raises KeyMissingError and changes
    nothing. Memory holds one partition at a time. Without `partitions` and `where`, the table's option
    `bucket` follows; killed before that, it can be called again. Source: Paimon's `RescaleProcedure`.
    """

    name = "rescale"
    description = "Divide the rows of a table, or of partitions, into another number of buckets."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("bucket_num", "INT", None, "the number of buckets (default: the table's option 'bucket')"),
        Parameter("partitions", "STRING", None, PARTITIONS),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be rewritten"),
        Parameter("where", "STRING", None, WHERE),
    )
    result = (
        ("rescaled_partitions_count", "BIGINT"),
        ("files_rewritten", "BIGINT"),
        ("files_written", "BIGINT"),
        ("rows", "BIGINT"),
        ("snapshot_id", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Rescale; CommitConflictError, with nothing changed, if others write to the partitions."""
        table = context.table(arguments["table"])
        grant(table, Action.ALTER)
        count = _count(table, arguments["bucket_num"])
        chosen = parse_selection(arguments["partitions"], arguments["where"], table.schema)
        result = rescale(table, count, chosen, dry_run=arguments["dry_run"])
        is_whole = not (arguments["partitions"] or arguments["where"])
        if is_whole and not arguments["dry_run"] and count != table.schema.bucket_count:
            context.catalog.alter_table(str(table.identifier), [SetOption(BUCKET.key, str(count))])
        return [astuple(result)]


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
