"""Keys of the encrypted columns of a warehouse, by the names of tables in lineage."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lockgate.errors import LockgateError
from lockgate.framework.lineage.model.names import column_path, column_text, joined
from lockgate.framework.orc import parse_encrypt

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog, Table

_log = logging.getLogger("lockgate.lineage")


def confidential_in(catalog: Catalog) -> dict[str, dict[str, str]]:
    """Return the key of each encrypted column, in lower case, of every table of a warehouse.

    A table that cannot be loaded is omitted and logged.
    """
    columns_by_table: dict[str, dict[str, str]] = {}
    for database in catalog.list_namespaces():
        for name in catalog.list_tables(database):
            try:
                columns = keys_in(catalog.load_table(f"{database}.{name}"))
            except LockgateError as error:
                _log.warning("table %s.%s is left out of the search for plaintext: %s", database, name, error)
                continue
            if columns:
                columns_by_table[joined((database, name))] = columns
    return columns_by_table


def keys_in(table: Table) -> dict[str, str]:
    """Return the key of each encrypted column of a table, by its name in lineage, in lower case."""
    return keys_by_column(table.schema.options.get("orc.encrypt", ""), table.schema.field_names)


def keys_by_column(encrypt: str, names: Iterable[str]) -> dict[str, str]:
    """Return the key of each column in `orc.encrypt`, by its name in lineage, in lower case.

    A text with a dot is the column of that name, if it exists, and otherwise a member of a struct.
    """
    columns = {name.lower() for name in names}
    return {
        column_text([path] if path.lower() in columns else column_path(path)).lower(): key
        for path, key in parse_encrypt(encrypt).items()
    }
