"""A lookup under the schema that its stream was planned with, whatever ALTER TABLE has done since.

A streaming plan is fixed when the query starts. Its lookup keeps the names and types of then, and finds the
columns by their ids; policies and keys are those of the columns as they are named now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lockgate.errors import LookupCacheError
from lockgate.framework.store import visibility
from lockgate.lookup.spec.lookup_rights import CacheRights, governed
from lockgate.lookup.spec.lookup_spec import layout_of
from lockgate.pushdown import with_columns

if TYPE_CHECKING:
    from lockgate.framework.store import Table, TableSchema
    from lockgate.lookup.spec.lookup_spec import LookupSpec


def planned_table(newest: Table, table_id: str, schema_id: int, spec: LookupSpec) -> Table:
    """Return a table under the schema that a lookup was planned with.

    Raises LookupCacheError, which says what to do, if that is another table, or if the lookup would not
    answer what its plan says: a column was dropped, or is encrypted under other keys.
    """
    if table_id != newest.table_id:
        raise LookupCacheError(
            f"the lookup on {spec.identifier} was planned with another table: it was dropped and created "
            "again, or another was renamed to its name; start the query again"
        )
    if schema_id == newest.schema.id:
        return newest
    planned = newest.with_schema(schema_id)
    columns = layout_of(spec, planned.schema).read_columns
    names = _names(planned.schema, newest.schema)
    for name in columns:
        if name not in names:
            raise LookupCacheError(
                f"column {name!r} of {spec.identifier}, which a lookup reads, was dropped or replaced after "
                "the query was planned: start the query again, without it"
            )
    layout_of(replace(renamed(spec, names), rights=None), newest.schema)
    if _keys(planned, columns) != _keys(newest, [names[name] for name in columns]):
        raise LookupCacheError(
            f"the encryption of columns of {spec.identifier} has changed since its lookup was planned: start "
            "the query again"
        )
    return planned


def governed_as_planned(newest: Table, planned: Table, spec: LookupSpec) -> LookupSpec:
    """Return the lookup with the rights of the caller, which policies grant by the names of today.

    Raises AccessDeniedError as `governed`, and LookupCacheError for rights that cannot be applied to the
    columns as they were planned.
    """
    if planned.schema.id == newest.schema.id:
        return governed(newest, spec)
    rights = governed(newest, renamed(spec, _names(planned.schema, newest.schema))).rights
    if rights is None:
        return replace(spec, rights=None)
    back = _names(newest.schema, planned.schema)
    masks = {back[name]: mask for name, mask in rights.masks.items() if name in back}
    for name in sorted({*rights.filtered_by, *(each for each in rights.masks if each in back)}):
        # Literals and masks are made for the type of today.
        if name not in back or _type(planned, back[name]) != _type(newest, name):
            raise LookupCacheError(
                f"policies of {spec.identifier} look at column {name!r}, which was added or changed after "
                "the query was planned: start the query again"
            )
    return replace(spec, rights=CacheRights(with_columns(rights.row_filter, back), masks))


def with_nulls(table: Table) -> Table:
    """Return a table whose columns may be null, except its keys: readers follow it past DROP NOT NULL."""
    schema = table.schema
    fields = tuple(
        member
        if member.type.nullable or member.name in schema.primary_keys
        else replace(member, type=member.type.with_nullable(True))
        for member in schema.fields
    )
    return (
        table if fields == schema.fields else table.sibling(table.identifier, replace(schema, fields=fields))
    )


def renamed(spec: LookupSpec, names: Mapping[str, str]) -> LookupSpec:
    """Return a lookup of the same columns by other names; `names` has one for each of them."""
    return replace(
        spec,
        keys=tuple(names[name] for name in spec.keys),
        columns=tuple(names[name] for name in spec.columns),
        where=None if spec.where is None else with_columns(spec.where, names),
    )


def _names(before: TableSchema, after: TableSchema) -> dict[str, str]:
    """Return the names in one schema of the columns of another that it has, too."""
    names = {member.id: member.name for member in after.fields}
    return {member.name: names[member.id] for member in before.fields if member.id in names}


def _type(table: Table, name: str) -> object:
    return table.schema.field(name).type.with_nullable(True)


def _keys(table: Table, columns: Iterable[str]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    seen = visibility(table)
    return [(seen.column(name).keys, seen.column(name).missing) for name in columns]
