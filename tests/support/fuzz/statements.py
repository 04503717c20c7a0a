"""Random statements that change a table, each with what it does to the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from fuzz.kinds import KINDS, Column
from fuzz.model import Model, RefusedError, SkipError, State
from fuzz.outcome import Failed, attempt
from fuzz.plain import ROW

if TYPE_CHECKING:
    from fuzz.world import Table, World


class WrongError(Exception):
    """Raised when plain Spark refuses what a statement computes: the table must refuse it alike."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed


@dataclass(frozen=True)
class Statement:
    """A statement on table number `at`; `{t}` and `{o}` stand for it and for the other one."""

    at: int
    text: str

    def expect(self, world: World) -> State | None:
        """The table's state afterwards; None: the statement does not touch rows."""
        raise NotImplementedError

    def done(self, model: Model) -> None:
        """Note what else changes once the statement has succeeded."""

    def plain(self, world: World, text: str) -> str:
        """A text with the views of plain Spark in place of the tables."""
        return text.replace("{t}", world.view(self.at)).replace("{o}", world.view(1 - self.at))


def _incoming(world: World, table: Table, queries: list[str]) -> pa.Table:
    """What inserts into an empty table of the same columns leave in it: values as they would be stored."""
    columns = table.model.state.columns
    shown = world.plain.empty(columns)
    names = ", ".join([*(column.name for column in columns), ROW])
    try:
        for query in queries:
            failed = attempt(
                lambda query=query: world.spark.sql(f"INSERT INTO {shown.table} ({names}) {query}")
            )
            if isinstance(failed, Failed):
                raise WrongError(failed)
        return shown.rows()
    finally:
        shown.drop()


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO or INSERT OVERWRITE of a query with all columns."""

    query: str
    overwrite: bool = False

    def expect(self, world: World) -> State:
        table = world.tables[self.at]
        names = ", ".join(table.model.state.names())
        query = self.plain(world, self.query)
        rows = _incoming(world, table, [f"SELECT {names}, 0L FROM ({query}) AS x ({names})"])
        rows = rows.drop_columns([ROW])
        return table.model.only(rows) if self.overwrite else table.model.added(rows)


@dataclass(frozen=True)
class Delete(Statement):
    """DELETE FROM."""

    condition: str

    def expect(self, world: World) -> State:
        condition = self.plain(world, self.condition)
        hidden = world.hidden(self.at)
        found = attempt(lambda: world.spark.sql(f"SELECT {ROW} FROM {hidden} WHERE {condition}").toArrow())
        if isinstance(found, Failed):
            raise WrongError(found)
        return world.tables[self.at].model.without(found.column(0).to_pylist())


@dataclass(frozen=True)
class Update(Statement):
    """UPDATE ... SET."""

    assignments: tuple[tuple[str, str], ...]
    condition: str

    def expect(self, world: World) -> State:
        table = world.tables[self.at]
        new = dict(self.assignments)
        values = ", ".join(self.plain(world, new.get(name, name)) for name in table.model.state.names())
        condition = self.plain(world, self.condition)
        query = f"SELECT {values}, {ROW} FROM {world.hidden(self.at)} WHERE {condition}"
        return table.model.changed(_incoming(world, table, [query]))


@dataclass(frozen=True)
class Clause:
    """One WHEN of a MERGE: `who` is matched, missing or unsourced; no values: DELETE."""

    who: str
    condition: str
    values: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """As SQL has it."""
        who = {"matched": "MATCHED", "missing": "NOT MATCHED", "unsourced": "NOT MATCHED BY SOURCE"}[self.who]
        if not self.values:
            action = "DELETE"
        elif self.who == "missing":
            names, values = zip(*self.values, strict=True)
            action = f"INSERT ({', '.join(names)}) VALUES ({', '.join(values)})"
        else:
            action = "UPDATE SET " + ", ".join(f"{name} = {value}" for name, value in self.values)
        return f"WHEN {who} AND {self.condition} THEN {action}"


@dataclass(frozen=True)
class Merge(Statement):
    """MERGE INTO {t} AS t USING (source) AS s ON on."""

    source: str
    on: str
    clauses: tuple[Clause, ...]

    def expect(self, world: World) -> State:
        table = world.tables[self.at]
        self._check_cardinality(world)
        upserts: list[str] = []
        deleted: list[int] = []
        for index, clause in enumerate(self.clauses):
            rows = self._rows_of(world, index)
            if clause.values:
                new = dict(clause.values)
                prefix = "CAST(NULL AS {})" if clause.who == "missing" else "t.{}"
                values = [
                    new.get(c.name, prefix.format(c.kind.sql if clause.who == "missing" else c.name))
                    for c in table.model.state.columns
                ]
                number = "-1L" if clause.who == "missing" else f"t.{ROW}"
                upserts.append(f"SELECT {', '.join(values)}, {number} {rows}")
            else:
                deleted += world.spark.sql(f"SELECT t.{ROW} {rows}").toArrow().column(0).to_pylist()
        changed = _incoming(world, table, upserts) if upserts else None
        return _both(table.model, changed, deleted)

    def _check_cardinality(self, world: World) -> None:
        twice = (
            f"SELECT 1 FROM {world.hidden(self.at)} AS t JOIN ({self.plain(world, self.source)}) AS s "
            f"ON {self.on} GROUP BY t.{ROW} HAVING count(*) > 1"
        )
        if any(clause.who == "matched" for clause in self.clauses) and world.spark.sql(twice).count():
            raise SkipError("a row that two rows of the source match")

    def _rows_of(self, world: World, index: int) -> str:
        clause = self.clauses[index]
        before = [each for each in self.clauses[:index] if each.who == clause.who]
        conditions = [*(f"({each.condition}) IS NOT TRUE" for each in before), f"({clause.condition})"]
        t = f"{world.hidden(self.at)} AS t"
        s = f"({self.plain(world, self.source)}) AS s"
        joined = {
            "matched": f"{t} JOIN {s}",
            "missing": f"{s} LEFT ANTI JOIN {t}",
            "unsourced": f"{t} LEFT ANTI JOIN {s}",
        }[clause.who]
        return f"FROM {joined} ON {self.on} WHERE {' AND '.join(conditions)}"


def _both(model: Model, changed: pa.Table | None, deleted: list[int]) -> State:
    if changed is None:
        return model.without(deleted)
    if not deleted:
        return model.changed(changed)
    if not model.keys:
        rows = changed.append_column("at", changed.column(ROW))
        return _append_both(model, rows.drop_columns(["at"]), deleted)
    gone = set(deleted)
    keys = {model.keys_of(model.state.rows)[number] for number in gone}
    if keys & set(model.keys_of(changed)):
        raise SkipError("a key that one statement deletes and writes")
    upserted = model.changed(changed)
    survivors = [key not in keys for key in model.keys_of(upserted.rows)]
    left = model.without(deleted)
    return State(left.columns, left.ids, upserted.rows.filter(pa.array(survivors, pa.bool_())), left.graves)


def _append_both(model: Model, changed: pa.Table, deleted: list[int]) -> State:
    numbers = [number for number in changed.column(ROW).to_pylist() if number >= 0]
    model.check(changed)
    left = model.without([*numbers, *deleted])
    values = changed.select(model.state.names()).cast(left.rows.schema)
    return State(left.columns, left.ids, pa.concat_tables([left.rows, values]), left.graves)


# --- columns -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AddColumn(Statement):
    """ALTER TABLE ... ADD COLUMN."""

    column: Column

    def expect(self, world: World) -> State:
        table = world.tables[self.at]
        if self.column.name in table.model.state.names():
            raise RefusedError("EXISTS")
        query = f"SELECT *, CAST(NULL AS {self.column.kind.sql}) AS {self.column.name} FROM {{t}}"
        rows = world.spark.sql(self.plain(world, query)).toArrow()
        table.next_id += 1
        return table.model.with_column(self.column, rows, table.next_id)


@dataclass(frozen=True)
class DropColumn(Statement):
    """ALTER TABLE ... DROP COLUMN."""

    name: str

    def expect(self, world: World) -> State:
        model = world.tables[self.at].model
        if self.name in model.fixed:
            raise RefusedError("")
        return model.drop(self.name)


@dataclass(frozen=True)
class RenameColumn(Statement):
    """ALTER TABLE ... RENAME COLUMN."""

    old: str
    new: str

    def expect(self, world: World) -> State:
        model = world.tables[self.at].model
        if self.old in model.partitions:
            raise RefusedError("")
        return model.rename(self.old, self.new)


@dataclass(frozen=True)
class Retype(Statement):
    """ALTER TABLE ... ALTER COLUMN ... TYPE."""

    name: str
    sql: str

    def expect(self, world: World) -> State:
        model = world.tables[self.at].model
        if self.name in model.fixed:
            raise RefusedError("")
        columns = [
            f"CAST({name} AS {self.sql}) AS {name}" if name == self.name else name
            for name in model.state.names()
        ]
        rows = world.spark.sql(self.plain(world, f"SELECT {', '.join(columns)} FROM {{t}}")).toArrow()
        changed = tuple(
            Column(c.name, KINDS[self.sql], c.nullable) if c.name == self.name else c
            for c in model.state.columns
        )
        return State(changed, model.state.ids, rows, model.state.graves)


# --- snapshots -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call(Statement):
    """A procedure that leaves the rows as they are; `then` notes what it does to the model."""

    then: Callable[[Model], None] | None = None

    def expect(self, world: World) -> State | None:
        return None

    def done(self, model: Model) -> None:
        if self.then is not None:
            self.then(model)
