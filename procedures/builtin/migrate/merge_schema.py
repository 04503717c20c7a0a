"""`merge_schema`: a table's columns become those of old and new data together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError, UnsupportedTypeError, nearest
from lockgate.framework.options import KEEP_HISTORY, ON_TYPE_CHANGE, REFUSE_TYPE_CHANGE
from lockgate.framework.store import Table, changes_of, merged_columns
from lockgate.framework.types import DataType, parse_type
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import TableName, TypedProcedure

_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`,()]+))\s+(.+?)\s*", re.DOTALL)
_ACTIONS = (REFUSE_TYPE_CHANGE, KEEP_HISTORY)
# At commas outside parentheses, such as those of DECIMAL(10, 2).
_BETWEEN = re.compile(r",(?![^()]*\))")


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    columns: Annotated[str, "columns of the new data: `id BIGINT, name STRING`"]
    on_type_change: Annotated[
        str | None, "`refuse` or `history` (default: the option `schema.on-type-change`)"
    ] = None
    dry_run: Annotated[bool, "only show the changes"] = False


@dataclass(frozen=True)
class _Row:
    column: Annotated[str, "a column that changes"]
    change: Annotated[str, "`added`, `widened`, `nullable` (NOT NULL is dropped) or `history`"]
    type: Annotated[str, "its new and its old type; `old_type` is NULL for a new column"]
    old_type: str | None
    history_column: Annotated[str | None, "the column with the old values; NULL if there is none"]


class MergeSchema(TypedProcedure[_Arguments, _Row]):
    """Give a table the columns and types of new data too.

    A column whose old values do not fit its new type stays under the name `<column>_v<schema id>`, and a new
    column takes its name, if `on_type_change` is 'history'. Keys, partition columns and encrypted columns
    cannot become history.
    """

    name = "merge_schema"
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Merge; one row for each column that changes, none if the table has all columns already."""
        table = context.table(arguments.table)
        action = _action(table, arguments.on_type_change)
        wanted = list(_columns(arguments.columns))
        merges = merged_columns(table, wanted, action)
        if merges and not arguments.dry_run:
            context.catalog.alter_table(table.identifier, changes_of(merges))
        return [_Row(*each.row) for each in merges]


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
            yield name, parse_type(match[3].upper())
        except UnsupportedTypeError as error:
            raise InputError(
                f"columns: {name!r}: {error}; add columns of other types by ALTER TABLE"
            ) from None
