"""Random queries of `{t}` and `{o}` whose bag of rows does not depend on the order of reading."""

from __future__ import annotations

import random

from fuzz.expressions import Expressions
from fuzz.kinds import FLAT, Column
from fuzz.world import Query, World

JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


class Queries:
    """Chooses queries by the columns that the tables have now."""

    def __init__(self, pick: random.Random, world: World) -> None:
        self.pick, self.world = pick, world
        self._shown: dict[int, list[Column]] = {}

    def next(self) -> Query:
        """A query of any shape."""
        at = self.pick.randrange(len(self.world.tables))
        shapes = {
            self.filtered: 8,
            self.computed: 1,
            self.whole: 2,
            self.grouped: 3,
            self.ordered: 3,
            self.joined: 4,
            self.subquery: 3,
            self.distinct: 2,
            self.limited: 1,
            self.united: 1,
            self.window: 1,
            self.fallible: 0.7,
        }
        model = self.world.tables[at].model
        versions = [str(number) for number in model.snapshots] + [f"'{name}'" for name in model.tags]
        version = self.pick.choice(versions) if versions and self.pick.random() < 0.2 else None
        # An older state is read by its own columns.
        state = model.state if version is None else self.world.version(at, version)
        self._shown = {at: list(state.columns)}
        query = self.pick.choices(list(shapes), list(shapes.values()))[0](at)
        self._shown = {}
        query.version = version
        return query

    def filters(self, at: int, count: int) -> list[str]:
        """Conditions on one table, to be asked together."""
        return [self._of(at).predicate() for _ in range(count)]

    def _of(self, at: int, prefix: str = "") -> Expressions:
        return Expressions(self.pick, self._columns(at), prefix)

    def _columns(self, at: int) -> list[Column]:
        return self._shown.get(at) or list(self.world.tables[at].model.state.columns)

    def _flat(self, at: int) -> list[Column]:
        return [column for column in self._columns(at) if column.kind.family == FLAT]

    def _where(self, at: int) -> str:
        return self.pick.choice(
            ["", f"WHERE {self._of(at).predicate()}", f"WHERE {self._of(at).predicate()}"]
        )

    def _names(self, at: int) -> str:
        columns = self._columns(at)
        return ", ".join(
            c.name for c in self.pick.sample(columns, self.pick.randrange(1, min(5, len(columns) + 1)))
        )

    # --- one table -------------------------------------------------------------------------------

    def filtered(self, at: int) -> Query:
        return Query(at, f"SELECT {self._names(at)} FROM {{t}} WHERE {self._of(at).predicate()}")

    def computed(self, at: int) -> Query:
        expressions = self._of(at)
        values = [expressions.value(self.pick.choice(self._flat(at)).kind) for _ in range(2)]
        text = f"SELECT id, {values[0]}, {values[1]}, {expressions.predicate()} FROM {{t}} {self._where(at)}"
        return Query(at, text)

    def fallible(self, at: int) -> Query:
        condition = self._of(at).fallible() or "id = 1"
        return Query(at, f"SELECT id FROM {{t}} WHERE {condition}")

    def _aggregates(self, at: int) -> str:
        flat = self._flat(at)
        chosen = [self.pick.choice(flat) for _ in range(3)]
        ways = ["count({})", "min({})", "max({})", "count(DISTINCT {})"]
        parts = [self.pick.choice(ways).format(column.name) for column in chosen]
        parts += [f"sum(CAST({c.name} AS DECIMAL(38,0)))" for c in chosen[:1] if c.kind.whole]
        return ", ".join(["count(*)", *parts])

    def whole(self, at: int) -> Query:
        where = self.pick.choice(["", self._where(at)])
        return Query(at, f"SELECT {self._aggregates(at)} FROM {{t}} {where}", zeros=False)

    def grouped(self, at: int) -> Query:
        partitions = list(self.world.tables[at].model.partitions)
        group = self.pick.choice([self.pick.choice(self._flat(at)).name, *partitions, *partitions])
        having = self.pick.choice(["", f"HAVING count(*) > {self.pick.randrange(3)}"])
        text = (
            f"SELECT {group}, {self._aggregates(at)} FROM {{t}} {self._where(at)} GROUP BY {group} {having}"
        )
        return Query(at, text, zeros=False)

    def ordered(self, at: int) -> Query:
        flat = self._flat(at)
        chosen = self.pick.sample(flat, self.pick.randrange(1, min(4, len(flat) + 1)))
        ways = ["", "DESC", "NULLS LAST", "DESC NULLS FIRST", "ASC"]
        order = ", ".join(f"{column.name} {self.pick.choice(ways)}" for column in chosen)
        names = ", ".join(column.name for column in chosen)
        limit = f"LIMIT {self.pick.choice([1, 2, 5, 20])} " + self.pick.choice(["", "OFFSET 2"])
        return Query(at, f"SELECT {names} FROM {{t}} {self._where(at)} ORDER BY {order} {limit}", zeros=False)

    def limited(self, at: int) -> Query:
        limit = self.pick.randrange(20)
        return Query(at, f"SELECT count(*) FROM (SELECT id FROM {{t}} {self._where(at)} LIMIT {limit})")

    def distinct(self, at: int) -> Query:
        flat = self._flat(at)
        names = ", ".join(column.name for column in self.pick.sample(flat, min(2, len(flat))))
        return Query(at, f"SELECT DISTINCT {names} FROM {{t}} {self._where(at)}", zeros=False)

    def window(self, at: int) -> Query:
        part, value = (self.pick.choice(self._flat(at)).name for _ in range(2))
        place = f"rank() OVER (PARTITION BY {part} ORDER BY {value}) AS place"
        text = f"SELECT id, {place} FROM {{t}} {self._where(at)}"
        kept = self.pick.choice([text, f"SELECT * FROM ({text}) WHERE place <= 2"])
        return Query(at, kept)

    # --- two tables ------------------------------------------------------------------------------

    def _pair(self, at: int) -> tuple[str, str]:
        ours, theirs = self._flat(at), self._flat(1 - at)
        pairs = [(a.name, b.name) for a in ours for b in theirs if a.kind == b.kind]
        return self.pick.choice(pairs)

    def joined(self, at: int) -> Query:
        a, b = self._pair(at)
        on = [f"a.{a} {self.pick.choice(['=', '=', '=', '<=>'])} b.{b}"]
        if self.pick.random() < 0.4:
            on.append(self._of(1 - at, "b.").predicate(2))
        join = self.pick.choice(JOINS)
        right = "" if "SEMI" in join or "ANTI" in join else ", b.id, count(b.id)"
        hint = self.pick.choice(
            ["", "", "/*+ MERGE(b) */ ", "/*+ BROADCAST(b) */ ", "/*+ SHUFFLE_HASH(b) */ "]
        )
        where = self.pick.choice(["", f"WHERE {self._of(at, 'a.').predicate(1)}"])
        group = "a.id" if not right else "a.id, b.id"
        source = f"{{t}} a {join} {{o}} b ON {' AND '.join(on)}"
        text = f"SELECT {hint}a.id, count(*){right} FROM {source} {where} GROUP BY {group}"
        return Query(at, text)

    def subquery(self, at: int) -> Query:
        a, b = self._pair(at)
        inner = self._of(1 - at, "o.").predicate(1)
        negated = self.pick.choice(["", "NOT "])
        condition = self.pick.choice(
            [
                f"{a} {negated}IN (SELECT o.{b} FROM {{o}} o WHERE {inner})",
                f"{negated}EXISTS (SELECT 1 FROM {{o}} o WHERE o.{b} = x.{a} AND {inner})",
                f"x.{a} {self.pick.choice(['=', '<', '>='])} "
                f"(SELECT {self.pick.choice(['min', 'max'])}(o.{b}) FROM {{o}} o WHERE {inner})",
            ]
        )
        more = self.pick.choice(
            ["", f" AND {self._of(at, 'x.').predicate(1)}", f" OR {self._of(at, 'x.').predicate(2)}"]
        )
        return Query(at, f"SELECT x.id, x.{a} FROM {{t}} x WHERE {condition}{more}")

    def united(self, at: int) -> Query:
        a, b = self._pair(at)
        word = self.pick.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"])
        text = f"SELECT {a} FROM {{t}} {self._where(at)} {word} SELECT {b} FROM {{o}} {self._where(1 - at)}"
        return Query(at, text, zeros=False)
