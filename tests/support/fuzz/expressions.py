"""Random predicates and values over typed columns."""

from __future__ import annotations

import random
from collections.abc import Sequence

from fuzz.kinds import FLAT, KINDS, Column, Kind

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
# What a part of a nested column is reached by, and the type it has.
PARTS = {
    "STRUCT": (
        ("{}.x", "INT"),
        ("{}.y", "STRING"),
        ("{}.deep.b", "BOOLEAN"),
        ("{}.deep.d", "DOUBLE"),
    ),
    "ARRAY": (("get({}, 0)", "INT"), ("size({})", "INT"), ("array_max({})", "INT")),
    "MAP": (("{}['a']", "DATE"), ("size({})", "INT"), ("cardinality(map_keys({}))", "INT")),
}
# These may fail on a row, so they stand alone: what is evaluated of AND and OR is not promised.
FALLIBLE = ("10 / {n} > 1", "CAST({s} AS INT) = 1", "{n} + 2147483647 > 0", "{s}::DATE < DATE'2024-01-01'")


class Expressions:
    """Random expressions over the columns of one table, whose names stand behind `prefix`."""

    def __init__(self, pick: random.Random, columns: Sequence[Column], prefix: str = "") -> None:
        self.pick, self.columns, self.prefix = pick, list(columns), prefix

    # --- values ----------------------------------------------------------------------------------

    def literal(self, kind: Kind, nulls: float = 0.0) -> str:
        """A literal of a type, or null."""
        if self.pick.random() < nulls:
            return f"CAST(NULL AS {kind.sql})"
        return self.pick.choice(kind.literals)

    def place(self) -> tuple[str, Kind]:
        """A column, or a part of one, of a flat type."""
        column = self.pick.choice(self.columns)
        name = self.prefix + column.name
        if column.kind.family == FLAT:
            return name, column.kind
        part, kind = self.pick.choice(PARTS[column.kind.sql.partition("<")[0]])
        return part.format(name), KINDS[kind]

    def value(self, kind: Kind, depth: int = 0) -> str:
        """An expression of a type that never fails."""
        same = [self.prefix + column.name for column in self.columns if column.kind == kind]
        shapes = [lambda: self.literal(kind, 0.15)]
        if same:
            shapes += [lambda: self.pick.choice(same)] * 2
            shapes += [lambda: f"coalesce({self.pick.choice(same)}, {self.literal(kind)})"]
        if depth < 2:
            shapes += [
                lambda: (
                    f"CASE WHEN {self.predicate(2)} THEN {self.value(kind, depth + 1)} "
                    f"ELSE {self.value(kind, depth + 1)} END"
                ),
                lambda: f"IF({self.predicate(2)}, {self.value(kind, depth + 1)}, {self.literal(kind, 0.3)})",
            ]
        return self.pick.choice(shapes)()

    # --- predicates ------------------------------------------------------------------------------

    def predicate(self, depth: int = 0) -> str:
        """A condition of up to three levels."""
        if depth >= 3 or self.pick.random() < 0.35:
            return self.atom()
        left, right = self.predicate(depth + 1), self.predicate(depth + 1)
        shapes = [f"({left} AND {right})"] * 4 + [f"({left} OR {right})"] * 5 + [f"NOT ({left})"] * 3
        shapes += [
            f"(({left}) IS NOT TRUE)",
            f"(({left}) IS NULL)",
            f"(({left}) <=> ({right}))",
            f"coalesce({left}, {self.pick.choice(['true', 'false'])})",
            f"CASE WHEN {left} THEN {right} ELSE {self.pick.choice(['true', 'false', 'NULL'])} END",
            f"IF({left}, {right}, false)",
        ]
        return self.pick.choice(shapes)

    def atom(self) -> str:
        """One comparison, test or function of a column."""
        name, kind = self.place()
        shapes = [self._comparison, self._comparison, self._membership, self._null_test, self._computed]
        if kind.text:
            shapes += [self._like, self._text]
        if kind.number:
            shapes += [self._across]
        if kind.sql == "BOOLEAN":
            shapes += [self._truth] * 2
        return self.pick.choice(shapes)(name, kind)

    def _comparison(self, name: str, kind: Kind) -> str:
        operator, literal = self.pick.choice(COMPARISONS), self.literal(kind, 0.03)
        same = [self.prefix + each.name for each in self.columns if each.kind == kind]
        other = self.pick.choice(same) if same and self.pick.random() < 0.2 else literal
        if self.pick.random() < 0.2:
            return f"{other} {operator} {name}"
        return f"{name} {operator} {other}"

    def _membership(self, name: str, kind: Kind) -> str:
        values = [self.literal(kind) for _ in range(self.pick.choice((1, 2, 3, 3, 12)))]
        if self.pick.random() < 0.15:
            values.append("NULL")
        negated = self.pick.choice(["", "", "NOT "])
        if self.pick.random() < 0.35:
            return f"{name} {negated}BETWEEN {self.literal(kind)} AND {self.literal(kind)}"
        return f"{name} {negated}IN ({', '.join(values)})"

    def _null_test(self, name: str, kind: Kind) -> str:
        return self.pick.choice([f"{name} IS NULL", f"{name} IS NOT NULL", f"isnull({name})"])

    def _like(self, name: str, kind: Kind) -> str:
        patterns = ("a%", "%b", "%b%", "a_b", "a%c", "", "%", "v1%", "%é%", r"b\%", "the same sixteen%", "_")
        pattern = self.pick.choice(patterns)
        negated = self.pick.choice(["", "", "NOT "])
        return self.pick.choice(
            [f"{name} {negated}LIKE '{pattern}'"] * 4
            + [f"{name} RLIKE '^a'", f"{name} ILIKE 'A%'", f"{name} LIKE ANY ('a%', '%1')"]
        )

    def _text(self, name: str, kind: Kind) -> str:
        part = self.pick.choice(["a", "ab", "v1", "", "é", "the same sixteen ch"])
        function = self.pick.choice(["startswith", "endswith", "contains"])
        return self.pick.choice(
            [
                f"{function}({name}, '{part}')",
                f"upper({name}) = '{part.upper()}'",
                f"length({name}) {self.pick.choice(COMPARISONS)} {self.pick.randrange(5)}",
                f"substr({name}, 1, 2) = '{part}'",
                f"concat({name}, 'x') > '{part}'",
            ]
        )

    def _across(self, name: str, kind: Kind) -> str:
        number = self.pick.choice(
            ["1", "1.5", "1.25BD", "1.5D", "-0.5", "0", "111.321", "128", "2147483648", "1e300", "3L"]
        )
        operator = self.pick.choice(COMPARISONS)
        return self.pick.choice(
            [
                f"{name} {operator} {number}",
                f"CAST({name} AS DOUBLE) {operator} {number}",
                f"{name} IN ({number}, 2)",
                f"({name} = {number}) IS NOT TRUE",
                f"abs(CAST({name} AS DOUBLE)) {operator} 2.5D",
            ]
        )

    def _truth(self, name: str, kind: Kind) -> str:
        return self.pick.choice(
            [name, f"NOT {name}", f"{name} IS TRUE", f"{name} IS NOT FALSE", f"{name} IS UNKNOWN"]
        )

    def _computed(self, name: str, kind: Kind) -> str:
        operator, literal = self.pick.choice(COMPARISONS), self.literal(kind)
        shapes = [
            f"coalesce({name}, {self.literal(kind)}) {operator} {literal}",
            f"nullif({name}, {literal}) {operator} {self.literal(kind)}",
            f"{self.value(kind)} {operator} {literal}",
            f"CASE {name} WHEN {literal} THEN 1 WHEN {self.literal(kind)} THEN 2 END = 2",
        ]
        if kind.whole:
            shapes += [f"{name} % 3 = {self.pick.choice(['0', '1', '-1'])}", f"try_add({name}, {name}) > 2"]
        if kind.time:
            shapes += [f"year({name}) {operator} 2024", f"CAST({name} AS DATE) {operator} DATE'2024-02-29'"]
        return self.pick.choice(shapes)

    def fallible(self) -> str | None:
        """A condition that may fail on a row, as casts and divisions do under ANSI."""
        numbers = [self.prefix + column.name for column in self.columns if column.kind.sql == "INT"]
        texts = [self.prefix + column.name for column in self.columns if column.kind.sql == "STRING"]
        if not (numbers and texts):
            return None
        return self.pick.choice(FALLIBLE).format(n=self.pick.choice(numbers), s=self.pick.choice(texts))
