"""A governed query is the query over a table that holds permitted rows and masked values alone.

In results and in errors, ANSI on: random queries under random policies, on tables of three kinds.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from governed_random import COLUMNS, ROWS, Hidden, Queries, hidden, orders
from governed_world import World
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

    Named = Callable[[str], str]

TODAY = datetime.date.today().toordinal()
# The short sample is the same each day; the large one is another.
FIRST_SEED = 7_399_430
TYPES = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
KINDS = ("append", "key", "files")


@pytest.fixture(scope="module")
def tables(lake: Lake, shared_table: Named) -> Iterator[dict[str, str]]:
    """The same rows in three kinds of tables, by kind."""
    session = lake.spark.newSession()
    session.createDataFrame(ROWS, TYPES).createOrReplaceTempView("rows")
    session.createDataFrame(
        [(row[0], 9, 0, "old", "old", 0.0, True) for row in ROWS], TYPES
    ).createOrReplaceTempView("old")
    named = {
        "append": shared_table("rows_append"),
        "key": shared_table("rows_key"),
        "files": "spark_catalog.default.rows_files",
    }
    session.sql(f"CREATE TABLE {named['append']} ({TYPES})")
    session.sql(f"INSERT INTO {named['append']} SELECT * FROM rows WHERE id < 5")
    session.sql(f"INSERT INTO {named['append']} SELECT * FROM rows WHERE id >= 5")
    keyed = "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
    session.sql(f"CREATE TABLE {named['key']} ({TYPES.replace('id BIGINT', 'id BIGINT NOT NULL')}) {keyed}")
    session.sql(f"INSERT INTO {named['key']} SELECT * FROM old")
    session.sql(f"INSERT INTO {named['key']} SELECT * FROM rows")
    session.sql(f"CREATE TABLE {named['files']} USING parquet AS SELECT * FROM rows")
    yield named
    session.sql(f"DROP TABLE {named['files']}")


class Pair:
    """A table under a policy, and the tables that hold what it shows."""

    def __init__(self, world: World, table: str, policy: Hidden) -> None:
        self._world, self._table = world, table
        world.put(*policy.policies(table, "ann"))
        root = world.session("root")
        self._shown = []
        for filled in (1, 2) if policy.denied else (1,):
            view = f"shown_{filled}"
            shown = root.createDataFrame(policy.rows(filled=filled), TYPES)
            shown.repartition(1).createOrReplaceTempView(view)
            self._shown.append(view)

    def compare(self, query: str, denied: frozenset[str]) -> str | None:
        """Return what is wrong, None if nothing is."""
        texts = orders(query)
        found = outcome(self._world.session("ann"), texts[0].format(t=self._table))
        if found[0] == "denied":
            return None if denied & set(re.findall(r"\w+", query)) else f"denied: {found}"
        for view in self._shown:
            expected = [outcome(self._world.session("root"), texts[0].format(t=view))]
            if found != expected[0]:
                expected += [outcome(self._world.session("root"), text.format(t=view)) for text in texts[1:]]
            if found not in expected:
                return f"\n  governed {found}\n  expected {expected}"
        return None


def outcome(session: SparkSession, query: str) -> tuple[str, Any]:
    """Return the rows of a query, or the kind of its failure."""
    try:
        return "rows", sorted((tuple(row) for row in session.sql(query).collect()), key=repr)
    except (PySparkException, Py4JJavaError) as error:
        if "is denied to user 'ann'" in str(error):
            return "denied", None
        # Of subqueries, the errors come within others.
        found = re.search(r"\[([A-Z][A-Z_.]+)\]", str(error))
        return "failed", found[1] if found else str(error)


def differences(world: World, table: str, seed: int, count: int) -> list[str]:
    random = Random(seed)
    policy = hidden(random)
    pair = Pair(world, table, policy)
    found = []
    for _ in range(count):
        columns = list(COLUMNS) if random.random() < 0.15 else [c for c in COLUMNS if c not in policy.denied]
        query = Queries(random, columns).query()
        wrong = pair.compare(query, policy.denied)
        if wrong is not None:
            found.append(f"{table} seed {seed}\n  {policy}\n  {query}{wrong}")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_governed_query_is_the_query_over_what_is_shown(
    world: World, tables: dict[str, str], kind: str
) -> None:
    assert differences(world, tables[kind], FIRST_SEED + KINDS.index(kind), 3) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_governed_queries_are_queries_over_what_is_shown(
    world: World, tables: dict[str, str], kind: str
) -> None:
    seeds = range(TODAY * 1000 + KINDS.index(kind), TODAY * 1000 + 40, len(KINDS))
    assert [each for seed in seeds for each in differences(world, tables[kind], seed, 16)] == []
