"""Operations on partitions, which are there as long as they have rows."""

from __future__ import annotations

from lockgate.framework.access import Action
from lockgate.framework.spark.operations.context import Context
from lockgate.framework.spark.operations.messages.common import Rows
from lockgate.framework.spark.operations.messages.tables import DropPartitionsRequest, ListPartitionsRequest
from lockgate.framework.types import value_from_json, value_to_json


def list_partitions(context: Context, request: ListPartitionsRequest) -> Rows:
    """List the partitions that have rows, or those with certain values, as rows of the partition columns."""
    from lockgate.framework.store.grants import grant
    from lockgate.framework.store.scan.request import require_unrestricted

    table = context.table()
    keys = table.schema.partition_keys
    types = table.schema.types_of(keys)
    require_unrestricted(table, grant(table, Action.SELECT, keys), "partitions")
    wanted = {
        name: value_from_json(table.schema.field(name).type, value)
        for name, value in request["where"].items()
    }
    found = {entry.partition for entry in table.manifests.live_files(table.latest_snapshot())}
    # Compared as tuples, in which NaN is equal to itself.
    rows = [
        row for row in found if all((row[keys.index(name)],) == (value,) for name, value in wanted.items())
    ]
    rows.sort(key=lambda row: [(value is not None, value) for value in row])
    return {
        "rows": [[value_to_json(kind, value) for kind, value in zip(types, row, strict=True)] for row in rows]
    }


def drop_partitions(context: Context, request: DropPartitionsRequest) -> bool:
    """Delete all rows of some partitions, in one snapshot."""
    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.grants import grant
    from lockgate.framework.store.scan.visible_files import visible_entries

    table = context.table()
    types = table.schema.types_of(table.schema.partition_keys)
    dropped = {
        tuple(value_from_json(kind, value) for kind, value in zip(types, row, strict=True))
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


OPERATIONS = {"partition.list": list_partitions, "partition.drop": drop_partitions}
