"""Random queries over one table, and random policies on it, with the table that a policy leaves of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from ranger_world import allow, deny, mask, row_filter

Row = tuple[Any, ...]

# Zeros, nulls and texts that are no numbers, on which expressions of users fail.
COLUMNS = {
    "id": "BIGINT",
    "g": "INT",
    "n": "INT",
    "s": "STRING",
    "u": "STRING",
    "x": "DOUBLE",
    "b": "BOOLEAN",
}
ROWS: list[Row] = [
    (1, 1, 0, "7", "Ann-1", 0.5, True),
    (2, 2, 3, "x", "bob 22", 1.5, False),
    (3, 1, None, "12", "Cal", None, None),
    (4, 3, 5, None, "dan", 2.0, True),
    (5, 2, 2, "-3", None, 0.0, False),
    (6, 3, 7, "y9", "Eve", 4.25, True),
    (7, 1, 100, "300", "fay", -1.0, None),
    (8, None, 1, "0", "Gus", 3.0, False),
    (9, 2, -4, "", "hal", 8.0, True),
    (10, 3, 0, "ten", "Ann-1", 0.5, False),
]
INTS, TEXTS = ("id", "g", "n"), ("s", "u")


# --- policies -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hidden:
    """What a policy hides; `shown` makes of each value of a column what its user sees."""

    row_filter: str | None = None
    kept: Callable[[Row], bool] = field(default=lambda row: True)
    masks: dict[str, str] = field(default_factory=dict)
    denied: frozenset[str] = frozenset()

    def policies(self, path: str, user: str) -> list[dict[str, Any]]:
        """Return it in Ranger's form, for a table named `catalog.database.table`."""
        who = {"users": [user]}
        found = [allow(f"{path}.*", **who)]
        found += [deny(f"{path}.{column}", **who) for column in sorted(self.denied)]
        for column, name in self.masks.items():
            kind, _, value = name.partition(":")
            found.append(mask(f"{path}.{column}", kind, value=value or None, **who))
        if self.row_filter is not None:
            found.append(row_filter(path, self.row_filter, **who))
        return found

    def rows(self, *, filled: int | None = None) -> list[Row]:
        """Return the rows that are seen, `filled` with a constant in place of values of denied columns."""
        return [self._row(row, filled) for row in ROWS if self.kept(row)]

    def _row(self, row: Row, filled: int | None) -> Row:
        named = zip(COLUMNS, row, strict=True)
        return tuple(
            _filling(COLUMNS[name], filled) if name in self.denied else self._value(name, value)
            for name, value in named
        )

    def _value(self, name: str, value: Any) -> Any:
        return _MASKS[self.masks[name]](value, COLUMNS[name]) if name in self.masks else value


def _filling(kind: str, filled: int | None) -> Any:
    fillings = {"STRING": str(filled), "BOOLEAN": bool(filled), "DOUBLE": float(filled or 0)}
    return None if filled is None else fillings.get(kind, filled)


def _redacted(value: Any, kind: str) -> Any:
    if value is None or kind == "DOUBLE":
        return None
    if kind == "BOOLEAN":
        return True
    if kind == "STRING":
        return re.sub(r"[0-9]", "9", re.sub(r"[a-z]", "x", re.sub(r"[A-Z]", "X", value))).replace("-", ".")
    number = int(re.sub(r"\d", "9", str(value)))
    return number if abs(number) < (2**31 if kind == "INT" else 2**63) else None


def _hashed(value: Any, kind: str) -> Any:
    hashed = kind == "STRING" and value is not None
    return hashlib.sha256(value.encode()).hexdigest().upper() if hashed else None


def _last(value: Any, kind: str) -> Any:
    if value is None or kind != "STRING":
        return None
    return re.sub(r"[A-Za-z0-9]", "x", value[:-4]) + value[-4:] if len(value) > 4 else value


_MASKS: dict[str, Callable[[Any, str], Any]] = {
    "MASK": _redacted,
    "MASK_HASH": _hashed,
    "MASK_NULL": lambda value, kind: None,
    "MASK_SHOW_LAST_4": _last,
    "CUSTOM:abs({col}) + 1": lambda value, kind: None if value is None else abs(value) + 1,
    "CUSTOM:concat('<', {col}, '>')": lambda value, kind: None if value is None else f"<{value}>",
    "CUSTOM:CASE WHEN {col} > 2 THEN {col} ELSE 0 END": lambda value, kind: (
        value if value is not None and value > 2 else 0.0 if kind == "DOUBLE" else 0
    ),
}
_OF_TEXT = ("MASK", "MASK_HASH", "MASK_NULL", "MASK_SHOW_LAST_4", "CUSTOM:concat('<', {col}, '>')")
_OF_NUMBER = (
    "MASK",
    "MASK_NULL",
    "CUSTOM:abs({col}) + 1",
    "CUSTOM:CASE WHEN {col} > 2 THEN {col} ELSE 0 END",
)

_FILTERS: list[tuple[str | None, Callable[[Row], bool]]] = [
    (None, lambda row: True),
    ("id > 4", lambda row: row[0] > 4),
    ("g = 1", lambda row: row[1] == 1),
    ("n <> 0", lambda row: row[2] not in (None, 0)),
    ("s IN ('7', '12', '300')", lambda row: row[3] in ("7", "12", "300")),
    ("n IS NULL OR n > 4", lambda row: row[2] is None or row[2] > 4),
    ("id % 2 = 0 AND NOT coalesce(b, false)", lambda row: row[0] % 2 == 0 and not row[6]),
    ("lower(u) LIKE '%a%'", lambda row: row[4] is not None and "a" in row[4].lower()),
    (
        "try_cast(s AS INT) IS NOT NULL",
        lambda row: row[3] is not None and bool(re.fullmatch(r"-?\d+", row[3])),
    ),
    ("current_user() = 'ann' AND x < 2", lambda row: row[5] is not None and row[5] < 2),
    ("false", lambda row: False),
]


def hidden(random: Random) -> Hidden:
    """Return a random policy."""
    text, kept = random.choice(_FILTERS)
    masks = {}
    for column in random.sample(list(COLUMNS), random.choice((0, 1, 1, 2, 3))):
        kind = COLUMNS[column]
        names = _OF_TEXT if kind == "STRING" else ("MASK", "MASK_NULL") if kind == "BOOLEAN" else _OF_NUMBER
        masks[column] = random.choice(names)
    left = [column for column in COLUMNS if column not in masks and column != "id"]
    denied = frozenset(random.sample(left, random.choice((0, 0, 1, 2))))
    return Hidden(text, kept, masks, denied)


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


# --- queries ------------------------------------------------------------------------------------------


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
