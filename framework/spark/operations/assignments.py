"""Operations of tasks that write: in which bucket a key lies, or in which partition and bucket."""

from __future__ import annotations

import base64

from lockgate.errors import InputError
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.messages.write_messages import (
    AssignAnswer,
    AssignRequest,
    LocateAnswer,
    LocateRequest,
)
from lockgate.framework.types import value_to_json


def assign(context: OperationContext, request: AssignRequest) -> AssignAnswer:
    """Give keys of a partition their buckets, for all tasks of a write; InputError if it has ended."""
    session = context.dispatcher.writes.get(request["write_id"])
    if session is None:
        raise InputError("the write whose task asks for buckets has ended; run the statement again")
    buckets = session.places.assign(request["partition"], base64.b64decode(request["hashes"]))
    return {"buckets": base64.b64encode(buckets).decode()}


def locate(context: OperationContext, request: LocateRequest) -> LocateAnswer:
    """Say where rows go whose keys may move between partitions; InputError if the write has ended."""
    session = context.dispatcher.writes.get(request["write_id"])
    if session is None:
        raise InputError("the write whose task asks where keys lie has ended; run the statement again")
    kinds = base64.b64decode(request["kinds"])
    rows, partitions = session.places.locate(request["attempt"], request["columns"], kinds)
    fields = [session.table.schema.field(name) for name in session.table.schema.partition_keys]
    return {
        "rows": base64.b64encode(rows).decode(),
        "partitions": [
            {
                field.name: value_to_json(field.type, value)
                for field, value in zip(fields, values, strict=True)
            }
            for values in partitions
        ],
    }


OPERATIONS = {"write.assign": assign, "write.locate": locate}
