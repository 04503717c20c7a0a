"""The index database that a table's options require: `index.<kind>.columns` names columns, or `auto`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lockgate.errors import ColumnNotFoundError, OptionError, nearest
from lockgate.framework.options import parse_names
from lockgate.framework.plugins import IndexKind, plugins
from lockgate.framework.store.confidential.confidential_columns import confidential_in
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataField, DataType, Kind

AUTO = "auto"
_COLUMNS = re.compile(r"index\.([a-z][a-z0-9_]*)\.columns")
# Types of columns that are searched by single values; times, measures and texts of fixed length are not.
_CHOSEN = frozenset(
    {Kind.VARCHAR, Kind.BINARY, Kind.VARBINARY, Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT}
)


@dataclass(frozen=True)
class IndexedField:
    """A column that a kind indexes; `chosen`: by the rule of `auto`, which may leave it out again."""

    kind: str
    field: DataField
    chosen: bool


def has_table_indexes(options: Mapping[str, str]) -> bool:
    """Say whether options ask for an index database."""
    return any(_COLUMNS.fullmatch(key) for key in options)


def indexed_fields(schema: TableSchema) -> list[IndexedField]:
    """Return what segments are to index; columns and kinds that cannot be are left out, even if they are
    named.
    """
    return [each for each, kind in _wanted(schema) if not is_of_manifests(kind)]


def bounded_fields(schema: TableSchema) -> list[DataField]:
    """Return the columns whose bounds are to be kept for whole manifests, each once."""
    found = {each.field.id: each.field for each, kind in _wanted(schema) if is_of_manifests(kind)}
    return list(found.values())


def is_of_manifests(kind: IndexKind) -> bool:
    """Say whether a kind tells of manifests, and has no part in segments."""
    return bool(getattr(kind, "of_manifests", False))


def _wanted(schema: TableSchema) -> Iterator[tuple[IndexedField, IndexKind]]:
    kinds = plugins().index_kinds()
    secret = confidential_in(schema).top_level(schema)
    for name, columns in sorted(_named(schema.options)):
        kind = kinds.get(name)
        if kind is None:
            continue
        for field, chosen in _fields(schema, columns, kind):
            if field.name not in (*secret, *schema.partition_keys) and kind.accepts(field.type):
                yield IndexedField(name, field, chosen), kind


def _fields(schema: TableSchema, names: tuple[str, ...], kind: IndexKind) -> Iterator[tuple[DataField, bool]]:
    named = [name for name in names if name in schema.field_names]
    yield from ((schema.field(name), False) for name in named)
    if AUTO in names:
        chooses = getattr(kind, "chooses", _chooses)
        yield from (
            (field, True) for field in schema.fields if field.name not in named and chooses(field.type)
        )


def _chooses(data_type: DataType) -> bool:
    return data_type.kind in _CHOSEN


def _named(options: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, value in options.items():
        match = _COLUMNS.fullmatch(key)
        if match:
            yield match[1], parse_names(value)


def check_table_indexes(schema: TableSchema) -> None:
    """Check `index.*.columns` of a table that is created or altered.

    Raises OptionError for kinds that no plugin has, for types that they cannot hold, and for columns that are
    encrypted or divide the table; ColumnNotFoundError for columns that are not there.
    """
    kinds = plugins().index_kinds()
    for kind, names in _named(schema.options):
        option = f"option 'index.{kind}.columns'"
        if kind not in kinds:
            raise OptionError(f"{option}: there is no such kind{nearest(kind, list(kinds))}")
        for name in names:
            if name != AUTO or AUTO in schema.field_names:
                _check_column(schema, kinds[kind], option, name)


def _check_column(schema: TableSchema, kind: IndexKind, option: str, name: str) -> None:
    if name not in schema.field_names:
        hint = nearest(name, [*schema.field_names, AUTO])
        raise ColumnNotFoundError(f"{option}: there is no column {name!r}{hint}")
    if name in confidential_in(schema).top_level(schema):
        raise OptionError(
            f"{option}: {name!r} is encrypted, and without the key an index would show which files share a "
            "value, and let anyone guess values: remove the column from one of the two options"
        )
    if name in schema.partition_keys:
        raise OptionError(f"{option}: {name!r} is a partition column, which has one value in each file")
    if not kind.accepts(schema.field(name).type):
        raise OptionError(
            f"{option}: {name!r} is {schema.field(name).type.bare_name}, which such an index cannot hold"
        )
