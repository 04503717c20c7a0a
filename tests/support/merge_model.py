"""The plainest merge of rows by the engines of Paimon: one key, one row and one column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockgate.framework.store.merge.merge_plan import ColumnMerge, MergePlan

Row = dict[str, Any]
RETRACTS = (1, 3)


def merged(plan: MergePlan, rows: Sequence[Row]) -> Row | None:
    """Return what the rows of one key, from old to new, become; None for none."""
    if len(rows) == 1:
        return None if rows[0][plan.kind] in RETRACTS else rows[0]
    if plan.picks_rows:
        left = [row for row in rows if not (plan.ignore_delete and row[plan.kind] in RETRACTS)]
        if not left:
            return None
        chosen = left[0] if plan.engine == "first-row" else left[-1]
        return None if chosen[plan.kind] in RETRACTS else chosen
    model = _Aggregation(plan) if plan.engine == "aggregation" else _PartialUpdate(plan)
    for row in rows:
        model.add(row)
    return None if model.deleted() else model.values


class _Aggregation:
    def __init__(self, plan: MergePlan) -> None:
        self.plan = plan
        self.values: Row = {column.name: None for column in plan.columns}
        self.begun: set[str] = set()
        self.removed = False

    def deleted(self) -> bool:
        return self.removed

    def add(self, row: Row) -> None:
        self.removed = self.plan.remove_on_delete and row[self.plan.kind] == 3
        for column in self.plan.columns:
            if self.removed:
                self.values[column.name] = row[column.name]
            elif row[self.plan.kind] in RETRACTS:
                self.retract(column, row)
            else:
                self.take(column, self.values[column.name], row[column.name])

    def take(self, column: ColumnMerge, old: Any, new: Any) -> None:
        self.values[column.name] = self.joined(column, old, new)

    def joined(self, column: ColumnMerge, old: Any, new: Any) -> Any:  # noqa: C901 - one branch for each function
        match column.function:
            case "last" | "last_value" | "set":
                return new
            case "last_non_null_value":
                return old if new is None else new
            case "first_value" | "first_non_null_value":
                if column.name in self.begun or (new is None and column.function == "first_non_null_value"):
                    return old
                self.begun.add(column.name)
                return new
        if column.function == "listagg":
            if new is None or not new.strip():
                return old
            return new if old is None or not old.strip() else old + column.delimiter + new
        if old is None or new is None:
            return new if old is None else old
        match column.function:
            case "sum":
                return old + new
            case "max":
                return max(old, new)
            case "min":
                return min(old, new)
            case "bool_and":
                return old and new
            case "bool_or":
                return old or new
            case "collect":
                return old + new
            case "merge_map":
                return list((dict(old) | dict(new)).items())
        raise AssertionError(column.function)

    def retract(self, column: ColumnMerge, row: Row, *, late: bool = False) -> None:
        old, gone = self.values[column.name], row[column.name]
        if column.ignore_retract or (late and column.function == "set"):
            return
        match column.function:
            case "last":
                found = gone
            case "last_value" | "set":
                found = None
            case "last_non_null_value":
                found = old if gone is None else None
            case "sum":
                found = old if gone is None else (old or 0) - gone
            case "collect":
                found = old
                if old and gone:
                    left = list(gone)
                    found = [each for each in old if each not in left or left.remove(each)]
            case "merge_map":
                found = old if not old or not gone else [pair for pair in old if pair[0] not in dict(gone)]
            case _:
                raise AssertionError(column.function)
        self.values[column.name] = found


class _PartialUpdate(_Aggregation):
    def __init__(self, plan: MergePlan) -> None:
        super().__init__(plan)
        self.filled = self.inserted = False

    def deleted(self) -> bool:
        return self.removed or not self.inserted

    def add(self, row: Row) -> None:
        self.removed = False
        retracts = row[self.plan.kind] in RETRACTS
        if retracts and not self.filled:
            self.values = {name: row[name] for name in self.values}
        self.filled = True
        if not retracts:
            self.inserted = True
            for column in self.plan.columns:
                if column.group is None:
                    self.take(column, self.values[column.name], row[column.name])
        elif self.plan.ignore_delete:
            return
        elif not self.plan.groups:
            if row[self.plan.kind] == 3:
                self.removed = True
                self.values = {name: row[name] for name in self.values}
            return
        for group in self.plan.groups:
            if retracts and row[self.plan.kind] == 3 and group.removes and self.newest(group.columns, row):
                self.removed = True
                self.values = {name: row[name] for name in self.values}
                return
        for number, group in enumerate(self.plan.groups):
            self.take_group(number, group.columns, row, retracts)

    def newest(self, names: Sequence[str], row: Row) -> bool | None:
        """Say whether a row is newest in a group; None if it does not touch it."""
        if all(row[name] is None for name in names):
            return None
        return self.order(names, row) >= self.order(names, self.values)

    def order(self, names: Sequence[str], row: Row) -> list[Any]:
        return [(row[name] is not None, row[name] or 0) for name in names]

    def take_group(self, number: int, names: Sequence[str], row: Row, retracts: bool) -> None:
        newest = self.newest(names, row)
        if newest is None:
            return
        for column in self.plan.columns:
            if column.group != number or column.function == "sequence":
                continue
            if retracts:
                self.retract(column, row, late=not newest)
            elif newest:
                self.take(column, self.values[column.name], row[column.name])
            elif column.function != "set":
                self.take_late(column, row)
        if newest:
            self.values |= {name: row[name] for name in names}

    def take_late(self, column: ColumnMerge, row: Row) -> None:
        old, late = self.values[column.name], row[column.name]
        if column.function == "collect" and not column.ignore_retract:
            self.take(column, old, late)
        else:
            self.take(column, late, old)
