"""Operations on tables that a query makes: staged out of sight, then put in their place, or dropped."""

from __future__ import annotations

from typing import Any

from lockgate.errors import AlreadyExistsError, CommitConflictError, UnsupportedError
from lockgate.framework.spark.catalog_operations import describe, requested_schema
from lockgate.framework.spark.context import Context
from lockgate.framework.store.identifier import Identifier
from lockgate.framework.store.moving import can_move, replace_table, staged_identifier


def stage_table(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Make a table that is to take the place of another one, or of none, once it has its rows."""
    schema, catalog = requested_schema(context, request), context.requested_catalog()
    target = Identifier.parse(context.identifier())
    replaces = catalog.load_table(target) if catalog.table_exists(target) else None
    if replaces is not None and not request["may_replace"]:
        raise AlreadyExistsError(f"table {target} exists")
    if replaces is None and not request["may_create"]:
        catalog.load_table(target)
    # Where folders cannot be moved a new table is made in its place, and dropped if the query fails.
    place = staged_identifier(target) if can_move(catalog) else target
    if replaces is not None and place == target:
        raise UnsupportedError(
            f"table {target} cannot be replaced: {catalog.warehouse} is not on a file system that renames "
            "folders at once; INSERT OVERWRITE replaces the rows, DROP TABLE and CREATE TABLE all of it"
        )
    catalog.check_namespace(target.namespace)
    table = catalog.create_table(place, schema)
    replaced = None if replaces is None else str(replaces.table_id)
    return {**describe(context, table, 0), "staged": place.name, "replaces": replaced}


def commit_staged(context: Context, request: dict[str, Any]) -> bool:
    """Put a staged table in its place, unless its rows were computed from a past state of the old one."""
    catalog, staged = context.requested_catalog(), context.identifier()
    target = f"{context.namespace()}.{request['target']}"
    if staged == target:
        return True
    basis = request.get("basis")
    if basis is not None:
        latest = catalog.load_table(target).latest_snapshot()
        if latest is not None and latest.id != basis:
            raise CommitConflictError(
                f"table {target} has changed since its snapshot {basis}, that the new rows come from: "
                "repeat the statement"
            )
    if not request["may_replace"]:
        catalog.rename_table(staged, target)
    else:
        replace_table(catalog, staged, target)
    return True


def abort_staged(context: Context, request: dict[str, Any]) -> bool:
    """Drop a staged table."""
    context.requested_catalog().drop_table(context.identifier(), ignore_if_not_exists=True)
    return True


OPERATIONS = {
    "table.stage": stage_table,
    "table.commit_staged": commit_staged,
    "table.abort_staged": abort_staged,
}
