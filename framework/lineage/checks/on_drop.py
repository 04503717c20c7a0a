"""Check before a table or column with readers is dropped or renamed: warn or refuse."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from lockgate.errors import LineageError, LineageWarning, LockgateError, NotFoundError, warn_user
from lockgate.framework.lineage.lineage_options import ON_DROP, choice_of
from lockgate.framework.lineage.model.names import joined, split_name
from lockgate.framework.lineage.pending_statements import wait_for_this_process
from lockgate.framework.lineage.questions.impact import ColumnReader, readers
from lockgate.framework.lineage.questions.vertices import find
from lockgate.framework.lineage.readable import Readable
from lockgate.framework.lineage.warehouse_lineage import WarehouseLineage, lineage_of

if TYPE_CHECKING:
    import sqlite3

    from lockgate.framework.plugins import PlannedChange

# The largest number of readers in a message.
_MAX_NAMED = 10


def judge(change: PlannedChange) -> None:
    """Warn of a change that may break readers; LineageError if an option refuses it."""
    choice = choice_of(ON_DROP, change.options, change.catalog.options, default="warn")
    if choice == "allow":
        return
    readers = _readers(change)
    if not readers:
        return
    may_read = Readable(change.catalog)
    text = _message(change, [each for each in readers if may_read(each.vertex)], len(readers))
    if choice == "refuse":
        raise LineageError(f"{text}; refused by {ON_DROP.key!r}")
    warn_user(text, LineageWarning)


def _readers(change: PlannedChange) -> list[ColumnReader]:
    wait_for_this_process()
    lineage = lineage_of(change.catalog)
    if not lineage.is_ready():
        return []
    return _recorded_readers(lineage, change)


def _recorded_readers(lineage: WarehouseLineage, change: PlannedChange) -> list[ColumnReader]:
    along = {joined(name.split(".", 1)) for name in change.along}
    with lineage.reading() as database:
        starts = _starts(database, change)
        column_readers = readers(database, starts) if starts else []
    return [each for each in column_readers if _is_permanent(each, along)]


def _starts(database: sqlite3.Connection, change: PlannedChange) -> Collection[int]:
    table = joined(change.table.split(".", 1))
    columns = [joined(path) for path in change.columns]
    starts: set[int] = set()
    for name in [f"{table}.{column}" for column in columns] or [table]:
        with suppress(NotFoundError):  # it has no recorded lineage
            match = find(database, name)
            if _is_this_table(database, match.dataset, change):
                starts |= {*match.fields}
    return starts


def _is_this_table(database: sqlite3.Connection, dataset: int, change: PlannedChange) -> bool:
    """Return whether the dataset is this table, and not an earlier one with the same name."""
    [uid] = database.execute("SELECT uid FROM dataset WHERE id = ?", (dataset,)).fetchone()
    try:
        return uid in ("", str(change.catalog.load_table(change.table).table_id))
    except LockgateError:  # an unreadable table can still have readers
        return True


def _is_permanent(reader: ColumnReader, along: Collection[str]) -> bool:
    """Return whether a reader is stored; results and temporary views end with their session."""
    vertex = reader.vertex
    if not reader.succeeded or vertex.type in ("result", "cache"):
        return False
    if vertex.type == "view" and len(split_name(vertex.name)[0]) == 1:
        return False
    return bool(vertex.namespace) or vertex.name not in along


def _message(change: PlannedChange, readable_readers: list[ColumnReader], count: int) -> str:
    columns = ", ".join(".".join(path) for path in change.columns)
    names = ", ".join(f"{each.vertex.qualified} ({each.process})" for each in readable_readers[:_MAX_NAMED])
    rest = count - len(readable_readers[:_MAX_NAMED])
    more = f" and {rest} more" if rest and names else f"{rest} that are hidden from you" if rest else ""
    subject = f"column {columns} of {change.table}" if columns else f"table {change.table}"
    arguments = f"table => '{change.table}'"
    if len(change.columns) == 1:
        arguments += f", `column` => '{columns}'"
    return (
        f"{subject} is {change.change} while others are made from it: {names}{more}; "
        f"CALL sys.impact({arguments}) shows all"
    )
