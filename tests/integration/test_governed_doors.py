"""Lookup joins, system tables and caches where somebody decides about access."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from governed_world import World, limit
from pyspark.errors import AnalysisException
from ranger_world import allow, deny, item, mask, policy, row_filter
from spark_version import SPARK

from lockgate.framework.store.system.system_tables import METADATA_TABLES, ROW_TABLES
from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    Named = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("lookups_end")

FORMS = {
    "in Python": {"lookup.strategy": "lookup", "lookup.in-jvm": "false"},
    "in the JVM": {"lookup.strategy": "lookup", "lookup.in-jvm": "true"},
    "by Spark": {"lookup.strategy": "spark"},
}
if SPARK < (4, 1):
    del FORMS["in Python"]  # refused by its name: test_small_lake.py


# --- lookup joins ---


def looked_up(world: World, user: str, people: str, column: str, options: dict[str, str]) -> list[Any]:
    stream = world.session(user).sql("SELECT id FROM range(1, 4)")
    found = lookup_join(stream, people, on="id", select=[column], options=options)
    return sorted(tuple(row) for row in found.collect())


@pytest.mark.parametrize("form", FORMS)
def test_a_lookup_join_has_the_rights_of_its_user(
    world: World, people: str, options: dict[str, str], form: str
) -> None:
    said = {**options, **FORMS[form]}
    names = [(1, "ann"), (2, "bob"), (3, "cal")]
    assert looked_up(world, "root", people, "name", said) == names  # and so the cache is there
    world.put(allow(f"{people}.*", users=["ann"]), deny(f"{people}.salary", users=["ann"]))
    assert looked_up(world, "ann", people, "name", said) == names
    with pytest.raises(Exception, match=r"column .*people\.salary"):
        looked_up(world, "ann", people, "salary", said)
    world.put(
        allow(f"{people}.*", users=["ann"]),
        mask(f"{people}.name", "MASK", users=["ann"]),
        row_filter(people, "dept = 'x'", users=["ann"]),
    )
    for _ in range(2):
        assert looked_up(world, "ann", people, "name", said) == [(1, "xxx"), (2, None), (3, "xxx")]
        assert looked_up(world, "root", people, "name", said) == names


def test_a_lookup_join_in_sql_has_the_rights_of_its_user(
    world: World, people: str, options: dict[str, str]
) -> None:
    hints = ", ".join(f"'{key}'='{value}'" for key, value in options.items())

    def rows(user: str, column: str) -> list[Any]:
        text = (
            f"SELECT o.id, d.{column} FROM range(1, 4) AS o LEFT JOIN {people} /*+ OPTIONS({hints}) */ "
            "FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.id = d.id"
        )
        return sorted(tuple(row) for row in world.session(user).sql(text).collect())

    names = [(1, "ann"), (2, "bob"), (3, "cal")]
    assert rows("root", "name") == names
    with pytest.raises(AnalysisException, match="denied to user 'ann'"):
        rows("ann", "name")
    world.put(
        allow(f"{people}.*", users=["ann"]),
        deny(f"{people}.salary", users=["ann"]),
        mask(f"{people}.name", "MASK", users=["ann"]),
        row_filter(people, "dept = 'x'", users=["ann"]),
    )
    assert rows("ann", "name") == [(1, "xxx"), (2, None), (3, "xxx")]
    with pytest.raises(Exception, match=r"column .*people\.salary"):
        rows("ann", "salary")
    assert rows("root", "name") == names


# --- system tables ---


def test_system_tables_tell_nothing_of_hidden_rows(world: World, people: str) -> None:
    """Those alone are read that know no row and no value: options, schemas and names."""
    world.put(allow(f"{people}.*", users=["ann"]), row_filter(people, "dept = 'x'", users=["ann"]))
    database = people.removesuffix(".people")
    open_to_all = {"aggregation_fields", "branches", "consumers", "options", "schemas"}
    for name in open_to_all:
        world.sql(f"SELECT * FROM {database}.`people${name}`")
    # It shows rows as any query does, and hides them as one.
    assert world.sql(f"SELECT id FROM {database}.`people$ro`") == [(1,), (3,)]
    for name in sorted((METADATA_TABLES | ROW_TABLES) - open_to_all - {"ro"}):
        with pytest.raises(AnalysisException, match=r"without row filter and masks|row-tracking"):
            world.sql(f"SELECT * FROM {database}.`people${name}`")


def test_who_may_read_nothing_learns_no_name(world: World, people: str) -> None:
    database = people.removesuffix(".people")
    world.put()
    statements = [
        *(f"SELECT * FROM {database}.`people${name}`" for name in sorted(METADATA_TABLES)),
        f"SELECT nosuch FROM {people}",
        f"SELECT * FROM {people} VERSION AS OF 'nosuch'",
        f"INSERT INTO {people} (nosuch) VALUES (1)",
        f"INSERT INTO {people} VALUES (1)",
        f"DELETE FROM {people} WHERE nosuch = 1",
        f"UPDATE {people} SET nosuch = 1",
        f"MERGE INTO {people} USING (SELECT 1 AS i) s ON nosuch = s.i WHEN MATCHED THEN DELETE",
        f"DESCRIBE {people}",
    ]
    for statement in statements:
        with pytest.raises(AnalysisException, match="denied to user 'ann'") as raised:
            world.sql(statement)
        assert not any(name in str(raised.value) for name in ("ssn", "salary", "dept")), statement
    for statement in (f"SELECT * FROM {database}.peopl", f"DESCRIBE {database}.peopl"):
        with pytest.raises(AnalysisException, match=r"no table \S+\.peopl$|cannot be found"):
            world.sql(statement)
    with pytest.raises(AnalysisException, match="did you mean"):
        world.sql(f"SELECT * FROM {database}.peopl", "root")
    world.put(allow(f"{people}.id", users=["ann"]))
    with pytest.raises(AnalysisException, match="did you mean"):
        world.sql(f"SELECT * FROM {database}.peopl")


def test_rights_are_shown_as_far_as_their_reader_may_know(world: World, people: str) -> None:
    text = f"SELECT * FROM {people.removesuffix('.people')}.`people$access`"
    keys = f"CALL lake.sys.check_keys(table => '{people}')"
    limit(world, people)
    everything = policy(f"{people}.*", policyItems=[item("alter", users=["bob"], delegateAdmin=True)])
    world.put(*world.policies, everything)
    mine = [("user", "ann", name, "SELECT", "shown", "some") for name in ("dept", "id", "name")]
    mine.append(("user", "ann", "ssn", "SELECT", "masked", "some"))
    assert world.sql(text) == mine
    with pytest.raises(AnalysisException, match="may not grant on table"):
        world.sql(keys)
    bobs = world.sql(f"SELECT * FROM ({text}) WHERE column IS NOT NULL", "bob")
    assert {row[1] for row in bobs} == {"ann", "root"}
    assert set(mine) < set(bobs)
    assert ("salary", None, "no key", ["user ann"]) in world.session("bob").sql(keys).collect()
    with pytest.raises(Exception, match="'eve' has no right on table"):
        world.sql(text, "eve")
    # After another user's query, from the same JVM.
    assert world.sql(text) == mine


def test_row_filters_may_look_at_other_tables(world: World, people: str) -> None:
    """With the rights of the policy: its user need not be able to read them."""
    teams = people.replace("people", "teams")
    root = world.session("root")
    root.sql(f"CREATE TABLE IF NOT EXISTS {teams} (dept STRING, boss STRING)")
    root.sql(f"INSERT OVERWRITE {teams} VALUES ('y', 'ann'), ('x', 'zoe')")
    said = f"dept IN (SELECT dept FROM {teams} WHERE boss = current_user())"
    world.put(allow(f"{people}.*", users=["ann"]), row_filter(people, said, users=["ann"]))
    for _ in range(2):
        assert world.sql(f"SELECT id FROM {people}") == [(2,), (4,)]
        assert world.sql(f"SELECT count(*) FROM {people} WHERE name <> 'dan'") == [(1,)]
        assert world.sql(f"SELECT a.id FROM {people} a JOIN {people} b ON a.id = b.id + 2") == [(4,)]
        root.sql(f"INSERT INTO {teams} VALUES ('q', 'ann')")
    with pytest.raises(AnalysisException, match=r"denied to user 'ann'"):
        world.sql(f"SELECT boss FROM {teams}")
    told = str(world.sql(f"EXPLAIN EXTENDED SELECT id FROM {people}"))
    assert "teams" not in told
    assert "boss" not in told
