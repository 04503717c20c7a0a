"""Random changes of the tables of a world."""

from __future__ import annotations

import random
from collections.abc import Sequence

from fuzz.expressions import Expressions
from fuzz.kinds import FLAT, KINDS, Column
from fuzz.model import Model
from fuzz.statements import (
    AddColumn,
    Call,
    Clause,
    Delete,
    DropColumn,
    Insert,
    Merge,
    RenameColumn,
    Retype,
    Statement,
    Update,
)
from fuzz.world import World

IDS = 40


class Changes:
    """Chooses the next statement by what the tables are now."""

    def __init__(self, pick: random.Random, world: World, kinds: Sequence[str]) -> None:
        self.pick, self.world, self.kinds = pick, world, list(kinds)
        self.fresh = 0

    def next(self) -> Statement:
        """A statement on one of the tables."""
        at = self.pick.randrange(len(self.world.tables))
        makers = {
            self.insert: 9,
            self.copy: 1,
            self.update: 5,
            self.delete: 4,
            self.merge: 5,
            self.overwrite: 0.5,
            self.evolve: 3,
            self.compact: 1.5,
            self.tag: 1,
            self.roll_back: 0.7,
        }
        made = None
        while made is None:
            made = self.pick.choices(list(makers), list(makers.values()))[0](at)
        return made

    def _model(self, at: int) -> Model:
        return self.world.tables[at].model

    def _expressions(self, at: int, prefix: str = "") -> Expressions:
        return Expressions(self.pick, self._model(at).state.columns, prefix)

    # --- rows ------------------------------------------------------------------------------------

    def rows(self, at: int, nulls: float = 0.15) -> str:
        """A query of random rows, no two of one key."""
        columns, model = self._model(at).state.columns, self._model(at)
        count = self.pick.choice([1, 2, 5, 12, 25])
        ids = self.pick.sample(range(IDS), count)
        makers = Expressions(self.pick, [])
        # One value for all rows makes files whose bounds are that value.
        same = {c.name: makers.literal(c.kind) for c in columns if self.pick.random() < 0.15}
        lines = []
        for row in ids:
            values = [
                f"{row}L"
                if c.name == "id"
                else same.get(c.name) or makers.literal(c.kind, nulls if c.nullable else 0)
                for c in columns
            ]
            lines.append(f"({', '.join(values)})")
        names = ", ".join(column.name for column in columns)
        hint = self.pick.choice(["", "", "/*+ REPARTITION(3) */ "]) if not model.keys else ""
        return f"SELECT {hint}* FROM VALUES {', '.join(lines)} AS v ({names})"

    def insert(self, at: int) -> Statement:
        query = self.rows(at, self.pick.choice([0, 0.15, 0.5]))
        return Insert(at, f"INSERT INTO {{t}} {query}", query)

    def copy(self, at: int) -> Statement | None:
        """INSERT of rows of the table itself, with other ids."""
        state = self._model(at).state
        if state.rows.num_rows > 150:
            return None
        values = [f"{name} + {IDS}" if name == "id" else name for name in state.names()]
        query = (
            f"SELECT {', '.join(values)} FROM {{t}} WHERE id < {IDS} AND {self._expressions(at).predicate(1)}"
        )
        return Insert(at, f"INSERT INTO {{t}} {query}", query)

    def overwrite(self, at: int) -> Statement:
        query = self.rows(at)
        return Insert(at, f"INSERT OVERWRITE {{t}} {query}", query, overwrite=True)

    # --- row-level changes -----------------------------------------------------------------------

    def condition(self, at: int) -> str:
        """A condition on {t}, sometimes with a subquery of the other table."""
        condition = self._expressions(at).predicate(1)
        if self.pick.random() < 0.2:
            other = self._expressions(1 - at, "o.").predicate(2)
            negated = self.pick.choice(["", "NOT "])
            inner = self.pick.choice(
                [
                    f"id {negated}IN (SELECT o.id FROM {{o}} o WHERE {other})",
                    f"id > (SELECT avg(o.id) FROM {{o}} o WHERE {other})",
                ]
            )
            return f"{inner} AND {condition}" if self.pick.random() < 0.5 else inner
        if self.pick.random() < 0.15:
            return f"id % {self.pick.choice([2, 3, 5])} = 0"
        return condition

    def delete(self, at: int) -> Statement:
        condition = self.condition(at)
        return Delete(at, f"DELETE FROM {{t}} WHERE {condition}", condition)

    def update(self, at: int) -> Statement | None:
        assignments = self._assignments(at)
        if not assignments:
            return None
        condition = self.condition(at)
        listed = ", ".join(f"{name} = {value}" for name, value in assignments)
        return Update(at, f"UPDATE {{t}} SET {listed} WHERE {condition}", assignments, condition)

    def _assignments(self, at: int, prefix: str = "") -> tuple[tuple[str, str], ...]:
        model = self._model(at)
        free = [c for c in model.state.columns if c.name not in {*model.keys, "id", model.sequence}]
        chosen = self.pick.sample(free, min(len(free), self.pick.choice([1, 1, 2])))
        makers = self._expressions(at, prefix)
        return tuple((c.name, makers.value(c.kind) if c.nullable else makers.literal(c.kind)) for c in chosen)

    def merge(self, at: int) -> Statement | None:
        source = self.rows(at)
        keys = self._model(at).keys or ("id",)
        on = " AND ".join(f"t.{key} = s.{key}" for key in keys)
        if self.pick.random() < 0.15:
            on += f" AND {self._expressions(at, 't.').predicate(2)}"
        clauses = [self._matched(at) for _ in range(self.pick.choice([1, 1, 2]))]
        if self.pick.random() < 0.7 and on.count("t.") == len(keys):
            names = self._model(at).state.names()
            values = tuple((name, f"s.{name}") for name in names)
            clauses.append(Clause("missing", self._expressions(at, "s.").predicate(2), values))
        if self.pick.random() < 0.25:
            clauses.append(self._unsourced(at))
        text = " ".join(clause.text() for clause in clauses)
        return Merge(
            at, f"MERGE INTO {{t}} AS t USING ({source}) AS s ON {on} {text}", source, on, tuple(clauses)
        )

    def _matched(self, at: int) -> Clause:
        condition = self._expressions(at, self.pick.choice(["t.", "s."])).predicate(2)
        if self.pick.random() < 0.3:
            return Clause("matched", condition)
        assignments = self._assignments(at, self.pick.choice(["t.", "s."]))
        return Clause("matched", condition, assignments)

    def _unsourced(self, at: int) -> Clause:
        condition = self._expressions(at, "t.").predicate(2)
        return Clause("unsourced", condition, self._assignments(at, "t.") if self.pick.random() < 0.6 else ())

    # --- columns ---------------------------------------------------------------------------------

    def evolve(self, at: int) -> Statement | None:
        model = self._model(at)
        column = self.pick.choice(model.state.columns)
        way = self.pick.choice(["add", "add", "drop", "rename", "widen", "widen"])
        if way == "add":
            return self._add(at)
        if column.name == "id":
            return None
        if way == "drop" and len(model.state.columns) > 4:
            return DropColumn(at, f"ALTER TABLE {{t}} DROP COLUMN {column.name}", column.name)
        if way == "rename":
            self.fresh += 1
            new = f"r{self.fresh}"
            text = f"ALTER TABLE {{t}} RENAME COLUMN {column.name} TO {new}"
            return RenameColumn(at, text, column.name, new)
        wider = [sql for sql in column.kind.wider if sql in self.kinds]
        if way == "widen" and wider:
            sql = self.pick.choice(wider)
            return Retype(at, f"ALTER TABLE {{t}} ALTER COLUMN {column.name} TYPE {sql}", column.name, sql)
        return None

    def _add(self, at: int) -> Statement:
        self.fresh += 1
        columns = self._model(at).state.columns
        dropped_before = self.pick.random() < 0.3
        name = f"c{self.pick.randrange(7)}" if dropped_before else f"n{self.fresh}"
        flat = [kind for kind in self.kinds if KINDS[kind].family == FLAT or len(columns) < 8]
        column = Column(name, KINDS[self.pick.choice(flat)])
        return AddColumn(at, f"ALTER TABLE {{t}} ADD COLUMN {column.ddl}", column)

    # --- snapshots -------------------------------------------------------------------------------

    def compact(self, at: int) -> Statement:
        strategy = self.pick.choice(["full", "full", "minor"])
        return Call(
            at, f"CALL lake.sys.compact(table => '{self._named(at)}', compact_strategy => '{strategy}')"
        )

    def tag(self, at: int) -> Statement | None:
        model = self._model(at)
        if not model.snapshots:
            return None
        name, number = f"tag{len(model.tags)}_{self.fresh}", self.pick.choice(list(model.snapshots))
        self.fresh += 1

        def then(model: Model) -> None:
            model.tags[name] = (number, model.snapshots[number])

        text = (
            f"CALL lake.sys.create_tag(table => '{self._named(at)}', tag => '{name}', snapshot => {number})"
        )
        return Call(at, text, then)

    def roll_back(self, at: int) -> Statement | None:
        model = self._model(at)
        if len(model.snapshots) < 3:
            return None
        number = self.pick.choice(list(model.snapshots)[-4:-1])
        text = f"CALL lake.sys.rollback(table => '{self._named(at)}', snapshot => {number})"

        def then(model: Model) -> None:
            model.roll_back(number)
            self.world.forget(at)

        return Call(at, text, then)

    def _named(self, at: int) -> str:
        return self.world.tables[at].name.removeprefix("lake.")
