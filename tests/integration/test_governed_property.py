"""A governed query is the query over a table that holds permitted rows and masked values alone.

In results and in errors, ANSI on: random queries under random policies, on tables of five kinds. So are
random lookup joins, by call and in SQL.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from governed_doors import DOORS
from governed_hidden import COLUMNS, ROWS, Hidden, hidden
from governed_lookups import random_lookup
from governed_random import Queries, orders
from governed_world import World
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

    Named = Callable[[str], str]
    Outcome = tuple[str, Any]

TODAY = datetime.date.today().toordinal()
# The short sample is the same each day; the large one is another.
FIRST_SEED = 7_399_430
TYPES = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
KINDS = ("append", "key", "files", "past", "folders")


@pytest.fixture(scope="module")
def tables(lake: Lake, shared_table: Named, lake_folder: Path) -> Iterator[dict[str, str]]:
    """The same rows in five kinds of tables, by kind, and an empty one."""
    session = lake.spark.newSession()
    session.createDataFrame(ROWS, TYPES).createOrReplaceTempView("rows")
    session.createDataFrame(
        [(row[0], 9, 0, "old", "old", 0.0, True) for row in ROWS], TYPES
    ).createOrReplaceTempView("old")
    named = {
        "append": shared_table("rows_append"),
        "key": shared_table("rows_key"),
        "files": "spark_catalog.default.rows_files",
        "past": shared_table("rows_past"),
        "folders": "folders.db.rows_folder",
        "stored": shared_table("rows_stored"),
    }
    session.sql(f"CREATE TABLE {named['append']} ({TYPES})")
    session.sql(f"CREATE TABLE {named['stored']} ({TYPES})")
    session.sql(f"INSERT INTO {named['append']} SELECT * FROM rows WHERE id < 5")
    session.sql(f"INSERT INTO {named['append']} SELECT * FROM rows WHERE id >= 5")
    keyed = "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
    session.sql(f"CREATE TABLE {named['key']} ({TYPES.replace('id BIGINT', 'id BIGINT NOT NULL')}) {keyed}")
    session.sql(f"INSERT INTO {named['key']} SELECT * FROM old")
    session.sql(f"INSERT INTO {named['key']} SELECT * FROM rows")
    session.sql(f"CREATE TABLE {named['files']} USING parquet AS SELECT * FROM rows")
    session.sql(f"CREATE TABLE {named['past']} PARTITIONED BY (g) AS SELECT * FROM rows")
    session.sql(f"INSERT OVERWRITE {named['past']} SELECT * FROM old")
    session.sql("SELECT * FROM rows").write.parquet(str(lake_folder / "folders" / "rows_folder"))
    yield named
    session.sql(f"DROP TABLE {named['files']}")


def register(session: SparkSession) -> None:
    """Give a session the function `whole`, which workers get by its code: they have no module of tests."""

    def whole(text: str | None) -> int | None:
        return None if text is None else int(text)

    session.udf.register("whole", whole, "int")


class Pair:
    """A table under a policy, and the tables that hold what it shows."""

    def __init__(self, world: World, table: str, policy: Hidden, stored: str) -> None:
        self._world, self._stored = world, stored
        self._relation = f"{table} VERSION AS OF 1" if table.endswith("_past") else table
        world.put(*policy.policies(table, "ann"))
        root = world.session("root")
        for user in ("ann", "root"):
            register(world.session(user))
        self._shown = []
        self._rows = []
        for filled in (1, 2) if policy.denied else (1,):
            view = f"shown_{filled}"
            self._rows.append(policy.rows(filled=filled))
            root.createDataFrame(self._rows[-1], TYPES).repartition(1).createOrReplaceTempView(view)
            self._shown.append(view)

    def compare(self, query: str, denied: frozenset[str]) -> str | None:
        """Return what is wrong, None if nothing is."""
        found = self._found(query)
        if found[0] == "denied":
            return None if denied & set(re.findall(r"\w+", query)) else f"denied: {found}"
        for number in range(len(self._shown)):
            expected = self._expected(query, number, found)
            failed = "failed" in (found[0], expected[0][0])
            if found not in expected and not (failed and self._is_choice(query, number)):
                return f"\n  governed {found}\n  expected {expected}"
        return None

    def _found(self, query: str) -> Outcome:
        return outcome(self._world.session("ann"), orders(query)[0].format(t=self._relation))

    def _expected(self, query: str, number: int, found: Outcome) -> list[Outcome]:
        """Return what the query may give: conditions and rows come in any order.

        Which of several rows fails first depends on files and tasks, so that each row comes first once.
        """
        view, root = self._shown[number], self._world.session("root")
        expected: list[Outcome] = []
        for text in orders(query):
            expected.append(outcome(root, text.format(t=view)))
            if found in expected:
                break
        rows = self._rows[number]
        if found not in expected and found[0] == "failed" == expected[0][0]:
            for first in range(1, len(rows)):
                turned = root.createDataFrame(rows[first:] + rows[:first], TYPES).repartition(1)
                turned.createOrReplaceTempView("turned")
                expected.append(outcome(root, orders(query)[0].format(t="turned")))
        return expected

    def _is_choice(self, query: str, number: int) -> bool:
        """Tell whether failing is Spark's choice, as it need not compute what has no effect.

        Then rows in files, as the governed ones are, give the same, with adaptive execution or without it.
        """
        sessions = [self._world.session(user) for user in ("ann", "root")]
        root = sessions[1]
        root.sql(f"INSERT OVERWRITE {self._stored} SELECT * FROM {self._shown[number]}")
        found, expected = [], []
        for adaptive in ("true", "false"):
            for session in sessions:
                session.conf.set("spark.sql.adaptive.enabled", adaptive)
            found.append(self._found(query))
            for text in orders(query):
                expected.append(outcome(root, text.format(t=self._stored)))
        for session in sessions:
            session.conf.unset("spark.sql.adaptive.enabled")
        return any(each in expected for each in found)


def outcome(session: SparkSession, query: str) -> Outcome:
    """Return the rows of a query, or the kind of its failure."""
    door, text = query.split(": ", 1)
    try:
        return "rows", sorted(map(tuple, DOORS[door](session, text)), key=repr)
    except (PySparkException, Py4JJavaError) as error:
        if "is denied to user 'ann'" in str(error):
            return "denied", None
        if "invalid literal for int" in str(error):
            return "failed", "PYTHON"
        # Of subqueries, the errors come within others.
        found = re.search(r"\[([A-Z][A-Z_.]+)\]", str(error))
        return "failed", found[1] if found else str(error)


def differences(world: World, table: str, seed: int, count: int, stored: str) -> list[str]:
    random = Random(seed)
    policy = hidden(random)
    pair = Pair(world, table, policy, stored)
    found = []
    for _ in range(count):
        columns = list(COLUMNS) if random.random() < 0.15 else [c for c in COLUMNS if c not in policy.denied]
        door = random.choice(list(DOORS)) if random.random() < 0.4 else "plain"
        query = f"{door}: {Queries(random, columns).query()}"
        wrong = pair.compare(query, policy.denied)
        if wrong is not None:
            found.append(f"{table} seed {seed}\n  {policy}\n  {query}{wrong}")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_governed_query_is_the_query_over_what_is_shown(
    world: World, tables: dict[str, str], kind: str
) -> None:
    assert differences(world, tables[kind], FIRST_SEED + KINDS.index(kind), 2, tables["stored"]) == []


def lookup_differences(world: World, table: str, seed: int, count: int, options: dict[str, str]) -> list[str]:
    random = Random(seed)
    policy = hidden(random)
    world.put(*policy.policies(table, "ann"))
    found = []
    for _ in range(count):
        columns = list(COLUMNS) if random.random() < 0.15 else [c for c in COLUMNS if c not in policy.denied]
        lookup = random_lookup(random, columns)
        given = lookup.outcome(world.session("ann"), table, options)
        expected = ("denied", None) if lookup.used & policy.denied else lookup.expected(policy)
        if given != expected:
            found.append(
                f"{table} seed {seed}\n  {policy}\n  {lookup}\n  governed {given}\n  expected {expected}"
            )
    return found


@pytest.mark.usefixtures("lookups_end")
@pytest.mark.parametrize("kind", ["append", "key"])
def test_a_governed_lookup_is_the_lookup_over_what_is_shown(
    world: World, tables: dict[str, str], options: dict[str, str], kind: str
) -> None:
    assert lookup_differences(world, tables[kind], FIRST_SEED + len(kind), 2, options) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT r.id, l.v FROM range(3) r, LATERAL (SELECT sum(p.g) AS v FROM {t} p WHERE p.id >= r.id) l",
        "SELECT id FROM {t} WHERE id < (SELECT max(IF(g = 1, id, 2)) FROM {t})",
    ],
)
def test_a_denied_column_in_a_subquery_is_refused_by_name(
    world: World, tables: dict[str, str], query: str
) -> None:
    """Of a key table the scan of a subquery is planned before the statement's columns are looked at."""
    world.put(*Hidden(denied=frozenset({"g"})).policies(tables["key"], "ann"))
    assert outcome(world.session("ann"), f"plain: {query.format(t=tables['key'])}") == ("denied", None)


def test_a_function_of_the_user_is_called_for_shown_rows_alone(world: World, tables: dict[str, str]) -> None:
    """It fails on every text but those of the rows that are shown."""
    numbers = Hidden("s IN ('7', '12', '300')", lambda row: row[3] in ("7", "12", "300"))
    pair = Pair(world, tables["append"], numbers, tables["stored"])
    for query in ("SELECT whole(s) AS w FROM {t}", "SELECT id FROM {t} WHERE whole(s) > 7 OR n = 2"):
        assert pair.compare(f"plain: {query}", frozenset()) is None
    found = outcome(world.session("ann"), f"plain: SELECT sum(whole(s)) FROM {tables['append']}")
    assert found == ("rows", [(319,)])
    whole = outcome(world.session("root"), f"plain: SELECT sum(whole(s)) FROM {tables['append']}")
    assert whole == ("failed", "PYTHON")


@pytest.mark.parametrize("kind", ["append", "key", "files"])
def test_a_stream_gives_what_is_shown(world: World, tables: dict[str, str], kind: str) -> None:
    random, seen = Random(FIRST_SEED + len(kind)), []
    for policy in [Hidden(), *(hidden(random) for _ in range(3))]:
        world.put(*policy.policies(tables[kind], "ann"))
        shown = [column for column in COLUMNS if column not in policy.denied]
        rows = world.session("ann").readStream.table(tables[kind]).select(*shown)
        writer = rows.writeStream.foreachBatch(lambda batch, _: seen.extend(map(tuple, batch.collect())))
        writer.trigger(availableNow=True).start().awaitTermination()
        expected = [
            tuple(value for name, value in zip(COLUMNS, row, strict=True) if name in shown)
            for row in policy.rows()
        ]
        assert sorted(seen, key=repr) == sorted(expected, key=repr), policy
        seen.clear()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_governed_queries_are_queries_over_what_is_shown(
    world: World, tables: dict[str, str], kind: str
) -> None:
    seeds = range(TODAY * 1000 + KINDS.index(kind), TODAY * 1000 + 65, len(KINDS))
    assert [
        each for seed in seeds for each in differences(world, tables[kind], seed, 16, tables["stored"])
    ] == []


@pytest.mark.slow
@pytest.mark.usefixtures("lookups_end")
@pytest.mark.parametrize("kind", ["append", "key"])
def test_many_governed_lookups_are_lookups_over_what_is_shown(
    world: World, tables: dict[str, str], options: dict[str, str], kind: str
) -> None:
    seeds = range(TODAY * 1000 + len(kind), TODAY * 1000 + 200, 10)
    assert [
        each for seed in seeds for each in lookup_differences(world, tables[kind], seed, 4, options)
    ] == []
