"""Columns by Apache ORC's paths: `ssn`, `address.zip`, `list._elem.q`, `map._key`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lockgate.errors import ColumnNotFoundError, OptionError, nearest
from lockgate.framework.orc.format.layout import TypeKind
from lockgate.framework.orc.format.types import TypeTree

ELEMENT, KEY, VALUE = "_elem", "_key", "_value"
Path = tuple[str, ...]

_SIMPLE = re.compile(r"\w+")


@dataclass(frozen=True)
class OrcColumn:
    """A column of a schema: its path, its field, and the column numbers of its subtree in an ORC file.

    `is_key` marks the keys of a map, which are never null.
    """

    path: Path
    field: pa.Field
    numbers: range
    children: tuple[OrcColumn, ...]
    is_key: bool = False

    @property
    def number(self) -> int:
        """The number of the column itself."""
        return self.numbers.start

    @property
    def name(self) -> str:
        """The path as text; the name alone for a top-level column."""
        return self.path[0] if len(self.path) == 1 else spell(self.path)

    def walk(self) -> Iterator[OrcColumn]:
        """Yield the column and its descendants, in the order of their numbers."""
        yield self
        for child in self.children:
            yield from child.walk()


class ColumnTree:
    """The columns of a schema, numbered as in an ORC file: in pre-order, with the root struct as 0."""

    def __init__(self, schema: pa.Schema) -> None:
        self.top: list[OrcColumn] = []
        number = 1
        for field in schema:
            self.top.append(_column((field.name,), field, number))
            number = self.top[-1].numbers.stop
        self.end = number
        self._by_path = {column.path: column for top in self.top for column in top.walk()}

    def get(self, path: Path) -> OrcColumn | None:
        """Return the column of a path, or None."""
        return self._by_path.get(path)

    def find(self, option: str, text: str) -> OrcColumn:
        """Return the column that `text` names in an option; `ColumnNotFoundError` if there is none."""
        matching = self.get((text,)) or self.get(split(text))
        if matching is None:
            paths = [column.name for column in self._by_path.values()]
            raise ColumnNotFoundError(f"{option}: there is no column {text!r}{nearest(text, paths)}")
        return matching

    def top_of(self, column: OrcColumn) -> OrcColumn:
        """Return the top-level column that contains `column`."""
        return self._by_path[column.path[:1]]


def spell(path: Sequence[str]) -> str:
    """Return a path as text; names with other characters than letters, digits and `_` are in backticks."""
    return ".".join(name if _SIMPLE.fullmatch(name) else "`" + name.replace("`", "``") + "`" for name in path)


def split(text: str) -> Path:
    """Parse a path into names; in backticks, dots belong to the name and two backticks stand for one."""
    names: list[str] = []
    rest = text
    while True:
        quoted = re.match(r"`((?:[^`]|``)+)`", rest)
        name = quoted[1].replace("``", "`") if quoted else rest.partition(".")[0]
        names.append(name)
        rest = rest[quoted.end() if quoted else len(name) :]
        if not rest:
            return tuple(names)
        if not rest.startswith("."):
            return (text,)
        rest = rest[1:]


def find_column(types: TypeTree, text: str) -> int | None:
    """Return the column number of a path in a file; None if the file has no such column."""
    if text in types.names:
        return types.top_level(text)
    number = 0
    for name in split(text):
        type_ = types.types[number]
        names = {
            TypeKind.STRUCT: list(type_.field_names),
            TypeKind.LIST: [ELEMENT],
            TypeKind.MAP: [KEY, VALUE],
            TypeKind.UNION: [str(index) for index in range(len(type_.subtypes))],
        }.get(TypeKind(type_.kind), [])
        if name not in names:
            return None
        number = int(type_.subtypes[names.index(name)])
    return number


def _column(path: Path, field: pa.Field, number: int, *, is_key: bool = False) -> OrcColumn:
    children: list[OrcColumn] = []
    next_number = number + 1
    for name, child in _parts(field.type):
        key = pa.types.is_map(field.type) and name == KEY
        children.append(_column((*path, name), child, next_number, is_key=key))
        next_number = children[-1].numbers.stop
    return OrcColumn(path, field, range(number, next_number), tuple(children), is_key)


def _parts(type_: pa.DataType) -> list[tuple[str, pa.Field]]:
    if pa.types.is_map(type_):
        return [(KEY, type_.key_field), (VALUE, type_.item_field)]
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [(ELEMENT, type_.value_field)]
    if pa.types.is_struct(type_):
        return [(field.name, field) for field in type_]
    return []


def bloom_numbers(names: Sequence[str], tree: ColumnTree) -> list[int]:
    """Return the numbers of the columns for Bloom filters; `OptionError` for a column that cannot have
    one.
    """
    numbers: list[int] = []
    for name in names:
        column = tree.get((name,)) or tree.get(split(name))
        if column is None:
            paths = [each.name for top in tree.top for each in top.walk()]
            raise OptionError(f"bloom_filter_columns: there is no column {name!r}{nearest(name, paths)}")
        if column.children:
            parts = ", ".join(each.name for each in column.walk() if not each.children)
            raise OptionError(
                f"bloom_filter_columns: column {name!r} is nested and has no values itself; name {parts}"
            )
        if pa.types.is_int8(column.field.type) or pa.types.is_boolean(column.field.type):
            # ORC's C++ writer (2.3 at least) overwrites such values before it hashes them.
            raise OptionError(
                f"bloom_filter_columns: column {name!r} of type {column.field.type} cannot have a Bloom "
                "filter: Arrow's ORC writer fills it with wrong values, so readers would miss rows; leave "
                "it out"
            )
        numbers.append(column.number)
    return numbers
