"""Rights on the source of a migration, whose rows become those of the caller's new table."""

from __future__ import annotations

import os

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import AccessRequest, Action, SqlDecision, Target
from lockgate.framework.keys import key_file_of
from lockgate.framework.plugins import authorize, current_principal, plugins
from lockgate.framework.spark import (
    SESSION_CATALOG,
    decide_links,
    refusal_of_path,
    targets_of,
)
from lockgate.framework.store import hidden_from
from lockgate.procedures.builtin.migrate.migration_source import MigrationSource
from lockgate.procedures.procedure import ProcedureContext


def check_folder(context: ProcedureContext, folder: str, *, deletes: bool) -> None:
    """Require SELECT on a folder and on what links in it lead to, and DELETE if its files are deleted;
    AccessDeniedError otherwise.

    Files within the warehouse are those of its tables, and are refused.
    """
    if not plugins().decides_access():
        return
    relation = {"kind": "path", "paths": [folder]}
    refused = refusal_of_path(relation, [context.catalog.warehouse])
    if refused is not None:
        raise AccessDeniedError(
            f"files of the warehouse become no other table; apply for: {'; '.join(refused.apply_for)}",
            refused.apply_for,
        )
    for target in targets_of(relation):
        authorize(Action.SELECT, target)
        if deletes:
            authorize(Action.DELETE, target)

    def decide(target: Target) -> SqlDecision:
        authorize(Action.SELECT, target)
        return SqlDecision()

    for found in decide_links(relation, [context.catalog.warehouse], decide):
        if found.apply_for:
            raise AccessDeniedError(
                f"files of the warehouse become no other table; apply for: {'; '.join(found.apply_for)}",
                found.apply_for,
            )


def check_keys(location: str) -> None:
    """Require SELECT on the path of a source's key file, or on the address of other keys; AccessDeniedError
    otherwise.
    """
    if plugins().decides_access():
        path = key_file_of(location)
        name = location if path is None else os.path.realpath(path)
        authorize(Action.SELECT, Target("path", name, catalog=SESSION_CATALOG))


def check_table(source: MigrationSource, *, deletes: bool) -> None:
    """Require to see all of a table of Spark's catalog, and DROP if it is dropped; AccessDeniedError
    otherwise.
    """
    if source.table is None or not plugins().decides_access():
        return
    name = ".".join(part.strip("`") for part in source.table.split(".")[1:])
    target = Target("table", name, catalog=SESSION_CATALOG)
    types = {field.name: str(field.type) for field in source.fields}
    who = current_principal()
    request = AccessRequest(who, Action.SELECT, target, frozenset(types))
    seen = plugins().authorize_sql(request, types)
    if seen.is_restricted:
        raise hidden_from(who, Action.SELECT, str(target), seen)
    if deletes:
        authorize(Action.DROP, target)
