"""Limits of keys: parts of policies that the keys of a table cannot carry.

A key hides a column from a reader of files only if the reader has no other use for it. All else needs a
server that applies the policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from lockgate.framework.access import NULL, Action, Mask, columns_named, mask_sql
from lockgate.framework.governance.requests.access_requests import access_requests
from lockgate.framework.governance.sql_masks import ORC_MASKS
from lockgate.framework.options import ORC_ENCRYPT
from lockgate.framework.orc import parse_encrypt, split
from lockgate.framework.store import key_uses, sort_columns
from lockgate.procedures import ProcedureContext, TableName, TypedProcedure

if TYPE_CHECKING:
    from lockgate.framework.governance.policy_principals import Rights
    from lockgate.framework.store import TableSchema


@dataclass(frozen=True)
class ColumnKeys:
    """The keys of a top-level column and its parts; `whole` is the key of all of it, if there is one.

    `mask` is what files have in place of its values, as an expression of SQL over the column of type `kind`;
    None if a policy's mask cannot be found there.
    """

    whole: str | None
    every: frozenset[str]
    kind: str
    mask: str | None = None


@dataclass(frozen=True, order=True)
class Limit:
    """A part of a policy that keys cannot carry; `column` and `key` are empty if it is about none."""

    column: str
    key: str | None
    reason: str


def column_keys(schema: TableSchema) -> dict[str, ColumnKeys]:
    """Return the keys of each column of a table."""
    named = parse_encrypt(schema.table_options.get_option(ORC_ENCRYPT))
    every: dict[str, set[str]] = {name: set() for name in schema.field_names}
    for path, key in named.items():
        every[split(path)[0]].add(key)
    types = {field.name: str(field.type).removesuffix(" NOT NULL") for field in schema.fields}
    masks = {
        use.column: _sql(use.mask, types[use.column])
        for use in key_uses(schema, ())
        if use.column and use.mask and use.is_found_in_files(types[use.column])
    }
    return {
        name: ColumnKeys(named.get(name), frozenset(keys), types[name], masks.get(name))
        for name, keys in every.items()
    }


def limits(
    keys: Mapping[str, ColumnKeys], rights: Rights, order: frozenset[str] | None = None
) -> Iterator[Limit]:
    """Yield what keys cannot carry of the rights of somebody who may read some columns.

    `order` are the columns by which a scan chooses among rows of one key, None if it never does.
    """
    texts = [*rights.mask_texts, rights.row_filter or ""]
    named = columns_named(texts, keys)
    stored = {name for name in rights.readable if _is_carried(keys[name], rights.whole_masks.get(name))}
    # Masks of rows that are merged do not say which row counts.
    merged = stored if order is not None else set()
    shown = (rights.readable - stored) | merged
    needed = shown | named | (order or frozenset())
    for name, column in keys.items():
        if name in rights.masked and name in shown:
            yield Limit(name, column.whole or "", "merged rows" if name in merged else "mask")
        elif name in shown:
            continue
        elif column.whole is None:
            yield Limit(name, "", "no key")
        elif name in needed:
            yield Limit(
                name, column.whole, "used by a row filter or mask" if name in named else "merged rows"
            )
        elif shared := sorted(each for each in needed if column.whole in keys[each].every):
            yield Limit(name, column.whole, f"same key as {', '.join(shared)}")
    if rights.row_filter is not None:
        yield Limit("", "", "row filter")


def _is_carried(column: ColumnKeys, mask: str | None) -> bool:
    """Return whether a reader without the key finds the mask of a policy in the files.

    Masks of two names are the same for some types: SQL redacts no floating-point number, so it is null.
    """
    return mask in ORC_MASKS and column.mask == _sql(ORC_MASKS[mask], column.kind)


def _sql(mask: str, kind: str) -> str:
    """Return a mask of ORC as SQL, of any column of a type."""
    return mask_sql(Mask(mask), "c", kind) or NULL


def order_of(schema: TableSchema) -> frozenset[str] | None:
    """Return the columns by which a scan of a table chooses among rows of one key, None if it never does."""
    return sort_columns(schema) if schema.has_primary_key else None


def by_limit(
    keys: Mapping[str, ColumnKeys], every: Iterable[Rights], order: frozenset[str] | None = None
) -> dict[Limit, list[str]]:
    """Return the holders of each limit, among those who may read something, in order."""
    found: dict[Limit, list[str]] = {}
    for rights in every:
        for limit in limits(keys, rights, order) if rights.readable else ():
            found.setdefault(limit, []).append(str(rights.principal))
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class _Arguments:
    table: TableName


@dataclass(frozen=True)
class _Row:
    column: Annotated[str | None, "a column and its key; NULL if the reason is about none"]
    key: str | None
    reason: Annotated[str, "see below"]
    holders: Annotated[list[str], "for whom: `user ann`, `group staff`, `role analysts`"]


class CheckKeys(TypedProcedure[_Arguments, _Row]):
    """Say which parts of the policies on a table its keys cannot carry."""

    name = "check_keys"
    right: ClassVar[Action | None] = None
    asks_itself = True  # for the right to grant
    needs_all_rows = False  # of keys and policies

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Return one row for each column and reason, and one for row filters."""
        name = context.identifier(arguments.table)
        access = access_requests(context.catalog.warehouse)
        access.check_grantor(name, ())
        schema = context.table(name).schema
        rights = access.rights(name, schema.field_names, has_key=schema.has_primary_key)
        found = by_limit(column_keys(schema), rights, order_of(schema))
        return [
            _Row(each.column or None, each.key or None, each.reason, whom) for each, whom in found.items()
        ]
