"""The columns of a table and of new data merged: columns that come, wider types, and columns of history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.options import REFUSE_TYPE_CHANGE
from lockgate.framework.store.confidential.confidential_columns import confidential_in
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    ChangeNullability,
    ChangeType,
    Position,
    RenameColumn,
    SchemaChange,
)
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataField, DataType, can_widen

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def merged_columns(
    table: TableHandle, wanted: Sequence[tuple[str, DataType]], action: str
) -> list[MergedColumn]:
    """Return what columns of new data change of a table; `action` is what happens to values that do not fit.

    A type without NOT NULL lets its column hold nulls from then on, unless that is part of the primary key.
    Raises InputError for a column that is named twice, or as another but for case, and UnsupportedError for
    values that would not fit, or must not become history.
    """
    names = [name for name, _ in wanted]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"columns: {twice[0]!r} is named twice")
    merges = [found for name, data_type in wanted if (found := _merge(table.schema, name, data_type))]
    lost = [each for each in merges if each.history is not None]
    if lost and action == REFUSE_TYPE_CHANGE:
        raise UnsupportedError(
            f"table {table.identifier}: values of {', '.join(map(str, lost))}: give such a column "
            "another name, or keep its old values in another column by on_type_change => 'history'"
        )
    for each in lost:
        _check_history(table.schema, each)
    return merges


def changes_of(merges: Iterable[MergedColumn]) -> list[SchemaChange]:
    """Return the changes of the schema that merges make."""
    return [change for each in merges for change in each.changes]


@dataclass(frozen=True)
class MergedColumn:
    """What becomes of one column."""

    name: str
    type: DataType
    old: DataField | None
    history: str | None = None
    drops_not_null: bool = False

    @property
    def changes(self) -> Sequence[SchemaChange]:
        """Return the changes of the schema."""
        path = (self.name,)
        if self.old is None:
            return (AddColumn(path, self.type.with_nullable(True)),)
        if self.history is None:
            nullability = (ChangeNullability(path, nullable=True),) if self.drops_not_null else ()
            return (*nullability, ChangeType(path, self.type))
        added = AddColumn(path, self.type.with_nullable(True), position=Position(self.history))
        # New rows have no value for the old column.
        return (
            ChangeNullability(path, nullable=True),
            RenameColumn(path, self.history),
            added,
        )

    @property
    def row(self) -> tuple[Any, ...]:
        """Return the row of the result: name, what happens, new type, old type, column of the history."""
        if self.old is None:
            return (self.name, "added", self.type.bare_name, None, None)
        old = self.old.type
        if self.drops_not_null and can_widen(self.type, old):
            return (self.name, "nullable", self.type.bare_name, str(old), None)
        change = "widened" if self.history is None else "history"
        return (self.name, change, self.type.bare_name, old.bare_name, self.history)

    def __str__(self) -> str:
        assert self.old is not None, "a new column has no old values"
        return f"{self.name!r} ({self.old.type.bare_name}) are not all of type {self.type.bare_name}"


def _merge(schema: TableSchema, name: str, data_type: DataType) -> MergedColumn | None:
    """Return what a column of new data changes; None if the table has room for its values."""
    old = next((each for each in schema.fields if each.name == name), None)
    if old is None:
        other = [each for each in schema.field_names if each.lower() == name.lower()]
        if other:
            raise InputError(f"columns: {name!r} differs from the column {other[0]!r} in case only")
        return MergedColumn(name, data_type, None)
    drops_not_null = data_type.nullable and not old.type.nullable and name not in schema.primary_keys
    if can_widen(data_type, old.type):
        return MergedColumn(name, old.type, old, drops_not_null=True) if drops_not_null else None
    history = None if can_widen(old.type, data_type) else f"{name}_v{schema.id}"
    return MergedColumn(name, data_type, old, history, drops_not_null)


def _check_history(schema: TableSchema, merge: MergedColumn) -> None:
    """Refuse what a new column without the old one's options would break."""
    name = merge.name
    if merge.history in schema.field_names:
        raise InputError(f"column {name!r} cannot become {merge.history!r}: there is such a column already")
    if name in (*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys, *schema.sequence_fields):
        raise UnsupportedError(
            f"column {name!r} finds or orders the table's rows: its type cannot change to {merge.type}"
        )
    if name in confidential_in(schema).top_level(schema):
        raise UnsupportedError(
            f"column {name!r} is encrypted, and a new column of its name would not be: give the new data "
            "another name, and encrypt that"
        )
