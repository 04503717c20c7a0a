"""Encrypted columns by their ids, which survive renames and identify them in every schema.

A file has the column names of the schema that wrote it, `orc.encrypt` the current ones. A dropped column
counts as the last schema with it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from lockgate.framework import options as table_options
from lockgate.framework.orc import ELEMENT, KEY, VALUE, parse_encrypt, spell, split
from lockgate.framework.types import DataField, DataType

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.schema.schema import TableSchema

# The ids of a column and of the columns that it is in; parts of arrays and maps have ORC's names.
IdPath: TypeAlias = tuple["int | str", ...]


@dataclass(frozen=True)
class ConfidentialColumns:
    """Columns to be encrypted: the name of the key by the column's place."""

    keys: Mapping[IdPath, str]

    def __bool__(self) -> bool:
        return bool(self.keys)

    def under(self, schema: TableSchema) -> Mapping[str, str]:
        """Return key name by column, both as files of a schema name columns; those it lacks are left out."""
        found = {}
        for path, key in self.keys.items():
            name = _name_of(schema.fields, path)
            if name is not None:
                found[name] = key
        return found

    def top_level(self, schema: TableSchema) -> frozenset[str]:
        """Return the columns of a schema that are to be encrypted, or have a part that is."""
        ids = {path[0] for path in self.keys}
        return frozenset(each.name for each in schema.fields if each.id in ids)

    def has_id(self, number: int) -> bool:
        """Say whether the column of an id, or a part of it, is to be encrypted."""
        return any(path[0] == number for path in self.keys)


def confidential_in(schema: TableSchema) -> ConfidentialColumns:
    """Return the columns that a schema encrypts."""
    return ConfidentialColumns(_paths(schema))


def confidential_in_history(table: TableHandle) -> ConfidentialColumns:
    """Return the columns that the newest schema that has them encrypts; reads every schema of the table."""
    schemas = [table.schema_of(schema_id) for schema_id in reversed(table.schema_files.ids())]
    return secrets_among(schemas)


def secrets_among(schemas: Iterable[TableSchema]) -> ConfidentialColumns:
    """Return the columns that the first of some schemas that has them encrypts."""
    found: dict[IdPath, str] = {}
    seen: set[int] = set()
    for schema in schemas:
        found |= {path: key for path, key in _paths(schema).items() if path[0] not in seen}
        seen |= {each.id for each in schema.fields}
    return ConfidentialColumns(found)


def _paths(schema: TableSchema) -> dict[IdPath, str]:
    named = parse_encrypt(schema.table_options.get_option(table_options.ORC_ENCRYPT))
    found = ((path_of(schema.fields, name), key) for name, key in named.items())
    return {path: key for path, key in found if path is not None}


def path_of(fields: tuple[DataField, ...], name: str) -> IdPath | None:
    """Return the place of a column that `orc.encrypt` names; None if there is none of that name."""
    top = next((each for each in fields if each.name == name), None)
    if top is not None:
        return (top.id,)
    return _walked(fields, split(name), lambda each: each.name, lambda each: each.id)


def _name_of(fields: tuple[DataField, ...], path: IdPath) -> str | None:
    """Return how a schema spells the column at a place; None if it has none there."""
    names = _walked(fields, path, lambda each: each.id, lambda each: each.name)
    if names is None:
        return None
    return str(names[0]) if len(names) == 1 else spell([str(name) for name in names])


def _walked(
    fields: tuple[DataField, ...],
    steps: IdPath,
    known_by: Callable[[DataField], int | str],
    label: Callable[[DataField], int | str],
) -> IdPath | None:
    """Go down to a column by one label of each column on the way, and return another label of each."""
    found: list[int | str] = []
    inside: DataType | None = None
    for step in steps:
        members = fields if inside is None else inside.fields
        member = next((each for each in members if known_by(each) == step), None)
        part = None if inside is None else _parts(inside).get(str(step))
        if member is None and part is None:
            return None
        found.append(step if member is None else label(member))
        inside = part if member is None else member.type
    return tuple(found)


def _parts(data_type: DataType) -> dict[str, DataType]:
    found = {ELEMENT: data_type.element, KEY: data_type.key, VALUE: data_type.value}
    return {name: part for name, part in found.items() if part is not None}
