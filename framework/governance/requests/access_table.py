"""The system table `t$access`: who may do what with a table, as far as its reader may know.

Everybody sees the own rights. Those of others see only the users who may grant on the same column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import Action
from lockgate.framework.governance.requests.access_requests import access_requests
from lockgate.framework.plugins import current_principal
from lockgate.framework.store import batches_of, whole_refusal
from lockgate.framework.types import DataField, arrow_schema, parse_type

if TYPE_CHECKING:
    from lockgate.framework.governance.policy_principals import Rights
    from lockgate.framework.plugins import BridgeContext, SystemTable
    from lockgate.framework.store import Table

_NAMES = ("kind", "name", "column", "actions", "values", "rows")
_FIELDS = [DataField(number, name, parse_type("STRING")) for number, name in enumerate(_NAMES)]
_Row = tuple[str | None, ...]


class AccessTable:
    """Implements `lockgate.plugins.SystemTable`."""

    authorizes = True

    def schema(self, context: BridgeContext | None, table: Table) -> list[DataField]:
        """Return the columns, which are texts."""
        return list(_FIELDS)

    def rows(
        self,
        context: BridgeContext | None,
        table: Table,
        options: Mapping[str, str],
        properties: Mapping[str, str | None],
    ) -> pa.Table:
        """Return the rights on the table now.

        Raises AccessDeniedError for a user without one, and ProcedureError where no policies decide.
        """
        return pa.Table.from_batches(batches_of(arrow_schema(tuple(_FIELDS)), iter(_rows(table))))


def _rows(table: Table) -> list[_Row]:
    requests, columns = access_requests(table.location), list(table.schema.field_names)
    name = f"{table.identifier.namespace}.{table.identifier.table}"
    has_key = table.schema.has_primary_key
    mine = requests.own_rights(name, columns, has_key=has_key)
    grantable = [column for column in columns if requests.may_grant(name, column)]
    found = list(_of_holder(mine, columns, whole=True))
    if not found and not grantable:
        lacks = whole_refusal(current_principal(), table)
        raise AccessDeniedError(
            f"user {current_principal().user!r} has no right on table {name}; apply for: {'; '.join(lacks)}",
            lacks,
        )
    if grantable:
        whole = requests.may_grant(name, "*")
        for each in requests.rights(name, columns, has_key=has_key):
            if each.principal != mine.principal:
                found += _of_holder(each, grantable, whole=whole)
    return found


def _of_holder(rights: Rights, columns: list[str], *, whole: bool) -> Iterator[_Row]:
    principal = (rights.principal.kind, rights.principal.name)
    if whole and rights.actions:
        yield (*principal, None, ",".join(rights.actions), None, None)
    rows = "all" if rights.row_filter is None else "some"
    for column in columns:
        if column in rights.readable:
            values = "masked" if column in rights.masked else "shown"
            yield (*principal, column, Action.SELECT.value, values, rows)


TABLES: dict[str, SystemTable] = {"access": AccessTable()}
