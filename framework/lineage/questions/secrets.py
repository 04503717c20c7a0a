"""Keys of a warehouse's columns, by lineage's names of its tables."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lockgate.errors import LockgateError
from lockgate.framework.lineage.model.names import joined
from lockgate.framework.orc import parse_encrypt

if TYPE_CHECKING:
    from lockgate.framework.store.catalog import Catalog
    from lockgate.framework.store.table import Table

_log = logging.getLogger("lockgate.lineage")


def secrets_of(catalog: Catalog) -> dict[str, dict[str, str]]:
    """Return the key of each encrypted column, in lower case, of every table of a warehouse.

    A table that cannot be loaded is left out and logged.
    """
    found: dict[str, dict[str, str]] = {}
    for database in catalog.list_namespaces():
        for name in catalog.list_tables(database):
            try:
                columns = keys_in(catalog.load_table(f"{database}.{name}"))
            except LockgateError as error:
                _log.warning("table %s.%s is left out of the search for plaintext: %s", database, name, error)
                continue
            if columns:
                found[joined((database, name))] = columns
    return found


def keys_in(table: Table) -> dict[str, str]:
    """Return the key of each encrypted column, in lower case, of a table.

    A column that is not encrypted but has a dot in its name, as a member of an encrypted one, has the key "".
    """
    entries = parse_encrypt(table.schema.options.get("orc.encrypt", ""))
    plain = {name.lower(): "" for name in table.schema.field_names if "." in name}
    return {**plain, **{path.lower(): key for path, key in entries.items()}}
