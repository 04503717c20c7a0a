"""Columns that a reader needs for `addr.zip`: the leaf and its parents, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockgate.errors import ColumnNotFoundError, nearest
from lockgate.framework.orc.format.layout import TypeKind
from lockgate.framework.orc.format.types import TypeTree


def top_level_of(types: TypeTree, path: str) -> int:
    """Return the number of the top-level column that `path` names or leads into."""
    return min(needed_columns(types, path) - {0})


def needed_columns(types: TypeTree, path: str) -> set[int]:
    """Return the numbers of the columns under `path` and of those that hold it, the root included.

    A path names fields from the outside in, parted by dots. Lists and maps are walked through as Arrow does
    (`orders.price`) or as ORC's Java tools spell it (`orders._elem.price`, `prices._value.euro`); the keys of
    a map come with its values. A field whose own name has a dot is found too, and a top-level name comes
    first. Raises `ColumnNotFoundError`.
    """
    if path in types.names:
        return {0, *types.subtree(types.top_level(path))}
    found = _walk(types, 0, path)
    if found is None:
        raise ColumnNotFoundError(f"there is no column {path!r}{nearest(path, list(_paths(types)))}")
    return {0, *found}


def _walk(types: TypeTree, column: int, path: str) -> set[int] | None:
    """Return the columns under `path` inside `column`, and those in between."""
    for name, child in _steps(types, column):
        if path == name:
            found: set[int] | None = set(types.subtree(child))
        elif name and not path.startswith(f"{name}."):
            continue
        else:
            found = _walk(types, child, path[len(name) + 1 :] if name else path)
        if found is not None:
            return {child, *found, *_companions(types, column, child)}
    return None


def _steps(types: TypeTree, column: int) -> Iterator[tuple[str, int]]:
    """Yield the names by which one may go on from a column; the empty one goes on without taking a name."""
    type_ = types.types[column]
    if type_.kind == TypeKind.STRUCT:
        yield from zip(type_.field_names, type_.subtypes, strict=True)
    elif type_.kind == TypeKind.LIST:
        yield from (("_elem", type_.subtypes[0]), ("", type_.subtypes[0]))
    elif type_.kind == TypeKind.MAP:
        key, value = type_.subtypes
        yield from (("_key", key), ("_value", value), ("", value))


def _companions(types: TypeTree, column: int, child: int) -> Iterable[int]:
    """Return what else a column needs to be whole: a map is nothing without both of its sides."""
    if types.types[column].kind != TypeKind.MAP:
        return ()
    key, value = types.types[column].subtypes
    return types.subtree(key) if child == value else types.subtree(value)


def _paths(types: TypeTree) -> Iterator[str]:
    """Yield every path, for suggestions."""
    for column in range(1, len(types)):
        yield types.path(column)
