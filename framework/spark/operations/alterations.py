"""Operations that change tables: ALTER TABLE, COMMENT ON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.access import Action
from lockgate.framework.options import ON_TYPE_CHANGE
from lockgate.framework.spark.context.operation_context import OperationContext, session_choice
from lockgate.framework.spark.messages.table_messages import AlterRequest, MergeColumnsRequest, TableSpec
from lockgate.framework.spark.operations.catalog_operations import describe
from lockgate.framework.store import (
    AddColumn,
    ChangeComment,
    ChangeDefault,
    ChangeNullability,
    ChangeType,
    DropColumn,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SetComment,
    SetOption,
    changes_of,
    grant,
    merged_columns,
)
from lockgate.framework.types import DataType, from_spark_type

if TYPE_CHECKING:
    from lockgate.framework.store import Table
    from lockgate.framework.store.ddl.schema_changes import SchemaChange

# Paimon's option of a write; here one of streams, since Spark fits the rows of a batch to the table.
MERGE_SCHEMA = "write.merge-schema"
# Properties that Spark keeps with a table, but users may not set.
_NOT_SET = frozenset({"provider", "location", "external", "is_managed_location"})


def alter_table(context: OperationContext, request: AlterRequest) -> TableSpec:
    """Apply the changes of an ALTER TABLE, all or none, and describe the table that came of it."""
    changes = [_CHANGES[change["change"]](change) for change in request["changes"]]
    _refuse_replacement(context, changes)
    adds = any(isinstance(change, AddColumn) for change in changes)
    table = context.requested_catalog().alter_table(
        context.identifier(), changes, on_plaintext=session_choice(context) if adds else None
    )
    latest = table.latest_snapshot()
    return describe(context, table, 0 if latest is None else latest.id)


def merges_schema(options: Mapping[str, str]) -> bool:
    """Say whether the writer of a stream wants the table to have the columns of its rows too."""
    return any(key.lower() == MERGE_SCHEMA and text.lower() == "true" for key, text in options.items())


def merge_columns(context: OperationContext, request: MergeColumnsRequest) -> TableSpec:
    """Give a table the columns and types of a stream's rows too, and describe the table that came of it."""
    table = context.table()
    given = request["schema"]["fields"] if isinstance(request["schema"], dict) else []
    wanted = [(_name_in(table, field["name"]), from_spark_type(field["type"])) for field in given]
    action = str(table.schema.table_options.get_option(ON_TYPE_CHANGE))
    # Nearly every column of a frame may be null for Spark, so that NOT NULL stays, and refuses nulls.
    merges = merged_columns(table, [(name, each.with_nullable(False)) for name, each in wanted], action)
    if merges:
        grant(table, Action.ALTER)
        adds = any(each.old is None or each.history is not None for each in merges)
        table = context.requested_catalog().alter_table(
            context.identifier(), changes_of(merges), on_plaintext=session_choice(context) if adds else None
        )
    latest = table.latest_snapshot()
    return describe(context, table, 0 if latest is None else latest.id)


def _name_in(table: Table, name: str) -> str:
    """Return the table's spelling of a column, which Spark finds in any case."""
    return next((own for own in table.schema.field_names if own.lower() == name.lower()), name)


def _refuse_replacement(context: OperationContext, changes: Sequence[SchemaChange]) -> None:
    """Refuse REPLACE COLUMNS, which comes as every column dropped and others added."""
    dropped = {change.path for change in changes if isinstance(change, DropColumn)}
    if dropped and any(isinstance(change, AddColumn) for change in changes):
        names = context.table().schema.field_names
        if dropped >= {(name,) for name in names}:
            raise UnsupportedError(
                "REPLACE COLUMNS would empty every column, because a new column with an old name starts "
                "empty: use ADD COLUMNS, DROP COLUMNS, RENAME COLUMN and ALTER COLUMN"
            )


def _add(change: Mapping[str, Any]) -> AddColumn:
    if change["default"] is not None:
        raise UnsupportedError(
            f"column {'.'.join(change['path'])!r} cannot be added with a DEFAULT: existing rows get null; "
            "use ADD COLUMN without it, then ALTER COLUMN ... SET DEFAULT for new rows"
        )
    data_type: DataType = from_spark_type(change["type"])
    data_type = data_type.with_nullable(change["nullable"])
    return AddColumn(_path(change), data_type, change["comment"], _position(change["position"]))


def _position(position: Mapping[str, Any] | None) -> Position | None:
    if position is None:
        return None
    return Position(position["after"])


def _path(change: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(change["path"])


def _set(change: Mapping[str, Any]) -> SchemaChange:
    key, value = change["key"], change["value"]
    if key in _NOT_SET:
        raise InputError(f"the property {key!r} cannot be set: the catalog decides where tables are")
    return SetComment(value) if key == "comment" else SetOption(key, value)


def _remove(change: Mapping[str, Any]) -> SchemaChange:
    return SetComment(None) if change["key"] == "comment" else RemoveOption(change["key"])


_CHANGES: dict[str, Callable[[Mapping[str, Any]], SchemaChange]] = {
    "add": _add,
    "drop": lambda change: DropColumn(_path(change), if_exists=change["if_exists"]),
    "rename": lambda change: RenameColumn(_path(change), change["name"]),
    "type": lambda change: ChangeType(_path(change), from_spark_type(change["type"])),
    "nullability": lambda change: ChangeNullability(_path(change), change["nullable"]),
    "default": lambda change: ChangeDefault(_path(change), change["default"] or None),
    "comment": lambda change: ChangeComment(_path(change), change["comment"]),
    "move": lambda change: MoveColumn(_path(change), _position(change["position"]) or Position()),
    "set": _set,
    "remove": _remove,
}

OPERATIONS = {"table.alter": alter_table, "table.merge_columns": merge_columns}
