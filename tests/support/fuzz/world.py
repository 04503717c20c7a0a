"""Two tables here and in plain Spark: statements run on both, and what they hold is compared."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fuzz.kinds import Column
from fuzz.model import Model, RefusedError, SkipError, State
from fuzz.outcome import Failed, alike, attempt, bag, differ
from fuzz.plain import Plain, Shown
from fuzz.statements import Statement, WrongError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


class DifferenceError(Exception):
    """Raised when the two sides disagree."""


@dataclass
class Layout:
    """How a random table is made."""

    columns: tuple[Column, ...]
    keys: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)

    @property
    def sequence(self) -> str | None:
        """The column that tells which row of a key is newest."""
        return self.options.get("sequence.field")

    def create(self, name: str) -> str:
        """The statement that makes it."""
        columns = ", ".join(column.ddl for column in self.columns)
        parts = f" PARTITIONED BY ({', '.join(self.partitions)})" if self.partitions else ""
        options = {**self.options, **({"primary-key": ",".join(self.keys)} if self.keys else {})}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        return f"CREATE TABLE {name} ({columns}){parts}" + (f" TBLPROPERTIES ({listed})" if listed else "")


@dataclass
class Table:
    """One random table: its name here, its model, and its rows in plain Spark while they are as they are."""

    name: str
    layout: Layout
    model: Model
    next_id: int
    shown: Shown | None = None


@dataclass
class Query:
    """A query of `{t}` and `{o}`, tables number `at` and the other, maybe of an older state of `{t}`."""

    at: int
    text: str
    zeros: bool = True
    version: str | None = None


class World:
    """The tables of one random history, and everything that was done with them."""

    def __init__(self, lake: Lake, database: str, plain: Plain, note: Callable[[str], None]) -> None:
        self.lake, self.database, self.plain, self.note = lake, database, plain, note
        self.spark: SparkSession = lake.spark
        self.tables: list[Table] = []
        self.comparisons = 0
        self.statements = 0

    # --- names -----------------------------------------------------------------------------------

    def view(self, at: int) -> str:
        """The view of plain Spark of a table as it is now."""
        return self._shown(at).view

    def hidden(self, at: int) -> str:
        """The table of plain Spark with the numbers of the rows."""
        return self._shown(at).table

    def _shown(self, at: int) -> Shown:
        table = self.tables[at]
        if table.shown is None:
            table.shown = self.plain.show(table.model.state.columns, table.model.state.rows)
        return table.shown

    def forget(self, at: int) -> None:
        """Show another state of a table when it is asked next."""
        self._hide(self.tables[at])

    def _hide(self, table: Table) -> None:
        if table.shown is not None:
            table.shown.drop()
            table.shown = None

    # --- statements ------------------------------------------------------------------------------

    def create(self, layout: Layout) -> None:
        """Make a table here; plain Spark shows it when it is first asked."""
        name = f"lake.{self.database}.t{uuid.uuid4().hex[:8]}"
        self._sql(layout.create(name))
        empty = self.plain.empty(layout.columns)
        rows = empty.rows().drop_columns(["row_number_"])
        empty.drop()
        state = State(layout.columns, tuple(range(len(layout.columns))), rows)
        model = Model(layout.keys, layout.partitions, layout.sequence, state)
        self.tables.append(Table(name, layout, model, len(layout.columns)))

    def change(self, statement: Statement) -> bool:
        """Run a statement here and on the model; False if its outcome is not promised."""
        table = self.tables[statement.at]
        expected: State | None = None
        error: WrongError | RefusedError | None = None
        try:
            expected = statement.expect(self)
        except SkipError:
            return False
        except (WrongError, RefusedError) as refused:
            error = refused
        text = statement.text.replace("{t}", table.name).replace("{o}", self.tables[1 - statement.at].name)
        found = attempt(lambda: self._sql(text))
        self.comparisons += 1
        if error is not None:
            _check_refused(error, found, text)
            return True
        if isinstance(found, Failed):
            raise DifferenceError(f"must succeed, fails with {found.kind}: {found.message}\n{text}")
        self._take(table, statement, expected)
        return True

    def _take(self, table: Table, statement: Statement, expected: State | None) -> None:
        if expected is not None:
            table.model.state = expected
            self._hide(table)
        statement.done(table.model)
        newest = self._handle(table).latest_snapshot()
        if newest is not None and newest.id not in table.model.snapshots:
            # One that is known keeps its columns, whatever ALTER has made of the table since.
            table.model.snapshots[newest.id] = table.model.state

    def _sql(self, text: str) -> Any:
        self.statements += 1
        self.note(text)
        return self.spark.sql(text).collect()

    def conf(self, name: str, value: str) -> None:
        """Set a conf for both sides."""
        self.note(f"SET {name}={value}")
        self.spark.conf.set(name, value)

    def _handle(self, table: Table) -> Any:
        return self.lake.catalog.load_table(table.name.removeprefix("lake."))

    # --- comparisons -----------------------------------------------------------------------------

    def check_rows(self, at: int) -> None:
        """Python and Spark read what the model has."""
        table = self.tables[at]
        wanted = bag(table.model.state.rows)
        self.comparisons += 2
        found = self._handle(table).read().select(table.model.state.names())
        _check(differ(wanted, bag(found)), f"Python reads {table.name}")
        text = f"SELECT * FROM {table.name}"
        rows = attempt(lambda: self.spark.sql(text).toArrow())
        if isinstance(rows, Failed):
            raise DifferenceError(f"fails with {rows.kind}: {rows.message}\n{text}")
        _check(differ(wanted, bag(rows)), text)

    def compare(self, query: Query) -> None:
        """Run a query here and in plain Spark."""
        here, there, done = self._texts(query)
        self.comparisons += 1
        try:
            wanted = attempt(lambda: self.spark.sql(there).toArrow())
            found = attempt(lambda: self.spark.sql(here).toArrow())
        finally:
            done()
        if isinstance(wanted, Failed) != isinstance(found, Failed):
            failed = wanted if isinstance(wanted, Failed) else found
            side = "plain Spark" if failed is wanted else "Lockgate"
            raise DifferenceError(f"only {side} fails, with {failed.kind}: {failed.message}\n{here}")
        if isinstance(wanted, Failed):
            if not alike(wanted, found):
                raise DifferenceError(
                    f"fails with {found.kind}, not with {wanted.kind}: {found.message}\n{here}"
                )
            return
        _check(differ(bag(wanted, query.zeros), bag(found, query.zeros)), here)

    def _texts(self, query: Query) -> tuple[str, str, Callable[[], None]]:
        table, other = self.tables[query.at], self.tables[1 - query.at]
        text = query.text.replace("{o}", "{other}")
        if query.version is None:
            there = text.replace("{t}", self.view(query.at)).replace("{other}", self.view(1 - query.at))
            return text.replace("{t}", table.name).replace("{other}", other.name), there, lambda: None
        old = self.version(query.at, query.version)
        shown = self.plain.show(old.columns, old.rows)
        there = text.replace("{t}", shown.view).replace("{other}", self.view(1 - query.at))
        here = text.replace("{t}", f"{table.name} VERSION AS OF {query.version}")
        return here.replace("{other}", other.name), there, shown.drop

    def version(self, at: int, version: str) -> State:
        """The state of a snapshot by its number, or of a tag by its quoted name."""
        model = self.tables[at].model
        if version.startswith("'"):
            return model.tags[version.strip("'")][1]
        return model.snapshots[int(version)]

    def end(self) -> None:
        """Drop everything."""
        for table in self.tables:
            self._hide(table)
            self.spark.sql(f"DROP TABLE IF EXISTS {table.name}")


def _check(difference: str, text: str) -> None:
    if difference:
        raise DifferenceError(f"{difference}\n{text}")


def _check_refused(error: WrongError | RefusedError, found: Any, text: str) -> None:
    if not isinstance(found, Failed):
        wanted = error.failed.kind if isinstance(error, WrongError) else str(error.kinds)
        raise DifferenceError(f"must fail with {wanted}, succeeds\n{text}")
    if found.internal:
        raise DifferenceError(f"fails with {found.kind}: {found.message}\n{text}")
    if isinstance(error, WrongError):
        if not alike(error.failed, found):
            raise DifferenceError(
                f"fails with {found.kind}, not with {error.failed.kind}: {found.message}\n{text}"
            )
    elif not any(kind in found.kind.upper() or kind in found.message.upper() for kind in error.kinds):
        raise DifferenceError(f"fails with {found.kind}, not with {error.kinds}: {found.message}\n{text}")
