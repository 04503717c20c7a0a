"""Random lookup joins of the table of `governed_hidden`, and what each gives over what a policy shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from governed_hidden import COLUMNS, Hidden, Row
from lookup_ways import in_sql

from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Keys of values that are stored, of what masks make of them, and of neither.
KEYS: dict[str, tuple[Any, ...]] = {
    "id": (*range(12), 99),
    "g": (None, 0, 1, 2, 3, 4, 9),
    "n": (None, *range(-5, 9), 99, 100, 101, 999),
    "s": (None, "7", "x", "12", "-3", "", "99", "9", ".9", "<7>", "ten"),
    "u": (None, "Ann-1", "Xxx.9", "bob 22", "xxx 99", "<Ann-1>", "xob 22", "Gus"),
}
# These keep no cache: a mask of a key, and what Python can not apply.
ONLY_BY_SPARK = re.compile("lookup.strategy=spark|Python can apply")
Outcome = tuple[str, Any]


@dataclass(frozen=True)
class Lookup:
    """A lookup join by the column `on`, by call or in SQL."""

    on: str
    select: tuple[str, ...]
    how: str
    in_sql: bool
    options: tuple[tuple[str, str], ...]

    @property
    def used(self) -> set[str]:
        """The columns of the table that it uses."""
        return {self.on, *self.select}

    def outcome(self, session: SparkSession, table: str, cached: dict[str, str]) -> Outcome:
        """Return its rows, or `denied`; by Spark's own join where no cache can hold the user's rights."""
        options = {**cached, **dict(self.options)}
        try:
            return "rows", ordered(self._joined(session, table, options).collect())
        except Exception as error:
            if "is denied to user 'ann'" in str(error) and not ONLY_BY_SPARK.search(str(error)):
                return "denied", None
            if options["lookup.strategy"] == "spark" or not ONLY_BY_SPARK.search(str(error)):
                raise
        by_spark = Lookup(self.on, self.select, self.how, self.in_sql, (("lookup.strategy", "spark"),))
        return by_spark.outcome(session, table, cached)

    def _joined(self, session: SparkSession, table: str, options: dict[str, str]) -> DataFrame:
        keys = ", ".join(_literal(key, COLUMNS[self.on]) for key in KEYS[self.on])
        stream = session.sql(f"SELECT explode(array({keys})) AS k")
        select = {f"c_{column}": column for column in self.select}
        join = in_sql if self.in_sql else lookup_join
        return join(stream, table, {"k": self.on}, how=self.how, select=select, options=options)

    def expected(self, policy: Hidden) -> Outcome:
        """Return what it gives over rows that hold the policy's masks."""
        names = list(COLUMNS)
        places = [names.index(column) for column in self.select]
        rows = policy.rows()
        found: list[Row] = []
        for key in KEYS[self.on]:
            met = [row for row in rows if key is not None and row[names.index(self.on)] == key]
            found += [(key, *(row[place] for place in places)) for row in met]
            if not met and self.how == "left":
                found.append((key, *(None for _ in places)))
        return "rows", ordered(found)


def ordered(rows: Sequence[Any]) -> list[Row]:
    """Return rows in an order that nulls do not disturb."""
    return sorted((tuple(row) for row in rows), key=repr)


def _literal(key: Any, kind: str) -> str:
    if key is None:
        return f"CAST(NULL AS {kind})"
    return "'" + key + "'" if isinstance(key, str) else f"CAST({key} AS {kind})"


def random_lookup(random: Random, columns: Sequence[str]) -> Lookup:
    """Return a lookup of some of these columns."""
    on = random.choice([column for column in columns if column in KEYS])
    others = [column for column in columns if column != on]
    strategy = random.choice(("lookup", "lookup", "lookup", "spark"))
    in_jvm = random.choice(("true", "false"))
    return Lookup(
        on,
        tuple(random.sample(others, random.randint(1, min(3, len(others))))),
        random.choice(("left", "inner")),
        random.choice((True, False)),
        (("lookup.strategy", strategy), ("lookup.in-jvm", in_jvm)),
    )
