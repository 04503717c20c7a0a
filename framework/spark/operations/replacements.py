"""Operations on tables that a query makes or replaces: nothing is seen of them before they have their rows.

A table that replaces another is written into its folder and takes its place by one commit. A new one is
made out of sight and renamed, where folders can be renamed; elsewhere in its place, and dropped if the query
fails.
"""

from __future__ import annotations

import uuid

from lockgate.errors import AlreadyExistsError
from lockgate.framework.spark.context.operation_context import OperationContext, session_choice
from lockgate.framework.spark.messages.shared_messages import Committed, TableRequest
from lockgate.framework.spark.messages.table_messages import CommitStagedRequest, StagedSpec, StageRequest
from lockgate.framework.spark.operations.catalog_operations import describe, requested_schema
from lockgate.framework.store import Identifier


def stage_table(context: OperationContext, request: StageRequest) -> StagedSpec:
    """Make a table that is to take the place of another one, or of none, once it has its rows."""
    schema, catalog = requested_schema(context, request), context.requested_catalog()
    target = Identifier.parse(context.identifier())
    if not catalog.table_exists(target):
        if not request["may_create"]:
            catalog.load_table(target)
        catalog.check_namespace(target.namespace)
        staging = target.staged() if catalog.moves_tables else target
        return {
            "table": describe(context, catalog.create_table(staging, schema), 0),
            "staging": staging.name,
            "replacement": None,
        }
    if not request["may_replace"]:
        raise AlreadyExistsError(f"table {target} exists")
    # Of all that replaces tables, only saveAsTable names the session's default format.
    replacement = catalog.replace_table(
        target, schema, on_plaintext=session_choice(context), keeps_layout=request["default_format"]
    )
    handle = str(uuid.uuid4())
    context.dispatcher.replacements[handle] = replacement
    return {"table": describe(context, replacement, 0), "staging": target.name, "replacement": handle}


def commit_staged(context: OperationContext, request: CommitStagedRequest) -> Committed:
    """Put a staged table in its place; CommitConflictError if what its rows come from has changed."""
    if request["replacement"] is not None:
        snapshot = context.replacement().publish(
            base_snapshot_id=request["base_snapshot_id"], base_commit_id=request["base_commit_id"]
        )
        del context.dispatcher.replacements[request["replacement"]]
        return {"snapshot_id": snapshot.id}
    staged, target = context.identifier(), f"{context.namespace()}.{request['target']}"
    if staged != target:
        context.requested_catalog().rename_table(staged, target)
    return {"snapshot_id": None}  # its rows were committed before


def abort_staged(context: OperationContext, request: TableRequest) -> bool:
    """Drop a staged table, or the files of a replacement."""
    if request["replacement"] is not None:
        context.replacement().discard()
        del context.dispatcher.replacements[request["replacement"]]
    else:
        context.requested_catalog().drop_table(context.identifier(), ignore_if_not_exists=True)
    return True


OPERATIONS = {
    "table.stage": stage_table,
    "table.commit_staged": commit_staged,
    "table.abort_staged": abort_staged,
}
