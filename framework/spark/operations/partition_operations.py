"""Operations on partitions, which exist as long as they have data files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.errors import UnsupportedError
from lockgate.framework.access import Action
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.messages.shared_messages import Committed, RowsJson
from lockgate.framework.spark.messages.table_messages import DropPartitionsRequest, ListPartitionsRequest
from lockgate.framework.spark.messages.write_messages import DeleteRequest
from lockgate.framework.types import (
    FLOAT_KINDS,
    has_partition_values,
    partition_key,
    value_from_json,
    value_to_json,
)
from lockgate.pushdown import AlwaysTrue, And, Comparison, Op, Predicate, all_of, from_json, reads_only

if TYPE_CHECKING:
    from lockgate.framework.store import Table


def list_partitions(context: OperationContext, request: ListPartitionsRequest) -> RowsJson:
    """List the partitions that have data files, or those with certain values, as rows of their columns.

    A partition of a key table may have files of deleted rows only, until a compaction.
    """
    from lockgate.framework.store import grant, require_unrestricted

    table = context.table()
    keys = table.schema.partition_keys
    types = table.schema.types_of(keys)
    require_unrestricted(table, grant(table, Action.SELECT, keys), "partitions")
    wanted = {
        name: value_from_json(table.schema.field(name).type, value)
        for name, value in request["where"].items()
    }
    found = {entry.partition for entry in table.manifests.live_files(table.latest_snapshot())}
    rows = sorted(filter(has_partition_values(keys, wanted), found), key=_order)
    return {
        "rows": [[value_to_json(kind, value) for kind, value in zip(types, row, strict=True)] for row in rows]
    }


def _order(partition: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return a sort key: nulls first, NaN last, -0.0 before 0.0."""
    return [
        (value is not None, value != value, 0.0 if value != value else value, str(value))
        for value in partition
    ]


def drop_partitions(context: OperationContext, request: DropPartitionsRequest) -> bool:
    """Delete all rows of some partitions, in one snapshot."""
    from lockgate.framework.store import CommitMessage, grant, visible_entries

    table = context.table()
    types = table.schema.types_of(table.schema.partition_keys)
    dropped = {
        partition_key(value_from_json(kind, value) for kind, value in zip(types, row, strict=True))
        for row in request["partitions"]
    }
    grant(table, Action.DELETE)
    latest = table.latest_snapshot()
    entries = [] if latest is None else visible_entries(table, latest)
    deletions = [CommitMessage.replacing([entry]) for entry in entries if entry.partition in dropped]
    if not deletions or latest is None:
        return False
    table.commit(deletions, kind="OVERWRITE", base_snapshot_id=latest.id)
    return True


# --- deleting by filters ------------------------------------------------------------------------


def chosen_by(table: Table, predicate: Predicate | None) -> Callable[[tuple[Any, ...]], bool]:
    """Return the choice of partitions by a predicate; UnsupportedError if it does not select whole ones."""
    if predicate is None:
        raise UnsupportedError(f"table {table.identifier}: this does not select whole partitions")
    return table.keeps_partition(predicate)


def static_partitions(table: Table, predicate: Predicate | None) -> Callable[[tuple[Any, ...]], bool]:
    """Return the choice of partitions by a predicate, of which one that `<=>` names has the sign of its zero.

    So Spark writes `INSERT OVERWRITE t PARTITION (p = 0.0)`, which names one of the two partitions of zeros.
    """
    schema, chosen = table.schema, chosen_by(table, predicate)
    parts = predicate.children if isinstance(predicate, And) else (predicate,)
    zeros = {
        part.field[0]: part.literals[0].as_py()
        for part in parts
        if isinstance(part, Comparison)
        and part.op is Op.EQ_NULL_SAFE
        and schema.field(part.field[0]).type.kind in FLOAT_KINDS
    }
    has_values = has_partition_values(schema.partition_keys, zeros)
    return lambda partition: chosen(partition) and has_values(partition)


def whole_partitions(table: Table, filters: list[Any]) -> Predicate | None:
    """Return the predicate that `filters` make if it selects whole partitions, else None."""
    predicates = [from_json(item) for item in filters]
    chosen = all_of(*(item for item in predicates if item is not None))
    whole = isinstance(chosen, AlwaysTrue) or reads_only(chosen, table.schema.partition_keys)
    return chosen if whole and None not in predicates else None


def can_delete(context: OperationContext, request: DeleteRequest) -> bool:
    """Tell whether a DELETE needs only metadata."""
    return whole_partitions(context.table(), request["filters"]) is not None


def delete_where(context: OperationContext, request: DeleteRequest) -> Committed:
    """Delete whole partitions without reading a row."""
    from lockgate.framework.store import grant

    table = context.table()
    grant(table, Action.DELETE)  # of a table without rows too
    chosen = chosen_by(table, whole_partitions(table, request["filters"]))
    if table.latest_snapshot() is None:
        return {"snapshot_id": None}
    return {"snapshot_id": table.commit([], kind="OVERWRITE", overwrite=chosen).id}


OPERATIONS = {
    "partition.list": list_partitions,
    "partition.drop": drop_partitions,
    "delete.can": can_delete,
    "delete.where": delete_where,
}
