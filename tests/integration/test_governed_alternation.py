"""Two users in random turns on one context, with caches that stay: none sees what the other may see."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from effort import examples
from governed_hidden import COLUMNS, ROWS, Hidden, hidden
from governed_world import World

if TYPE_CHECKING:
    from lockgate import Lake

    Named = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("lookups_end")

TYPES = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
USERS = ("ann", "bob")
TODAY = datetime.date.today().toordinal()
FIRST_SEED = 7_399_900
# Few texts, so that plans of one user are often those of the other.
QUERIES = (
    "SELECT id, {c} FROM {t}",
    "SELECT count(*), max({c}) FROM {t}",
    "SELECT /*+ MERGE(a) */ a.id, b.{c} FROM {t} a JOIN {t} b ON a.id = b.id",
    "SELECT {c}, count(*) FROM {t} GROUP BY {c}",
    "SELECT id FROM {t} WHERE id > 3 UNION ALL SELECT id FROM {t}",
    "SELECT id, (SELECT count({c}) FROM {t}) FROM {t}",
    "SELECT id, lag({c}) OVER (ORDER BY id, {c}) FROM {t}",
)


class Turns:
    """Users whose rights are random and change, and what each turn of one gives and should give."""

    def __init__(self, world: World, random: Random, tables: dict[str, str], options: dict[str, str]) -> None:
        self._world, self._random, self._tables, self._options = world, random, tables, options
        self._kept: list[Any] = []
        self._names = iter(f"kept_{uuid.uuid4().hex[:8]}" for _ in range(1000))
        self._views = 0
        self.change()

    def change(self) -> None:
        """Give every user other rights."""
        table = self._tables["governed"]
        self.rights: dict[str, Hidden] = {user: self._policy() for user in USERS}
        rights = self.rights.items()
        self._world.put(*(each for user, policy in rights for each in policy.policies(table, user)))
        root = self._world.session("root")
        for user, policy in rights:
            frame = root.createDataFrame(policy.rows(filled=1), TYPES)
            frame.createOrReplaceTempView(f"shown_to_{user}")

    def _policy(self) -> Hidden:
        while "current_user" in ((found := hidden(self._random)).row_filter or ""):  # it is about ann alone
            pass
        return found

    def turn(self) -> str | None:
        """Let a user do something; return what is wrong, None if nothing is."""
        user = self._random.choice(USERS)
        way = self._random.choice((self._asked, self._persisted, self._cached, self._shared, self._looked_up))
        column = self._random.choice([each for each in COLUMNS if each != "id" and not self._is_denied(each)])
        query = self._random.choice(QUERIES).replace("{c}", column)
        found, expected = way(user, query, column)
        if found == expected:
            return None
        return f"{user}, {way.__name__}: {query}\n  {self.rights}\n  found {found}\n  expected {expected}"

    def close(self) -> None:
        """Let go of what is cached."""
        for frame in self._kept:
            frame.unpersist()
        for user in USERS:
            self._world.session(user).sql("CLEAR CACHE")
        for number in range(self._views):
            self._world.session("root").catalog.dropGlobalTempView(f"turn_{number}")

    def _is_denied(self, column: str) -> bool:
        return any(column in policy.denied for policy in self.rights.values())

    def _expected(self, user: str, query: str) -> list[str]:
        rows = self._world.session("root").sql(query.replace("{t}", f"shown_to_{user}")).collect()
        return sorted(map(repr, map(tuple, rows)))

    def _frame(self, user: str, query: str) -> Any:
        return self._world.session(user).sql(query.replace("{t}", self._tables["governed"]))

    def _asked(self, user: str, query: str, column: str) -> tuple[list[str], list[str]]:
        return _rows(self._frame(user, query)), self._expected(user, query)

    def _persisted(self, user: str, query: str, column: str) -> tuple[list[str], list[str]]:
        frame = self._frame(user, query).persist()
        self._kept.append(frame)
        return _rows(frame), self._expected(user, query)

    def _cached(self, user: str, query: str, column: str) -> tuple[list[str], list[str]]:
        name, session = next(self._names), self._world.session(user)
        base = self._tables["governed"]
        session.sql(f"CACHE TABLE {name} AS SELECT id, {column} FROM {base}")
        inner = f"(SELECT id, {column} FROM {{t}})"
        count = f"SELECT count(*), max({column}), max(id) FROM "
        return _rows(session.sql(count + name)), self._expected(user, count + inner)

    def _shared(self, user: str, query: str, column: str) -> tuple[list[str], list[str]]:
        """A view of the application on a DataFrame of the other user, who has it cached."""
        other = USERS[1 - USERS.index(user)]
        frame = self._frame(other, f"SELECT id, {column} FROM {{t}}").persist()
        frame.count()
        self._kept.append(frame)
        name = f"turn_{self._views}"
        self._views += 1
        frame.createOrReplaceGlobalTempView(name)
        read = self._world.session(user).sql(f"SELECT * FROM global_temp.{name}")
        return _rows(read), self._expected(user, f"SELECT id, {column} FROM {{t}}")

    def _looked_up(self, user: str, query: str, column: str) -> tuple[list[str], list[str]]:
        """Look up by a cache; where it can not hold the user's rights, by Spark."""
        seen = {row[0]: row for row in self.rights[user].rows(filled=1)}
        place = list(COLUMNS).index(column)
        strategy = "spark" if "id" in self.rights[user].masks else "lookup"
        expected = [(key, seen[key][place] if key in seen else None) for key in range(1, 12)]
        if strategy == "spark":  # a masked key finds what it looks like
            text = f"SELECT o.id, d.{column} FROM range(1, 12) o LEFT JOIN {{t}} d ON o.id = d.id"
            return self._joined(user, column, strategy), self._expected(user, text)
        try:
            return self._joined(user, column, strategy), sorted(map(repr, expected))
        except Exception as error:
            if not re.search("lookup.strategy=spark|Python can apply", str(error)):
                raise
            return self._joined(user, column, "spark"), sorted(map(repr, expected))

    def _joined(self, user: str, column: str, strategy: str) -> list[str]:
        said = {**self._options, "lookup.strategy": strategy}
        hints = ", ".join(f"'{key}'='{value}'" for key, value in said.items())
        return _rows(
            self._world.session(user).sql(
                f"SELECT o.id, d.{column} FROM range(1, 12) AS o LEFT JOIN {self._tables['governed']}"
                f" /*+ OPTIONS({hints}) */ FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.id = d.id"
            )
        )


def _rows(frame: Any) -> list[str]:
    return sorted(map(repr, map(tuple, frame.collect())))


@pytest.fixture(scope="module", params=["append", "key"])
def tables(request: pytest.FixtureRequest, lake: Lake, shared_table: Named) -> dict[str, str]:
    name = shared_table(f"turns_{request.param}")
    keyed = " TBLPROPERTIES ('primary-key'='id', 'bucket'='2')" if request.param == "key" else ""
    lake.sql(f"CREATE TABLE {name} ({TYPES.replace('BIGINT', 'BIGINT NOT NULL')}){keyed}")
    session = lake.spark.newSession()
    session.createDataFrame(ROWS, TYPES).createOrReplaceTempView("turned_rows")
    session.sql(f"INSERT INTO {name} SELECT * FROM turned_rows")
    return {"governed": name}


def run(
    world: World, tables: dict[str, str], options: dict[str, str], seed: int, count: int, changes: int
) -> list[str]:
    turns = Turns(world, Random(seed), tables, options)
    found = []
    try:
        for number in range(count):
            if number and number % (count // changes) == 0:
                turns.change()
            if wrong := turns.turn():
                found.append(f"seed {seed}, turn {number}: {wrong}")
    finally:
        turns.close()
    return found


def test_two_users_in_turns(world: World, tables: dict[str, str], options: dict[str, str]) -> None:
    wrongs = run(world, tables, options, FIRST_SEED, 8, 2)
    assert not wrongs, "\n".join(wrongs)


@pytest.mark.long
def test_two_users_in_many_turns(world: World, tables: dict[str, str], options: dict[str, str]) -> None:
    seeds = range(TODAY * 10, TODAY * 10 + examples(3))
    wrongs = [each for seed in seeds for each in run(world, tables, options, seed, 40, 4)]
    assert not wrongs, "\n".join(wrongs)
