"""`merge_schema`: a table's columns become those of old and new data together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lockgate.errors import InputError, UnsupportedError, UnsupportedTypeError, nearest
from lockgate.framework.options.schema_options import HISTORY, ON_TYPE_CHANGE, REFUSE
from lockgate.framework.store import Table, TableSchema
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    ChangeType,
    Position,
    RenameColumn,
    SchemaChange,
)
from lockgate.framework.store.schema.secret_columns import secrets_of
from lockgate.framework.store.schema.wider_types import can_widen
from lockgate.framework.types import DataField, DataType, parse_type
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`,()]+))\s+(.+?)\s*", re.DOTALL)
_ACTIONS = (REFUSE, HISTORY)
# At commas outside parentheses, such as those of DECIMAL(10, 2).
_BETWEEN = re.compile(r",(?![^()]*\))")


class MergeSchema(Procedure):
    """Adds new columns and widens types in one change of the schema; no file is read or written.

    A column whose old values do not fit its new type stays under the name `<column>_v<schema id>`, and a new
    column takes its name, if `on_type_change` is 'history'. Keys, partition columns and encrypted columns
    cannot become history.
    """

    name = "merge_schema"
    description = "Give a table the columns and types of new data too."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("columns", "STRING", doc="columns of the new data: 'id BIGINT, name STRING'"),
        Parameter(
            "on_type_change",
            "STRING",
            None,
            "'refuse' or 'history' (default: the table's option schema.on-type-change)",
        ),
        Parameter("dry_run", "BOOLEAN", False, "only show the changes"),
    )
    result = (
        ("column", "STRING"),
        ("change", "STRING"),
        ("type", "STRING"),
        ("old_type", "STRING"),
        ("history_column", "STRING"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Merge; one row for each column that changes, none if the table has all columns already."""
        table = context.table(arguments["table"])
        action = _action(table, arguments["on_type_change"])
        wanted = list(_columns(arguments["columns"]))
        names = [name for name, _ in wanted]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InputError(f"columns: {twice[0]!r} is named twice")
        merges = [found for name, data_type in wanted if (found := _merge(table.schema, name, data_type))]
        lost = [each for each in merges if each.history is not None]
        if lost and action == REFUSE:
            raise UnsupportedError(
                f"table {table.identifier}: values of {', '.join(map(str, lost))}: give such a column "
                "another name, or keep its old values in another column by on_type_change => 'history'"
            )
        for each in lost:
            _check_history(table.schema, each)
        if merges and not arguments["dry_run"]:
            changes = [change for each in merges for change in each.changes]
            context.catalog.alter_table(table.identifier, changes)
        return [each.row for each in merges]


def _action(table: Table, text: str | None) -> str:
    if text is None:
        return str(table.schema.table_options.get_option(ON_TYPE_CHANGE))
    if text.lower() not in _ACTIONS:
        raise InputError(f"on_type_change cannot be {text!r}{nearest(text, _ACTIONS)}")
    return text.lower()


def _columns(text: str) -> Iterator[tuple[str, DataType]]:
    for part in _BETWEEN.split(text):
        match = _COLUMN.fullmatch(part)
        if match is None:
            raise InputError(f"columns are written 'id BIGINT, name STRING', not {part.strip()!r}")
        name = match[1].replace("``", "`") if match[1] else match[2]
        try:
            yield name, parse_type(match[3].upper()).with_nullable(True)
        except UnsupportedTypeError as error:
            raise InputError(
                f"columns: {name!r}: {error}; add columns of other types by ALTER TABLE"
            ) from None


@dataclass(frozen=True)
class _Merge:
    """What becomes of one column."""

    name: str
    type: DataType
    old: DataField | None
    history: str | None = None

    @property
    def changes(self) -> Sequence[SchemaChange]:
        path = (self.name,)
        if self.old is None:
            return (AddColumn(path, self.type),)
        if self.history is None:
            return (ChangeType(path, self.type),)
        position = Position(self.history)
        return (RenameColumn(path, self.history), AddColumn(path, self.type, position=position))

    @property
    def row(self) -> tuple[Any, ...]:
        change = "added" if self.old is None else "widened" if self.history is None else "history"
        return (self.name, change, str(self.type), self.old and self.old.type.bare_name, self.history)

    def __str__(self) -> str:
        assert self.old is not None, "a new column has no old values"
        return f"{self.name!r} ({self.old.type.bare_name}) are not all of type {self.type}"


def _merge(schema: TableSchema, name: str, data_type: DataType) -> _Merge | None:
    """Return what a column of new data changes; None if the table has room for its values."""
    old = next((each for each in schema.fields if each.name == name), None)
    if old is None:
        other = [each for each in schema.field_names if each.lower() == name.lower()]
        if other:
            raise InputError(f"columns: {name!r} differs from the column {other[0]!r} in case only")
        return _Merge(name, data_type, None)
    if can_widen(data_type, old.type):
        return None
    history = None if can_widen(old.type, data_type) else f"{name}_v{schema.id}"
    return _Merge(name, data_type, old, history)


def _check_history(schema: TableSchema, merge: _Merge) -> None:
    """Refuse what a new column without the old one's options would break."""
    name = merge.name
    if merge.history in schema.field_names:
        raise InputError(f"column {name!r} cannot become {merge.history!r}: there is such a column already")
    if name in (*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys, *schema.sequence_fields):
        raise UnsupportedError(
            f"column {name!r} finds or orders the table's rows: its type cannot change to {merge.type}"
        )
    if name in secrets_of(schema).top_level(schema):
        raise UnsupportedError(
            f"column {name!r} is encrypted, and a new column of its name would not be: give the new data "
            "another name, and encrypt that"
        )
