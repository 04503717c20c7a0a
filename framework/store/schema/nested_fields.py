"""Columns inside columns: finding one by its path, and rebuilding the types around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from lockgate.errors import ColumnNotFoundError, InputError, nearest
from lockgate.framework.types import DataField, DataType, Kind

Fields: TypeAlias = tuple[DataField, ...]
# An edit of a column among its neighbours; the number is its position.
Edit = Callable[[Fields, int], Fields]

ELEMENT, KEY, VALUE = "element", "key", "value"


def spelled(path: Sequence[str]) -> str:
    """Return a path as messages show it."""
    return ".".join(path)


def edit_field(fields: Fields, path: Sequence[str], edit: Callable[[DataField], DataField]) -> Fields:
    """Replace the column at `path`; an array's element and a map's parts are columns too, without a name.

    Raises ColumnNotFoundError, which offers the nearest names.
    """

    def among(neighbours: Fields, index: int) -> Fields:
        return (*neighbours[:index], edit(neighbours[index]), *neighbours[index + 1 :])

    return edit_neighbours(fields, path, among)


def edit_neighbours(fields: Fields, path: Sequence[str], edit: Edit) -> Fields:
    """Replace the column at `path` and its siblings; raises as `edit_field`."""
    return _edit(fields, list(path), [], edit)


def _edit(fields: Fields, path: list[str], outside: list[str], edit: Edit) -> Fields:
    index = position_of(fields, path[0], outside)
    if len(path) == 1:
        return edit(fields, index)
    field = fields[index]
    changed = _edit_type(field.type, path[1:], [*outside, path[0]], edit)
    return (*fields[:index], replace(field, type=changed), *fields[index + 1 :])


def _edit_type(data_type: DataType, path: list[str], outside: list[str], edit: Edit) -> DataType:
    if data_type.kind is Kind.ROW:
        return replace(data_type, fields=_edit(data_type.fields, path, outside, edit))
    parts = {Kind.ARRAY: (ELEMENT,), Kind.MAP: (KEY, VALUE)}.get(data_type.kind, ())
    if path[0] not in parts:
        hint = f"; it has {' and '.join(parts)}" if parts else ""
        raise ColumnNotFoundError(f"there is no {path[0]!r} in {spelled(outside)} of type {data_type}{hint}")
    inner: DataType = getattr(data_type, path[0])
    if len(path) > 1:
        return _with_part(data_type, path[0], _edit_type(inner, path[1:], [*outside, path[0]], edit))
    # A part has no neighbours: it is edited as if it were the only column.
    (changed,) = _only(edit((DataField(-1, path[0], inner),), 0), [*outside, path[0]])
    return _with_part(data_type, path[0], changed.type)


def _with_part(data_type: DataType, part: str, inner: DataType) -> DataType:
    if part == ELEMENT:
        return replace(data_type, element=inner)
    return replace(data_type, key=inner) if part == KEY else replace(data_type, value=inner)


def _only(fields: Fields, path: Sequence[str]) -> Fields:
    if len(fields) != 1 or fields[0].name != path[-1]:
        raise InputError(f"{spelled(path)} is part of an array or map: it cannot be added, dropped or named")
    return fields


def position_of(fields: Fields, name: str, outside: Sequence[str] = ()) -> int:
    """Return the place of a column among its neighbours; ColumnNotFoundError offers the nearest names."""
    names = [field.name for field in fields]
    if name not in names:
        where = f" in {spelled(outside)}" if outside else ""
        raise ColumnNotFoundError(f"there is no column {name!r}{where}{nearest(name, names)}")
    return names.index(name)


def inner_fields(fields: Fields, path: Sequence[str]) -> Fields:
    """Return the columns directly inside the struct at `path`; of the table itself if the path is empty.

    Raises ColumnNotFoundError, and InputError if there is no struct.
    """
    if not path:
        return fields
    found: list[DataType] = []

    def note(field: DataField) -> DataField:
        found.append(field.type)
        return field

    edit_field(fields, path, note)
    if found[0].kind is not Kind.ROW:
        raise InputError(f"{spelled(path)} is of type {found[0]}, which has no columns inside")
    return found[0].fields


def with_inner_fields(fields: Fields, path: Sequence[str], inside: Fields) -> Fields:
    """Replace the columns directly inside the struct at `path`; those of the table if the path is empty."""
    if not path:
        return inside
    return edit_field(fields, path, lambda field: replace(field, type=replace(field.type, fields=inside)))


def numbered(data_type: DataType, highest: int) -> tuple[DataType, int]:
    """Give the columns inside a new type ids of their own; return it and the highest id in use."""
    if data_type.kind is Kind.ROW:
        fields = []
        for field in data_type.fields:
            own = highest = highest + 1
            inner, highest = numbered(field.type, highest)
            fields.append(replace(field, id=own, type=inner))
        return replace(data_type, fields=tuple(fields)), highest
    if data_type.kind is Kind.ARRAY:
        element, highest = numbered(data_type.element_type(), highest)
        return replace(data_type, element=element), highest
    if data_type.kind is Kind.MAP:
        key, highest = numbered(data_type.key_type(), highest)
        value, highest = numbered(data_type.value_type(), highest)
        return replace(data_type, key=key, value=value), highest
    return data_type, highest
