"""Entries of `orc.encrypt` and `orc.mask`: of one column, taken from options and put into others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockgate.framework import options as table_options
from lockgate.framework.orc import Mask, parse_encrypt, parse_mask, spell, split


@dataclass(frozen=True)
class Entry:
    """An entry about a column, or a part of one: its path, and the key or the mask's text."""

    path: tuple[str, ...]
    key: str | None = None
    mask: str | None = None


def entries_of(options: Mapping[str, str], columns: Iterable[str], column: str) -> list[Entry]:
    """Return what options say of a top-level column and its parts; `columns` are all top-level ones."""
    names = frozenset(columns)
    encrypt = parse_encrypt(options.get(table_options.ORC_ENCRYPT.key))
    if not any(_path(name, names)[0] == column for name in encrypt):
        return []
    masks: Mapping[str, Mask] = parse_mask(options.get(table_options.ORC_MASK.key))
    keys = [Entry(_path(name, names), key=key) for name, key in encrypt.items()]
    shown = [Entry(_path(name, names), mask=str(mask)) for name, mask in masks.items()]
    return [entry for entry in (*keys, *shown) if entry.path[0] == column]


def with_entries(options: Mapping[str, str], entries: Iterable[Entry], column: str) -> dict[str, str]:
    """Return options that say of `column` what `entries` say of the column they were taken from."""
    changed = dict(options)
    for entry in entries:
        option, head = _head(entry)
        added = f"{head}:{spell((column, *entry.path[1:]))}"
        before = [part for part in changed.get(option, "").split(";") if part.strip()]
        changed[option] = ";".join(before if added in before else [*before, added])
    return changed


def _head(entry: Entry) -> tuple[str, str]:
    if entry.key is not None:
        return table_options.ORC_ENCRYPT.key, spell((entry.key,))
    return table_options.ORC_MASK.key, str(entry.mask)


def _path(name: str, columns: frozenset[str]) -> tuple[str, ...]:
    return (name,) if name in columns else split(name)
