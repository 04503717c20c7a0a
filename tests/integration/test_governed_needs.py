"""The rights that each statement needs: with all of them it runs, without any one of them it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from governed_world import World
from pyspark.errors import PySparkException
from ranger_world import allow, item

from lockgate.framework.governance.ranger.service_definition import service_definition

if TYPE_CHECKING:
    from lockgate import Lake

BASE = "spark_catalog.needs"
NAMES = {
    "p": f"{BASE}.p",
    "q": f"{BASE}.q",
    "o": "lake.needs.o",
    "seen": f"{BASE}.seen",
    "over": f"{BASE}.over",
    "made": f"{BASE}.made",
    "ours": "lake.needs.made",
    "db": BASE,
    "newdb": "spark_catalog.needs_new",
    "lake": "lake.needs",
}


@dataclass(frozen=True)
class Need:
    """A statement, the rights that it needs, and what puts everything back."""

    statement: str
    rights: tuple[str, ...]
    undo: str = ""


NEEDS = [
    Need("SELECT a FROM {p}", ("select {p}.a",)),
    Need("SELECT a FROM {p} WHERE b > 1", ("select {p}.a", "select {p}.b")),
    Need("SELECT a FROM {p} ORDER BY b", ("select {p}.a", "select {p}.b")),
    Need("SELECT max(a) FROM {p} GROUP BY b", ("select {p}.a", "select {p}.b")),
    Need("SELECT count(*) FROM {p}", ("select {p}.b",)),
    Need("SELECT sum(a) OVER (ORDER BY b) FROM {o}", ("select {o}.a", "select {o}.b")),
    Need("SELECT a FROM (SELECT a, b FROM {p})", ("select {p}.a",)),
    Need("WITH c AS (SELECT * FROM {p}) SELECT b FROM c", ("select {p}.b",)),
    Need(
        "SELECT x.a FROM {p} x JOIN {q} y ON x.a = y.a WHERE y.b = 1",
        ("select {p}.a", "select {q}.a", "select {q}.b"),
    ),
    Need("SELECT a FROM {p} WHERE a IN (SELECT b FROM {q})", ("select {p}.a", "select {q}.b")),
    Need(
        "SELECT a FROM {p} x WHERE EXISTS (SELECT 1 FROM {o} y WHERE y.a = x.a)",
        ("select {p}.a", "select {o}.a"),
    ),
    Need("SELECT (SELECT max(a) FROM {q}) FROM {p}", ("select {p}.a", "select {q}.a")),
    Need(
        "SELECT l.b FROM {p} x, LATERAL (SELECT b FROM {q} y WHERE y.a = x.a) l",
        ("select {p}.a", "select {q}.a", "select {q}.b"),
    ),
    Need("SELECT a FROM {p} UNION SELECT b FROM {q}", ("select {p}.a", "select {q}.b")),
    Need("SELECT b FROM {seen}", ("select {p}.b",)),
    Need("SELECT b FROM {over} WHERE a = 1", ("select {p}.a", "select {p}.b")),
    Need("SELECT a FROM {p} TABLESAMPLE (100 PERCENT)", ("select {p}.a",)),
    Need("CACHE TABLE mine AS SELECT a FROM {p}", ("select {p}.a",)),
    Need("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT a FROM {p}", ("select {p}.a",)),
    Need("INSERT INTO {q} SELECT a, a FROM {p}", ("insert {q}", "select {p}.a")),
    Need("INSERT OVERWRITE {q} SELECT a, a FROM {p}", ("insert {q}", "select {q}.*", "select {p}.a")),
    Need("INSERT INTO {o} SELECT a, a FROM {p}", ("insert {o}", "select {p}.a")),
    Need(
        "CREATE TABLE {ours} AS SELECT a FROM {p}",
        ("create {ours}", "insert {ours}", "select {p}.a"),
        "DROP TABLE {ours}",
    ),
    Need("CREATE TABLE {made} (a INT) USING parquet", ("create {made}",), "DROP TABLE {made}"),
    Need("CREATE VIEW {made} AS SELECT a FROM {p}", ("create {made}", "select {p}.a"), "DROP VIEW {made}"),
    Need("ALTER VIEW {seen} AS SELECT a, b FROM {p} WHERE a > 0", ("alter {seen}", "select {p}.a")),
    Need("DROP TABLE {q}", ("drop {q}",), "CREATE TABLE {q} (a INT, b INT) USING parquet"),
    Need("DROP TABLE {o}", ("drop {o}",), "CREATE TABLE {o} (a INT, b INT)"),
    Need("ALTER TABLE {p} SET TBLPROPERTIES ('k' = 'v')", ("alter {p}", "select {p}.*")),
    Need("ALTER TABLE {o} SET TBLPROPERTIES ('comment' = 'v')", ("alter {o}",)),
    Need("ALTER TABLE {o} ADD COLUMN c INT", ("alter {o}",), "ALTER TABLE {o} DROP COLUMN c"),
    Need("COMMENT ON TABLE {p} IS 'c'", ("alter {p}", "select {p}.*")),
    Need("ANALYZE TABLE {p} COMPUTE STATISTICS", ("alter {p}", "select {p}.*")),
    Need("MSCK REPAIR TABLE {p}", ("alter {p}", "select {p}.*")),
    Need("ALTER TABLE {p} ADD IF NOT EXISTS PARTITION (b = 9)", ("alter {p}", "select {p}.*")),
    Need("TRUNCATE TABLE {q}", ("insert {q}", "select {q}.*")),
    Need("TRUNCATE TABLE {o}", ("insert {o}",)),
    Need("DELETE FROM {o} WHERE a = 1", ("insert {o}", "select {o}.*")),
    Need("UPDATE {o} SET a = 2 WHERE b = 1", ("insert {o}", "select {o}.*")),
    Need("CREATE DATABASE {newdb}", ("create {newdb}",), "DROP DATABASE {newdb}"),
    Need("ALTER DATABASE {db} SET DBPROPERTIES (k = 'v')", ("alter {db}",)),
    Need("DESCRIBE {p}", ("select {p}.*",)),
    Need("DESCRIBE {o}", ("select {o}.*",)),
    Need("DESCRIBE DATABASE {db}", ("select {db}",)),
    Need("SHOW COLUMNS IN {p}", ("select {p}.*",)),
    Need("SHOW PARTITIONS {p}", ("select {p}.*",)),
    Need("SHOW TBLPROPERTIES {p}", ("select {p}.*",)),
    Need("SHOW CREATE TABLE {p}", ("select {p}.*",)),
    Need("SHOW TABLES IN {db}", ("select {db}",)),
]
# Statements that need no right, since they show and change nothing but the session.
FREE = ["SELECT 1", "SHOW FUNCTIONS", "SHOW CATALOGS"]


def named(text: str) -> str:
    for key, value in NAMES.items():
        text = text.replace(f"{{{key}}}", value)
    return text


@pytest.fixture(scope="module")
def tables(lake: Lake) -> Iterator[None]:
    for statement in (
        "CREATE DATABASE {db}",
        "CREATE NAMESPACE {lake}",
        "CREATE TABLE {p} (a INT, b INT) USING parquet PARTITIONED BY (b)",
        "CREATE TABLE {q} (a INT, b INT) USING parquet",
        "CREATE TABLE {o} (a INT, b INT)",
        "INSERT INTO {p} VALUES (1, 1), (2, 2)",
        "CREATE VIEW {seen} AS SELECT a, b FROM {p}",
        "CREATE VIEW {over} AS SELECT a, b FROM {seen}",
    ):
        lake.sql(named(statement))
    yield
    lake.sql(f"DROP DATABASE {BASE} CASCADE")
    lake.catalog.drop_namespace("needs", cascade=True)


def refusal(world: World, statement: str, rights: tuple[str, ...]) -> str | None:
    """Return the refusal of a statement to somebody with some rights, None if it runs."""
    pairs = (named(right).split(" ") for right in rights)
    world.put(*(allow(path, access, users=["ann"]) for access, path in pairs))
    try:
        world.session("ann").sql(named(statement)).collect()
    except PySparkException as error:
        return str(error)
    return None


def wrong(world: World, need: Need) -> Iterator[str]:
    for left_out in range(len(need.rights)):
        some = need.rights[:left_out] + need.rights[left_out + 1 :]
        found = refusal(world, need.statement, some)
        if found is None or not ("denied to user" in found or "apply for" in found):
            yield f"{need.statement} without {need.rights[left_out]}: {str(found)[:300]}"
            if found is None and need.undo:
                world.sql(named(need.undo), "root")
    found = refusal(world, need.statement, need.rights)
    if found is not None:
        yield f"{need.statement} with all: {found[:300]}"
    elif need.undo:
        world.sql(named(need.undo), "root")


@pytest.mark.long
@pytest.mark.usefixtures("tables")
def test_each_right_is_needed_and_all_suffice(world: World) -> None:
    wrongs = [each for need in NEEDS for each in wrong(world, need)]
    wrongs += [found for each in FREE if (found := refusal(world, each, ())) is not None]
    assert not wrongs, "\n".join(wrongs)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    "need",
    [need for need in NEEDS if need in NEEDS[::9] or "{ours}" in need.statement],
    ids=lambda need: need.statement,
)
def test_some_rights_are_needed_and_suffice(world: World, need: Need) -> None:
    assert list(wrong(world, need)) == []


@pytest.mark.usefixtures("tables")
def test_a_table_of_files_that_a_query_fills_takes_a_right_on_its_folder(
    world: World, lake_folder: Path
) -> None:
    """Spark writes files of such a table before there is a table."""
    made, read = (named(text) for text in ("{made}", "{p}.a"))
    folder = {"path": {"values": [str(lake_folder / "spark-warehouse" / "needs.db" / "made")]}}
    writes = {"id": 1_000_001, "resources": folder, "policyItems": [item("write", users=["ann"])]}
    rights = [allow(made, "create", users=["ann"]), allow(read, users=["ann"]), writes]
    statement = f"CREATE TABLE {made} USING parquet AS SELECT a FROM {read.removesuffix('.a')}"
    for place, lacks in enumerate(("CREATE on table", "SELECT on table", "INSERT on path")):
        world.put(*rights[:place], *rights[place + 1 :], serviceDef=service_definition())
        with pytest.raises(PySparkException, match=f"{lacks} .* is denied to user 'ann'"):
            world.sql(statement)
        assert not world.session("root").catalog.tableExists(made)
    world.put(*rights, serviceDef=service_definition())
    world.sql(statement)
    assert world.sql(f"SELECT * FROM {made}", "root") == [(1,), (2,)]
    world.sql(f"DROP TABLE {made}", "root")
