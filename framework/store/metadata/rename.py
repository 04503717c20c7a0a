"""Tables that move as a whole: renamed, or set aside for deletion.

This needs a file system that renames a folder at once: an object store would copy file by file, and a reader
would find half a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import AlreadyExistsError, UnsupportedError
from lockgate.framework.io import MovesFolders
from lockgate.framework.store.metadata.identifier import Identifier, check_name

if TYPE_CHECKING:
    from lockgate.framework.store.tables.catalog import Catalog


def rename_table(catalog: Catalog, source: str | Identifier, target: str | Identifier) -> None:
    """Give a table another name, in its database or in another; see `Catalog.rename_table`."""
    old, new = Identifier.parse(source), Identifier.parse(target)
    catalog.load_table(old)
    check_name("table", new.name)
    catalog.check_namespace(new.namespace)
    mover = _mover(catalog, f"table {old} cannot be renamed")
    if catalog.table_exists(new):
        raise AlreadyExistsError(f"table {new} exists")
    try:
        mover.move_folder(catalog.location(old), catalog.location(new))
    except FileExistsError:
        raise AlreadyExistsError(
            f"{catalog.location(new)} exists and is not empty; choose another name"
        ) from None


def set_aside(catalog: Catalog, table: Identifier) -> str:
    """Take a table out of sight, to be deleted in peace, and return where it is then."""
    hidden = table.dropped()
    mover = _mover(catalog, f"table {table} cannot be set aside")
    mover.move_folder(catalog.location(table), catalog.location(hidden))
    return catalog.location(hidden)


def _mover(catalog: Catalog, what: str) -> MovesFolders:
    if not isinstance(catalog.file_system, MovesFolders):
        raise UnsupportedError(
            f"{what}: {catalog.warehouse} is not on a file system that renames folders atomically; "
            "CREATE TABLE ... AS SELECT makes a copy, then DROP TABLE"
        )
    return catalog.file_system
