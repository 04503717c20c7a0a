"""Tables that move as a whole: renamed, or set aside for deletion.

This needs a file system that renames a folder at once: an object store would copy file by file, and a reader
would find half a table.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

from lockgate.errors import AlreadyExistsError, UnsupportedError
from lockgate.framework.io import MovesFolders
from lockgate.framework.store.metadata.identifier import Identifier, check_name

if TYPE_CHECKING:
    from lockgate.framework.store.tables.catalog import Catalog

# Tables on their way in or out, which no listing shows.
_HIDDEN = "__lockgate_"
_ON_ITS_WAY = re.compile(rf"{_HIDDEN}(staged|dropped)_[0-9a-f]{{32}}_(.+)", re.DOTALL)


def is_hidden(name: str) -> bool:
    """Tell whether a table is one that is being made or dropped, not to be listed."""
    return name.startswith(_HIDDEN)


def staged_identifier(target: Identifier) -> Identifier:
    """Return a new name under which what is to become `target` can be made."""
    return Identifier(target.namespace, f"{_HIDDEN}staged_{uuid.uuid4().hex}_{target.name}")


def staged_for(identifier: Identifier) -> Identifier | None:
    """Return the table that a staged one is to become, None for any other table."""
    found = _ON_ITS_WAY.fullmatch(identifier.table)
    return Identifier(identifier.namespace, found[2]) if found and found[1] == "staged" else None


def policy_name(identifier: Identifier) -> str:
    """Return the name by which policies know a table: its own, also while it is being made or dropped."""
    found = _ON_ITS_WAY.fullmatch(identifier.table)
    return f"{identifier.namespace}.{found[2] if found else identifier.table}"


def can_move(catalog: Catalog) -> bool:
    """Tell whether tables of the warehouse can be moved."""
    return isinstance(catalog.file_system, MovesFolders)


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
    hidden = Identifier(table.namespace, f"{_HIDDEN}dropped_{uuid.uuid4().hex}_{table.name}")
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
