"""Random queries over one table, the one of `governed_hidden`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

INTS, TEXTS = ("id", "g", "n"), ("s", "u")


def orders(query: str) -> list[str]:
    """Return a query with its conditions in both orders: which comes first, SQL does not say."""
    found = []
    for step in (1, -1):
        text = query
        while text != (made := re.sub(r"\[\[((?:(?!\[\[).)*?)\]\]", partial(_joined, step=step), text)):
            text = made
        found.append(text)
    return list(dict.fromkeys(found))


def _joined(found: re.Match[str], step: int) -> str:
    return " AND ".join(found[1].split(" && ")[::step])


class Queries:
    """Makes queries over a table that is written `{t}`, of columns `columns` in expressions of SQL."""

    def __init__(self, random: Random, columns: Sequence[str]) -> None:
        self._random, self._columns = random, list(columns)
        self._deep = 0

    def query(self) -> str:
        """Return a query; its rows are in no order that counts."""
        made = self._pick(
            self._plain,
            self._plain,
            self._grouped,
            self._joined,
            self._windowed,
            self._sets,
            self._ordered,
            self._common,
            self._lateral,
            self._correlated,
            self._cube,
            self._turned,
            self._piped,
            self._computed,
            self._called,
        )
        return str(made())

    def _pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def _made(self, *makers: Callable[[], str]) -> str:
        """Return what one of the makers makes; the others make nothing, or there would be no end."""
        return self._random.choice(makers)()

    def _maybe(self, chance: float) -> bool:
        return self._random.random() < chance

    # --- forms of queries ---

    def _plain(self) -> str:
        distinct = "DISTINCT " if self._maybe(0.2) else ""
        return f"SELECT {distinct}{self._list()} FROM {{t}}{self._where()}"

    def _grouped(self) -> str:
        key = self._scalar()
        having = f" HAVING count(*) > {self._number()}" if self._maybe(0.3) else ""
        keys = f"{key} AS k, " if self._maybe(0.8) else ""
        group = f" GROUP BY {key}" if keys else ""
        return (
            f"SELECT {keys}{self._aggregate()}, {self._aggregate()} FROM {{t}}{self._where()}{group}{having}"
        )

    def _joined(self) -> str:
        kind = self._pick("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
        on = f"{self._integer('a.')} = {self._integer('b.')}"
        if self._maybe(0.3):
            on += f" AND {self._condition('a.')}"
        shown = (
            self._list("a.")
            if "SEMI" in kind or "ANTI" in kind
            else f"{self._list('a.')}, {self._scalar('b.')}"
        )
        return f"SELECT {shown} FROM {{t}} a {kind} {{t}} b ON {on}{self._where('a.')}"

    def _windowed(self) -> str:
        function = self._pick(
            f"lag({self._scalar()})", f"max({self._scalar()})", "row_number()", f"sum({self._integer()})"
        )
        return (
            f"SELECT {self._scalar()} AS v, {function} OVER (PARTITION BY {self._integer()} "
            f"ORDER BY {', '.join(self._columns)}) FROM {{t}}{self._where()}"
        )

    def _sets(self) -> str:
        word = self._pick("UNION", "UNION ALL", "INTERSECT", "EXCEPT")
        one, other = self._text(), self._text()
        return f"SELECT {one} FROM {{t}}{self._where()} {word} SELECT {other} FROM {{t}}{self._where()}"

    def _ordered(self) -> str:
        columns = ", ".join(self._columns)
        order = ", ".join(f"{column} {self._pick('ASC', 'DESC')}" for column in self._columns)
        offset = f" OFFSET {self._number()}" if self._maybe(0.2) else ""
        return f"SELECT {columns} FROM {{t}}{self._where()} ORDER BY {order} LIMIT {self._number()}{offset}"

    def _common(self) -> str:
        columns = ", ".join(self._columns)
        inner = f"SELECT {columns} FROM {{t}}"
        return f"WITH c AS ({inner}) SELECT {self._list()} FROM c{self._where()}"

    def _lateral(self) -> str:
        inner = f"SELECT {self._aggregate('p.')} AS v FROM {{t}} p WHERE p.id >= r.id"
        return f"SELECT r.id, l.v FROM range(3) r, LATERAL ({inner}) l"

    def _correlated(self) -> str:
        inner = f"SELECT {self._aggregate('q.')} FROM {{t}} q WHERE q.id <= a.id"
        return f"SELECT {self._scalar('a.')} AS c0, ({inner}) AS c1 FROM {{t}} a{self._where('a.')}"

    def _cube(self) -> str:
        keys = f"{self._integer()}, {self._text()}"
        kind = self._pick("CUBE", "ROLLUP")
        return f"SELECT {self._aggregate()} AS c0 FROM {{t}}{self._where()} GROUP BY {kind} ({keys})"

    def _turned(self) -> str:
        inner = f"SELECT {self._integer()} AS k, {self._text()} AS v, {self._text()} AS w FROM {{t}}"
        if self._maybe(0.5):
            return f"SELECT * FROM ({inner}{self._where()}) UNPIVOT INCLUDE NULLS (c FOR n IN (v, w))"
        return f"SELECT * FROM ({inner}{self._where()}) PIVOT (count(v) AS n FOR k IN (1, 2, 3))"

    def _piped(self) -> str:
        kept = f"|> WHERE {self._condition()} " if self._maybe(0.6) else ""
        return f"FROM {{t}} {kept}|> SELECT {self._list()}"

    def _computed(self) -> str:
        """Return a query with subqueries in aggregates and windows, and with generators."""
        value = f"(SELECT max({self._integer()}) FROM {{t}}{self._where()})"
        columns = ", ".join(self._columns)
        return self._made(
            lambda: f"SELECT max({self._integer()} + {value}) AS c0 FROM {{t}}{self._where()}",
            lambda: f"SELECT sum({value}) OVER (ORDER BY {columns}) AS c0 FROM {{t}}{self._where()}",
            lambda: (
                f"SELECT e FROM {{t}} LATERAL VIEW explode(array({self._text()}, {self._text()})) l AS e"
                f"{self._where()}"
            ),
            lambda: f"SELECT {self._list()} FROM {{t}}{self._where()} ORDER BY {value}",
            lambda: f"SELECT CASE WHEN EXISTS (SELECT 1 FROM {{t}}{self._where()}) THEN {value} END AS c0",
        )

    def _called(self) -> str:
        """Return a query with the user's function `whole`, which fails on texts that are no whole numbers."""
        where = f" WHERE [[{self._condition()} && whole({self._text_column('')}) > 1]]"
        return self._made(
            lambda: f"SELECT {self._list()}, whole({self._text_column('')}) AS w FROM {{t}}{self._where()}",
            lambda: f"SELECT {self._list()} FROM {{t}}{where}",
            lambda: f"SELECT max(whole({self._text_column('')})) AS w FROM {{t}}{self._where()}",
        )

    # --- parts ---

    def _list(self, of: str = "") -> str:
        count = self._random.choice((1, 2, 3))
        return ", ".join(f"{self._scalar(of)} AS c{number}" for number in range(count))

    def _where(self, of: str = "") -> str:
        if self._maybe(0.4):
            return ""
        parts = [self._condition(of) for _ in range(self._random.choice((1, 1, 2)))]
        return f" WHERE [[{' && '.join(parts)}]]"

    def _aggregate(self, of: str = "") -> str:
        number = self._integer(of)
        return self._made(
            lambda: "count(*)",
            lambda: f"count({self._scalar(of)})",
            lambda: f"count(DISTINCT {self._scalar(of)})",
            lambda: f"sum({number})",
            lambda: f"max({self._scalar(of)})",
            lambda: f"min({self._scalar(of)})",
            lambda: f"sort_array(collect_list({self._scalar(of)}))",
            lambda: f"count_if({self._condition(of)})",
        )

    def _number(self) -> int:
        return int(self._random.choice((0, 1, 2, 3, 5, 9)))

    def _one_of(self, names: Sequence[str], of: str) -> str | None:
        there = [name for name in names if name in self._columns]
        return f"{of}{self._random.choice(there)}" if there else None

    def _scalar(self, of: str = "") -> str:
        return str(self._pick(self._integer, self._text, self._fraction)(of))

    def _integer(self, of: str = "") -> str:
        column = self._one_of(INTS, of) or str(self._number())
        if self._maybe(0.55):
            return column
        text = self._text_column(of)
        return self._made(
            lambda: f"length({text})",
            lambda: f"coalesce({column}, {self._number()})",
            lambda: f"({column} + {self._number()})",
            lambda: f"({self._one_of(INTS, of) or 7} % {column})",
            lambda: f"CAST({text} AS INT)",
            lambda: f"CAST({column} AS TINYINT)",
            lambda: f"({self._number()} div {column})",
            lambda: f"IF({self._condition(of)}, {column}, {self._number()})",
            lambda: f"CASE WHEN {column} > 1 THEN {column} END",
            lambda: f"element_at(array(1, 2, 3), CAST({column} AS INT))",
        )

    def _text_column(self, of: str) -> str:
        return self._one_of(TEXTS, of) or "'a'"

    def _text(self, of: str = "") -> str:
        column = self._text_column(of)
        if self._maybe(0.5):
            return column
        return self._made(
            lambda: f"upper({column})",
            lambda: f"concat({column}, '-', {self._text_column(of)})",
            lambda: f"substring({column}, 1, 2)",
            lambda: f"CAST({self._integer(of)} AS STRING)",
            lambda: f"coalesce({column}, 'none')",
            lambda: f"CAST(CAST({column} AS DATE) AS STRING)",
        )

    def _fraction(self, of: str = "") -> str:
        column = self._one_of(("x", *INTS), of) or "1"
        return str(self._pick(f"({column} / 2)", f"(6 / {column})", column, f"abs({column})"))

    def _condition(self, of: str = "") -> str:
        if self._deep < 1 and self._maybe(0.2):
            self._deep += 1
            try:
                return self._nested(of)
            finally:
                self._deep -= 1
        flag = self._one_of(("b",), of)
        return self._made(
            lambda: f"{self._integer(of)} {self._pick('=', '<', '>', '<>', '<=>')} {self._number()}",
            lambda: (
                f"{self._text_column(of)} {self._pick('=', '>', '<>')} '{self._pick('7', 'x', 'Ann-1', '')}'"
            ),
            lambda: f"{self._text_column(of)} LIKE '{self._pick('%a%', 'A%', '_', '%')}'",
            lambda: f"{self._integer(of)} IN ({self._number()}, {self._number()})",
            lambda: f"{self._scalar(of)} IS NOT NULL",
            lambda: f"{self._fraction(of)} > {self._number()}",
            lambda: flag or "true",
            lambda: f"NOT ({self._integer(of)} > {self._number()})",
            lambda: f"({self._integer(of)} = 1 OR {self._text_column(of)} = 'x')",
        )

    def _nested(self, of: str) -> str:
        number = self._integer(of)
        return self._made(
            lambda: f"{number} IN (SELECT {self._integer()} FROM {{t}}{self._where()})",
            lambda: f"EXISTS (SELECT 1 FROM {{t}} q WHERE q.id = {number})",
            lambda: f"{number} < (SELECT max({self._integer()}) FROM {{t}})",
            lambda: f"NOT EXISTS (SELECT 1 FROM {{t}} q WHERE q.id > {number})",
        )
