"""The columns that a reader needs for a path such as `addr.zip`: the leaf and its parents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockgate.errors import ColumnNotFoundError, nearest
from lockgate.framework.orc.format.layout import TypeKind
from lockgate.framework.orc.format.types import TypeTree


def top_level_of(types: TypeTree, path: str) -> int:
    """Return the number of the top-level column in which `path` lies."""
    return min(needed_columns(types, path) - {0})


def needed_columns(types: TypeTree, path: str) -> set[int]:
    """Return the numbers of the columns under `path` and of its parents, including the root.

    A path is field names from the outside in, separated by dots. It passes through lists and maps as in Arrow
    (`orders.price`) or as in ORC's Java tools (`orders._elem.price`, `prices._value.euro`); a map's keys
    always come with its values. Field names may contain dots; a top-level name takes precedence. Raises
    `ColumnNotFoundError`.
    """
    if path in types.names:
        return {0, *types.subtree(types.top_level(path))}
    columns = _walk(types, 0, path)
    if columns is None:
        raise ColumnNotFoundError(f"there is no column {path!r}{nearest(path, list(_paths(types)))}")
    return {0, *columns}


def _walk(types: TypeTree, column: int, path: str) -> set[int] | None:
    """Return the columns under `path` inside `column`, and those between; None if there are none."""
    for name, child in _steps(types, column):
        if path == name:
            columns: set[int] | None = set(types.subtree(child))
        elif name and not path.startswith(f"{name}."):
            continue
        else:
            columns = _walk(types, child, path[len(name) + 1 :] if name else path)
        if columns is not None:
            return {child, *columns, *_companions(types, column, child)}
    return None


def _steps(types: TypeTree, column: int) -> Iterator[tuple[str, int]]:
    """Yield the children of a column by path step; an empty step uses no name of the path."""
    type_ = types.types[column]
    if type_.kind == TypeKind.STRUCT:
        yield from zip(type_.field_names, type_.subtypes, strict=True)
    elif type_.kind == TypeKind.LIST:
        yield from (("_elem", type_.subtypes[0]), ("", type_.subtypes[0]))
    elif type_.kind == TypeKind.MAP:
        key, value = type_.subtypes
        yield from (("_key", key), ("_value", value), ("", value))


def _companions(types: TypeTree, column: int, child: int) -> Iterable[int]:
    """Return the columns that must be read with a child: a map needs both keys and values."""
    if types.types[column].kind != TypeKind.MAP:
        return ()
    key, value = types.types[column].subtypes
    return types.subtree(key) if child == value else types.subtree(value)


def _paths(types: TypeTree) -> Iterator[str]:
    """Yield all paths, for suggestions in errors."""
    for column in range(1, len(types)):
        yield types.path(column)
