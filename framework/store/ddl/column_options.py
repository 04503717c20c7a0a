"""Options that name columns, when a column is renamed or dropped.

If an option still named the old column, it would lose effect: writers would store values of a column in
`orc.encrypt` in the clear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lockgate.framework import options as table_options
from lockgate.framework.options import parse_names
from lockgate.framework.store.schema.nested_fields import ELEMENT, KEY, VALUE
from lockgate.framework.types import DataField, Kind

_LISTS = (table_options.BUCKET_KEY.key, table_options.SEQUENCE_FIELD.key)
_ENTRIES = (table_options.ORC_ENCRYPT.key, table_options.ORC_MASK.key)
_FIELD_PREFIX, _INSIDE = "fields.", {ELEMENT: "_elem", KEY: "_key", VALUE: "_value"}

Names = tuple[str, ...]


def rename_in_options(options: dict[str, str], fields: Sequence[DataField], path: Names, name: str) -> None:
    """Let options name a column by its new name; `fields` are the columns before."""
    old = _orc_path(fields, path)
    new = (*old[:-1], name)
    _change_entries(options, lambda found: new + found[len(old) :] if found[: len(old)] == old else found)
    if len(path) == 1:
        _change_lists(options, lambda found: name if found == path[0] else found)
        _change_prefixed(options, path[0], name)


def drop_from_options(options: dict[str, str], fields: Sequence[DataField], path: Names) -> None:
    """Let options forget a column; `fields` are the columns before."""
    old = _orc_path(fields, path)
    _change_entries(options, lambda found: None if found[: len(old)] == old else found)
    if len(path) == 1:
        _change_prefixed(options, path[0], None)


def columns_in_lists(options: dict[str, str]) -> dict[str, str]:
    """Return the columns that rows are placed or ordered by, each with the option that says so."""
    return {name: option for option in _LISTS if option in options for name in parse_names(options[option])}


def _orc_path(fields: Sequence[DataField], path: Names) -> Names:
    """Return a path as ORC spells it: the parts of arrays and maps have other names there."""
    found: list[str] = []
    inside: Sequence[DataField] = fields
    data_type = None
    for name in path:
        if data_type is None or data_type.kind is Kind.ROW:
            found.append(name)
            data_type = next(field.type for field in inside if field.name == name)
        else:
            found.append(_INSIDE[name])
            data_type = {ELEMENT: data_type.element, KEY: data_type.key, VALUE: data_type.value}[name]
        inside = data_type.fields if data_type is not None else ()
    return tuple(found)


def _change_entries(options: dict[str, str], change: Callable[[Names], Names | None]) -> None:
    # Loaded only here, so that opening a table does not load the codec.
    from lockgate.framework.orc import spell, split

    for option in _ENTRIES:
        entries = []
        for entry in options.get(option, "").split(";"):
            head, _, columns = entry.partition(":")
            paths = [change(split(column.strip())) for column in columns.split(",") if column.strip()]
            kept = [spell(path) for path in paths if path is not None]
            if kept:
                entries.append(f"{head.strip()}:{','.join(kept)}")
        if option in options:
            options[option] = ";".join(entries)
            if not entries:
                del options[option]


def _change_lists(options: dict[str, str], change: Callable[[str], str]) -> None:
    for option in _LISTS:
        if option in options:
            options[option] = ",".join(change(name) for name in parse_names(options[option]))


def _change_prefixed(options: dict[str, str], old: str, new: str | None) -> None:
    """Change options such as `fields.<column>.stats-mode`."""
    prefix = f"{_FIELD_PREFIX}{old}."
    for key in [key for key in options if key.startswith(prefix)]:
        value = options.pop(key)
        if new is not None:
            options[f"{_FIELD_PREFIX}{new}.{key.removeprefix(prefix)}"] = value
