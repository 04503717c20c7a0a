"""Planned changes of tables, for plugins to judge: tables and columns dropped or renamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from lockgate.errors import LockgateError
from lockgate.framework.plugins import PlannedChange, plugins
from lockgate.framework.store.ddl.schema_changes import DropColumn, RenameColumn, SchemaChange

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.identifier import Identifier
    from lockgate.framework.store.tables.catalog import Catalog

Change = Literal["dropped", "renamed"]


def announce_table(
    catalog: Catalog, identifier: Identifier, change: Change, along: Iterable[Identifier] = ()
) -> None:
    """Let plugins judge that a table is dropped (`along` with others) or renamed; raises what they raise."""
    options = _options(catalog, identifier)
    names = frozenset(map(str, along))
    plugins().before_change(PlannedChange(catalog, str(identifier), options, change, along=names))


def announce_columns(catalog: Catalog, table: TableHandle, changes: Iterable[SchemaChange]) -> None:
    """Let plugins judge the columns that `changes` drop or rename; raises what they raise."""
    found: dict[Change, list[tuple[str, ...]]] = {}
    for change in changes:
        if isinstance(change, DropColumn):
            found.setdefault("dropped", []).append(change.path)
        elif isinstance(change, RenameColumn) and change.path[-1] != change.name:
            found.setdefault("renamed", []).append(change.path)
    for kind, columns in found.items():
        options = table.schema.options
        plugins().before_change(PlannedChange(catalog, str(table.identifier), options, kind, tuple(columns)))


def _options(catalog: Catalog, identifier: Identifier) -> Mapping[str, str]:
    try:
        return catalog.load_table(identifier).schema.options
    except LockgateError:  # a table that cannot be read can be dropped all the same
        return {}
