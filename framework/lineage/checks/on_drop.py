"""Tables and columns with readers, before they are dropped or renamed: warned of or refused."""

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

# Readers that a message names.
_NAMED = 10


def judge(change: PlannedChange) -> None:
    """Warn of a change that takes something away from readers; LineageError where an option refuses that."""
    choice = choice_of(ON_DROP, change.options, change.catalog.options, default="warn")
    if choice == "allow":
        return
    found = _readers(change)
    if not found:
        return
    may_read = Readable(change.catalog)
    text = _message(change, [each for each in found if may_read(each.vertex)], len(found))
    if choice == "refuse":
        raise LineageError(f"{text}; refused by {ON_DROP.key!r}")
    warn_user(text, LineageWarning)


def _readers(change: PlannedChange) -> list[ColumnReader]:
    wait_for_this_process()
    lineage = lineage_of(change.catalog)
    if not lineage.is_ready():
        return []
    return _found(lineage, change)


def _found(lineage: WarehouseLineage, change: PlannedChange) -> list[ColumnReader]:
    along = {joined(name.split(".", 1)) for name in change.along}
    with lineage.reading() as database:
        starts = _starts(database, change)
        found = readers(database, starts) if starts else []
    return [each for each in found if _is_kept(each, along)]


def _starts(database: sqlite3.Connection, change: PlannedChange) -> Collection[int]:
    table = joined(change.table.split(".", 1))
    columns = [joined(path) for path in change.columns]
    starts: set[int] = set()
    for name in [f"{table}.{column}" for column in columns] or [table]:
        with suppress(NotFoundError):  # nothing was recorded of it
            found = find(database, name)
            if _is_this_table(database, found.dataset, change):
                starts |= {*found.fields}
    return starts


def _is_this_table(database: sqlite3.Connection, dataset: int, change: PlannedChange) -> bool:
    """Return whether the lineage means the table itself, and not one that had its name before."""
    [uid] = database.execute("SELECT uid FROM dataset WHERE id = ?", (dataset,)).fetchone()
    try:
        return uid in ("", str(change.catalog.load_table(change.table).table_id))
    except LockgateError:  # a table that cannot be read can have readers all the same
        return True


def _is_kept(reader: ColumnReader, along: Collection[str]) -> bool:
    """Leave out what nobody keeps, or only a session that may have ended: results and temporary views."""
    vertex = reader.vertex
    if not reader.succeeded or vertex.type in ("result", "cache"):
        return False
    if vertex.type == "view" and len(split_name(vertex.name)[0]) == 1:
        return False
    return bool(vertex.namespace) or vertex.name not in along


def _message(change: PlannedChange, shown: list[ColumnReader], count: int) -> str:
    what = ", ".join(".".join(path) for path in change.columns)
    named = ", ".join(f"{each.vertex.qualified} ({each.process})" for each in shown[:_NAMED])
    rest = count - len(shown[:_NAMED])
    more = f" and {rest} more" if rest and named else f"{rest} that are hidden from you" if rest else ""
    of = f"column {what} of {change.table}" if what else f"table {change.table}"
    asked = f"table => '{change.table}'"
    if len(change.columns) == 1:
        asked += f", `column` => '{what}'"
    return (
        f"{of} is {change.change} while others are made from it: {named}{more}; "
        f"CALL sys.impact({asked}) shows all"
    )
