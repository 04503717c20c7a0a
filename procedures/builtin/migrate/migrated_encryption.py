"""Encryption of the new table: that of the source's files, unless options change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockgate.errors import InputError
from lockgate.framework.options import ORC_ENCRYPT, ORC_MASK
from lockgate.framework.orc import parse_encrypt, spell, split
from lockgate.framework.store import TableSchema
from lockgate.procedures.builtin.migrate.file_adoption import Inspected


def encryption_options(inspected: Sequence[Inspected], options: Mapping[str, str]) -> dict[str, str]:
    """Return the values of `orc.encrypt` and `orc.mask` that `options` leave open.

    Raises InputError if the files disagree and the options do not decide, or if the options leave a column
    in the clear that the files encrypt.
    """
    found: dict[str, str] = {}
    if ORC_ENCRYPT.key not in options:
        found |= _option(ORC_ENCRYPT.key, _agreed("encrypted", ORC_ENCRYPT.key, inspected, "encryption"))
    wanted = parse_encrypt(options.get(ORC_ENCRYPT.key, found.get(ORC_ENCRYPT.key)))
    _check_none_is_revealed(inspected, wanted)
    if ORC_MASK.key not in options:
        masks = _agreed("masked", ORC_MASK.key, inspected, "masks")
        named = {spell(split(name)) for name in wanted}
        found |= _option(ORC_MASK.key, {name: mask for name, mask in masks.items() if name in named})
    return found


def _agreed(what: str, option: str, inspected: Sequence[Inspected], attribute: str) -> dict[str, str]:
    """Return keys or masks by column, if all files have the same."""
    ways = {tuple(sorted(getattr(each, attribute).items())) for each in inspected}
    if len(ways) > 1:
        first, second = (
            "; ".join(f"{name}: {how}" for name, how in way) or "none" for way in sorted(ways)[:2]
        )
        raise InputError(
            f"the source's files are not all {what} alike ({first} and {second}): say how the new table "
            f"shall be by options => '{option}=...:column,column'"
        )
    return dict(ways.pop()) if ways else {}


def check_nothing_is_revealed(inspected: Sequence[Inspected], schema: TableSchema) -> None:
    """Raise InputError if files encrypt a column that a table would store in the clear."""
    _check_none_is_revealed(inspected, parse_encrypt(schema.table_options.get_option(ORC_ENCRYPT)))


def _check_none_is_revealed(inspected: Sequence[Inspected], wanted: Mapping[str, str]) -> None:
    """Raise InputError if a column that is encrypted would be stored in the clear."""
    named = [split(name) for name in wanted]
    for each in inspected:
        for column in each.encryption:
            path = split(column)
            if not any(path[: len(name)] == name for name in named):
                raise InputError(
                    f"column {column!r} is encrypted in {each.file.path}, but not by the table's "
                    f"{ORC_ENCRYPT.key}: its values would be stored in the clear; name it there, or decrypt "
                    "the files first"
                )


def _option(key: str, by_column: Mapping[str, str]) -> dict[str, str]:
    groups: dict[str, list[str]] = {}
    for column, name in by_column.items():
        groups.setdefault(name, []).append(column)
    text = ";".join(f"{name}:{','.join(columns)}" for name, columns in groups.items())
    return {key: text} if text else {}
