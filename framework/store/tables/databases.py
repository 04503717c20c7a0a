"""The comment and the properties of a database, kept in a file of its folder.

Paimon's file-system catalog keeps none; readers pass over files in the folder of a database.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from lockgate.errors import CorruptFileError, InputError
from lockgate.framework.io import FileSystem, join

PROPERTIES_FILE = ".lockgate-database.json"

# Properties of a database that Spark keeps there, and users do not set.
_NOT_SET = frozenset({"location"})


def load_properties(file_system: FileSystem, folder: str) -> dict[str, str]:
    """Return the properties of the database in `folder`; CorruptFileError if they cannot be read."""
    path = join(folder, PROPERTIES_FILE)
    try:
        text = file_system.read_bytes(path)
    except FileNotFoundError:
        return {}
    try:
        found = json.loads(text)["properties"]
        return {str(key): str(value) for key, value in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"{path} does not hold the properties of a database: {error}") from None


def change_properties(file_system: FileSystem, folder: str, changes: Mapping[str, str | None]) -> None:
    """Set properties, or remove those given as None; of two that change at once the later one wins.

    InputError for a property that is not to be set.
    """
    check_properties(changes)
    merged = {**load_properties(file_system, folder), **changes}
    kept = {key: value for key, value in merged.items() if value is not None}
    data = json.dumps({"properties": kept}, indent=2, sort_keys=True).encode()
    file_system.write_atomic(join(folder, PROPERTIES_FILE), data)


def check_properties(changes: Iterable[str]) -> None:
    """Raise InputError for a property that is not to be set."""
    for key in changes:
        if key in _NOT_SET:
            raise InputError(
                f"the property {key!r} of a database cannot be set: the catalog decides its folder"
            )
