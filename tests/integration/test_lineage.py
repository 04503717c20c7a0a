"""Lineage of statements as Spark runs them: which column came from which, one process a statement."""

# ruff: noqa: E501 - a statement and its truth are easier to compare when neither is broken

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from spark_version import SPARK

from lockgate.errors import ColumnNotFoundError, InputError, LineageWarning
from lockgate.framework.lineage.lake_methods import wait_for_records
from lockgate.framework.lineage.model.edge_kinds import kind_names
from lockgate.framework.lineage.questions.vertices import processes
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.plugins import plugins
from lockgate.lineage import declare

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = pytest.mark.usefixtures("own_index")

Edges = dict[str, set[tuple[str, str]]]


@pytest.fixture(scope="module")
def people(lake: Lake, shared_table: Callable[[str], str]) -> str:
    """Two tables that the statements here read: people and their departments."""
    for name, columns in (
        ("people", "id INT, name STRING, pay INT, dept INT"),
        ("depts", "dept INT, dname STRING"),
    ):
        lake.sql(
            f"CREATE TABLE {shared_table(name)} ({columns}) TBLPROPERTIES ('primary-key' = '{columns.split()[0]}')"
        )
    lake.sql(f"INSERT INTO {shared_table('people')} VALUES (1, 'a', 10, 1), (2, 'b', 20, 1)")
    lake.sql(f"INSERT INTO {shared_table('depts')} VALUES (1, 'd')")
    return shared_table("people").removesuffix("people")


def made_of(lake: Lake, name: str, kinds: str = "all") -> Edges:
    """What a table's columns come from by one step: source column and kind, by column."""
    found: Edges = {}
    answer = lake.lineage(name.removeprefix("lake."), depth=1, kinds=kinds)
    for edge in answer.found:
        column = edge.target.column or "(rows)"
        source = ".".join(edge.source.qualified.rsplit(".", 2)[-2:])
        found.setdefault(column, set()).update((source, kind) for kind in kind_names(edge.kinds))
    return found


def records(lake: Lake, database: str) -> list[dict[str, Any]]:
    """The processes that have a target in a database, the first first."""
    wait_for_records(lake.spark)
    with lineage_of(lake.catalog).reading() as index:
        numbers = [
            row[0]
            for row in index.execute(
                "SELECT p.id FROM process p JOIN dataset d ON d.id = p.target WHERE d.name LIKE ?",
                (f"{database}.%",),
            )
        ]
        found = processes(index, numbers)
    return sorted(found.values(), key=lambda each: (each["first"], each["id"]))


STATEMENTS: list[tuple[str, Edges]] = [
    ("SELECT name, pay * 2 AS p FROM {0}people", {
        "name": {("people.name", "identity")}, "p": {("people.pay", "transformation")}}),
    ("SELECT dname, avg(pay) AS a FROM {0}people p JOIN {0}depts d ON p.dept = d.dept WHERE id > 0 GROUP BY dname", {
        "dname": {("depts.dname", "identity")}, "a": {("people.pay", "aggregation")},
        "(rows)": {("people.dept", "join"), ("depts.dept", "join"), ("people.id", "filter"),
                   ("depts.dname", "group_by")}}),
    ("SELECT CASE WHEN dept = 1 THEN name ELSE 'x' END AS c, sha2(name, 256) AS h, count(*) OVER (PARTITION BY dept "
     "ORDER BY id) AS w, count(name) OVER () AS n FROM {0}people", {
        "c": {("people.dept", "conditional"), ("people.name", "transformation")},
        "h": {("people.name", "masked_transformation")},
        "w": {("people.dept", "window"), ("people.id", "window")}, "n": {("people.name", "masked_aggregation")}}),
    ("WITH c AS (SELECT name AS n, dept FROM {0}people) SELECT a.n, b.n AS m FROM c a JOIN c b ON a.dept = b.dept", {
        "n": {("people.name", "identity")}, "m": {("people.name", "identity")},
        "(rows)": {("people.dept", "join")}}),
    ("SELECT id FROM {0}people EXCEPT SELECT dept FROM {0}depts", {
        "id": {("people.id", "identity")},
        "(rows)": {("depts.dept", "filter")}}),
    ("SELECT name FROM {0}people UNION ALL SELECT dname FROM {0}depts", {
        "name": {("people.name", "identity"), ("depts.dname", "identity")}}),
    ("SELECT (SELECT max(dname) FROM {0}depts d WHERE d.dept = p.dept) AS best FROM {0}people p", {
        "best": {("depts.dname", "aggregation"), ("depts.dept", "filter"), ("people.dept", "filter")}}),
    ("SELECT name FROM {0}people WHERE EXISTS (SELECT 1 FROM {0}depts d WHERE d.dept = people.dept)", {
        "name": {("people.name", "identity")}, "(rows)": {("depts.dept", "filter"), ("people.dept", "filter")}}),
    ("SELECT name FROM {0}people WHERE dept IN (SELECT dept FROM {0}depts)", {
        "name": {("people.name", "identity")}, "(rows)": {("depts.dept", "filter"), ("people.dept", "filter")}}),
    ("SELECT explode(split(name, ',')) AS word, id FROM {0}people", {
        "word": {("people.name", "transformation")}, "id": {("people.id", "identity")}}),
    ("SELECT dept, sum(pay) AS s FROM {0}people GROUP BY ROLLUP (dept)", {
        "dept": {("people.dept", "identity")}, "s": {("people.pay", "aggregation")},
        "(rows)": {("people.dept", "group_by")}}),
    ("SELECT * FROM (SELECT dept, name, pay FROM {0}people) PIVOT (sum(pay) FOR name IN ('a' AS pa, 'b' AS pb))", {
        "dept": {("people.dept", "identity")},
        "pa": {("people.pay", "aggregation"), ("people.name", "conditional")},
        "pb": {("people.pay", "aggregation"), ("people.name", "conditional")},
        "(rows)": {("people.dept", "group_by"), ("people.name", "group_by")}}),
    ("SELECT id, kind, amount FROM {0}people UNPIVOT (amount FOR kind IN (pay, dept))", {
        "id": {("people.id", "identity")}, "amount": {("people.pay", "identity"), ("people.dept", "identity")},
        "(rows)": {("people.pay", "filter"), ("people.dept", "filter")}}),
    ("WITH RECURSIVE r(a, b) AS (SELECT id, pay FROM {0}people UNION ALL SELECT b, a + dept FROM r JOIN {0}depts "
     "ON r.a = dept WHERE a < 3) SELECT a, b FROM r", {
        "a": {("people.id", "identity"), ("people.pay", "identity"), ("people.id", "transformation"),
              ("people.pay", "transformation"), ("depts.dept", "transformation")},
        "b": {("people.pay", "identity"), ("people.id", "transformation"), ("people.pay", "transformation"),
              ("depts.dept", "transformation")},
        "(rows)": {("people.id", "join"), ("people.pay", "join"), ("depts.dept", "join"), ("people.id", "filter"),
                   ("people.pay", "filter"), ("depts.dept", "filter")}}),
    ("SELECT p.name, l.x FROM {0}people p, LATERAL (SELECT p.pay + d.dept AS x FROM {0}depts d WHERE d.dept = p.dept) l", {
        "name": {("people.name", "identity")},
        "x": {("people.pay", "transformation"), ("depts.dept", "transformation")},
        "(rows)": {("depts.dept", "filter"), ("people.dept", "filter")}}),
    ("SELECT DISTINCT named_struct('a', name, 'b', pay).a AS a FROM {0}people", {
        "a": {("people.name", "transformation"), ("people.pay", "transformation")},
        "(rows)": {("people.name", "group_by"), ("people.pay", "group_by")}}),
    ("SELECT name FROM {0}people ORDER BY pay LIMIT 1", {
        "name": {("people.name", "identity")}, "(rows)": {("people.pay", "sort")}}),
    ("SELECT CAST(id AS BIGINT) AS up, CAST(id AS SMALLINT) AS down, coalesce(name, 'x') AS c FROM {0}people", {
        "up": {("people.id", "identity")}, "down": {("people.id", "transformation")},
        "c": {("people.name", "transformation")}}),
    ("SELECT IF(pay > 1, id, dept) AS i, sum(pay) FILTER (WHERE dept = 1) OVER () AS f FROM {0}people", {
        "i": {("people.pay", "conditional"), ("people.id", "transformation"), ("people.dept", "transformation")},
        "f": {("people.pay", "aggregation"), ("people.dept", "conditional")}}),
    ("FROM {0}people |> WHERE pay > 1 |> SELECT name, pay + id AS x", {
        "name": {("people.name", "identity")},
        "x": {("people.pay", "transformation"), ("people.id", "transformation")},
        "(rows)": {("people.pay", "filter")}}),
]  # fmt: skip
if SPARK < (4, 2):
    STATEMENTS = [(sql, found) for sql, found in STATEMENTS if "FILTER (WHERE dept = 1) OVER" not in sql]


@pytest.mark.long
def test_columns_of_statements(lake: Lake, people: str, table: Callable[[str], str]) -> None:
    """Each written truth against what was recorded, all in one look at the index."""
    for number, (sql, _) in enumerate(STATEMENTS):
        lake.sql(f"CREATE TABLE {table(f't{number}')} AS {sql.format(people)}")
    found = {sql: made_of(lake, table(f"t{number}")) for number, (sql, _) in enumerate(STATEMENTS)}
    assert {sql: each for sql, each in found.items() if each != dict(STATEMENTS)[sql]} == {}


def test_one_process_a_statement(lake: Lake, people: str, table: Callable[[str], str], database: str) -> None:
    t = table("t")
    lake.sql(f"CREATE TABLE {t} (id INT, name STRING, pay INT) TBLPROPERTIES ('primary-key' = 'id')")
    lake.sql(f"INSERT INTO {t} SELECT id, name, pay FROM {people}people")
    lake.sql(f"INSERT OVERWRITE {t} SELECT id, name, pay + 1 FROM {people}people")
    lake.sql(
        f"MERGE INTO {t} USING {people}depts d ON {t}.id = d.dept WHEN MATCHED THEN UPDATE SET name = dname"
    )
    lake.sql(f"UPDATE {t} SET pay = pay * 2 WHERE id = 1")
    lake.sql(f"DELETE FROM {t} WHERE id = 2 AND pay > 1000")
    lake.spark.table(f"{people}people").select("id", "name", "pay").writeTo(t).append()
    lake.sql(f"TRUNCATE TABLE {t}")
    lake.sql(f"DROP TABLE {t}")
    found = records(lake, database)
    kinds = [(each["kind"], each["count"]) for each in found]
    assert kinds == [
        *(("CREATE_TABLE", 1), ("INSERT", 2), ("INSERT_OVERWRITE", 1), ("MERGE", 1), ("UPDATE", 1)),
        *(("DELETE", 1), ("TRUNCATE", 1), ("DROP_TABLE", 1)),
    ]
    insert = found[1]
    assert insert["first_written"] == 1
    assert insert["written"] > 4
    assert insert["run"]["reads"] == {"0": 1}
    assert found[2]["run"]["how"].endswith(f"SELECT id, name, pay + ? FROM {people}people")
    assert found[2]["run"]["who"]["user"]


def test_merge_names_only_what_changes(lake: Lake, people: str, table: Callable[[str], str]) -> None:
    t = table("m")
    lake.sql(f"CREATE TABLE {t} (id INT, name STRING, pay INT) TBLPROPERTIES ('primary-key' = 'id')")
    lake.sql(f"INSERT INTO {t} VALUES (1, 'a', 2)")
    lake.sql(
        f"MERGE INTO {t} USING {people}depts d ON {t}.id = d.dept "
        "WHEN MATCHED THEN UPDATE SET name = d.dname WHEN NOT MATCHED THEN INSERT (id, name, pay) VALUES (d.dept, d.dname, 0)"
    )
    found = made_of(lake, t, "direct")
    assert ("depts.dname", "identity") in found["name"]
    assert ("depts.dept", "identity") in found["id"]
    assert "pay" not in found


def test_a_failed_statement_is_recorded(
    lake: Lake, people: str, table: Callable[[str], str], database: str
) -> None:
    lake.sql(f"CREATE TABLE {table('f')} (x INT)")
    with pytest.raises(Exception, match="secret"):
        lake.sql(f"INSERT INTO {table('f')} SELECT raise_error(concat('secret', name)) FROM {people}people")
    [failed] = [each for each in records(lake, database) if each["kind"] == "INSERT"]
    assert (failed["count"], failed["failed"]) == (1, 1)
    assert failed["run"]["error"]
    assert "secret" not in str(failed)


def test_files_views_and_queries(
    lake: Lake, people: str, table: Callable[[str], str], tmp_path: Path, all_statements: None
) -> None:
    lake.sql(f"CREATE OR REPLACE TEMPORARY VIEW v AS SELECT name AS n FROM {people}people")
    out = tmp_path / "out"
    lake.sql("SELECT upper(n) AS u FROM v").write.json(str(out))
    lake.spark.read.schema("u STRING").json(str(out)).writeTo(table("back")).create()
    lake.table(table("back")).collect()
    back = {edge.source.qualified for edge in lake.lineage(f"{table('back')}.u").found}
    assert f"file:{out}#u" in back
    assert f"{people.removeprefix('lake.')}people.name" in back
    forward = {edge.target.qualified for edge in lake.lineage(f"{people}people.name", "forward").found}
    assert {f"{table('back').removeprefix('lake.')}.u", "result.u"} <= forward


def test_a_stream_is_one_process(
    lake: Lake, people: str, table: Callable[[str], str], database: str, tmp_path: Path
) -> None:
    lake.sql(f"CREATE TABLE {table('s')} (id INT, name STRING)")
    source = tmp_path / "in"
    for number in range(3):
        lake.sql(f"SELECT {number} AS id, 'n' AS name").write.mode("append").json(str(source))
    stream = (
        lake.spark.readStream.schema("id INT, name STRING").option("maxFilesPerTrigger", 1).json(str(source))
    )
    query = stream.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query.toTable(table("s")).awaitTermination()
    [found] = [each for each in records(lake, database) if each["kind"] == "STREAM"]
    assert found["count"] == 3
    assert (found["first_written"], found["written"]) == (1, 3)
    assert made_of(lake, table("s"), "direct").keys() == {"id", "name"}


def test_a_stream_of_a_table_is_one_process(
    lake: Lake, people: str, table: Callable[[str], str], database: str, tmp_path: Path
) -> None:
    lake.sql(f"CREATE TABLE {table('s')} (id INT, name STRING)")
    lake.sql(f"CREATE TABLE {table('copy')} (id INT, name STRING)")
    for number in range(3):
        lake.sql(f"INSERT INTO {table('s')} VALUES ({number}, 'n')")
    stream = lake.spark.readStream.option("maxFilesPerTrigger", 1).table(table("s"))
    query = stream.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query.toTable(table("copy")).awaitTermination()
    [found] = [each for each in records(lake, database) if each["kind"] == "STREAM"]
    assert (found["count"], found["written"]) == (3, 3)
    assert made_of(lake, table("copy"), "direct") == {
        name: {(f"s.{name}", "identity")} for name in ("id", "name")
    }


def test_a_function_of_batches_is_looked_through(
    lake: Lake, people: str, table: Callable[[str], str], tmp_path: Path
) -> None:
    lake.sql(f"CREATE TABLE {table('b')} (x INT)")
    source = tmp_path / "in"
    lake.sql("SELECT 1 AS id").write.json(str(source))
    stream = lake.spark.readStream.schema("id INT").json(str(source))
    joined = stream.join(lake.spark.table(f"{people}people"), "id").selectExpr("pay + 1 AS x")
    query = joined.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query.foreachBatch(lambda rows, _: rows.writeTo(table("b")).append()).start().awaitTermination()
    assert made_of(lake, table("b"), "direct") == {"x": {("people.pay", "transformation")}}


@pytest.mark.parametrize("strategy", ["lookup", "worker", "spark"])
def test_lookup_joins_are_exact(
    lake: Lake,
    people: str,
    table: Callable[[str], str],
    options: dict[str, str],
    lookups_end: None,
    strategy: str,
) -> None:
    given = {
        **options,
        "lookup.strategy": "spark" if strategy == "spark" else "lookup",
        "lookup.cache": "memory",
    }
    given["lookup.in-jvm"] = str(strategy == "lookup").lower()
    rows = lake.spark.table(f"{people}people").select("name", "dept")
    joined = lake.lookup_join(rows, f"{people}depts", on="dept", select=["dname"], options=given)
    joined.selectExpr("name", "upper(dname) AS d").writeTo(table("joined")).create()
    found = made_of(lake, table("joined"), "direct")
    assert found == {"name": {("people.name", "identity")}, "d": {("depts.dname", "transformation")}}


def test_declared_columns(lake: Lake, people: str, table: Callable[[str], str]) -> None:
    """Rows that went through Python have no plan to look at: nothing is guessed."""
    rows = lake.spark.createDataFrame([(1, "a")], "id INT, name STRING")
    rows.writeTo(table("guessed")).create()
    lake.sql(f"INSERT INTO {table('guessed')} SELECT id, name FROM {people}people")
    assert made_of(lake, table("guessed")).keys() == {"id", "name"}
    declared = declare(rows, {"name": [f"{people}people.name"], "id": ["file:/in/ids#n"]})
    declared.select("name", "id").writeTo(table("declared")).create()
    found = made_of(lake, table("declared"), "direct")
    assert found["name"] == {("people.name", "identity")}
    assert found.keys() == {"name", "id"}
    with pytest.raises(ColumnNotFoundError, match="name"):
        declare(rows, {"nmae": ["lake.a.b.c"]})
    with pytest.raises(InputError, match="path#column"):
        declare(rows, {"name": ["people.name"]})


def test_calls_are_processes(lake: Lake, people: str, table: Callable[[str], str], database: str) -> None:
    lake.sql(f"CREATE TABLE {table('c')} (x INT)")
    confs, jobs = lake.spark.conf, lake.spark.sparkContext
    confs.set("spark.lockgate.lineage.reason", "nightly")
    jobs.setJobDescription("expiry of 'old' rows")
    call = f"CALL lake.sys.expire_snapshots(table => '{table('c')}', retain_max => 1, dry_run => true)"
    try:
        lake.sql(call)
        confs.set("spark.lockgate.lineage", "off")
        lake.sql(call)
    finally:
        jobs.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]  # unsets it
        confs.unset("spark.lockgate.lineage.reason")
        confs.unset("spark.lockgate.lineage")
    plugins().events.flush()
    [found] = [each for each in records(lake, database) if each["kind"] == "CALL"]
    assert (found["name"], found["count"], found["run"]["dry"]) == ("expire_snapshots", 1, True)
    assert found["run"]["who"]["user"]
    assert found["run"]["why"] == {"job": "expiry of ? rows", "reason": "nightly"}


def test_a_successful_query_changes_no_counter_of_failures(lake: Lake, people: str) -> None:
    """They count since the JVM began, so what other tests made fail on purpose is in them."""
    wait_for_records(lake.spark)
    before = lake.lineage_status()
    lake.sql(f"SELECT * FROM {people}people").collect()
    wait_for_records(lake.spark)
    status = lake.lineage_status()
    same = ("failed", "dropped", "lost", "waiting")
    assert {each: status[each] for each in same} == {each: before[each] for each in same}, status
    assert status["seen"] > before["seen"]


def test_a_table_with_readers_is_protected(lake: Lake, table: Callable[[str], str]) -> None:
    """The readers are those of statements that have just ended."""
    base, copy = table("base"), table("copy")
    lake.sql(f"CREATE TABLE {base} (id INT, name STRING) TBLPROPERTIES ('lineage.on-drop' = 'refuse')")
    lake.sql(f"CREATE TABLE {copy} AS SELECT upper(name) AS n FROM {base}")
    for sql in (
        f"ALTER TABLE {base} DROP COLUMN name",
        f"ALTER TABLE {base} RENAME COLUMN name TO other",
        f"DROP TABLE {base}",
    ):
        with pytest.raises(Exception, match=r"copy\.n \(CREATE_TABLE_AS_SELECT\).*CALL sys\.impact"):
            lake.sql(sql)
    lake.sql(f"ALTER TABLE {base} UNSET TBLPROPERTIES ('lineage.on-drop')")
    lake.spark.conf.set("spark.lockgate.lineage.on-drop", "refuse")
    try:
        with pytest.raises(Exception, match=r"refused by 'lineage\.on-drop'"):
            lake.sql(f"DROP TABLE {base}")
    finally:
        lake.spark.conf.unset("spark.lockgate.lineage.on-drop")
    with pytest.warns(LineageWarning, match="column name of"):
        lake.sql(f"ALTER TABLE {base} DROP COLUMN name")


def test_lineage_is_read_as_tables(lake: Lake, people: str, table: Callable[[str], str]) -> None:
    lake.sql(f"CREATE TABLE {table('copy')} AS SELECT name AS n FROM {people}people WHERE id > 0")
    name = table("copy").removeprefix("lake.")
    edges = lake.sql(
        f"SELECT source_column, target_column, kinds FROM lake.sys.lineage_edges WHERE target = '{name}'"
    ).collect()
    assert {tuple(each) for each in edges} == {("name", "n", "identity"), ("id", "*", "filter")}
    runs = lake.sql(
        "SELECT r.who, r.snapshot_written, p.runs FROM lake.sys.lineage_runs r "
        f"JOIN lake.sys.lineage_processes p ON p.guid = r.process_guid WHERE p.target = '{name}'"
    ).collect()
    assert [(each.snapshot_written, each.runs) for each in runs] == [(1, 1)]
    assert runs[0].who
    names = {each.tableName for each in lake.sql("SHOW TABLES IN lake.sys").collect()}
    assert {"lineage_edges", "lineage_processes", "lineage_runs", "tables"} <= names
