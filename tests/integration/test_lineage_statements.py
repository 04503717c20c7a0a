"""Every statement of Spark is one process: its kind, its target, its text, and what becomes of names."""

# ruff: noqa: E501 - a statement is easier to read when it is not broken

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lineage_edges import spread
from spark_version import SPARK

import lockgate
from lockgate.framework.access import mask_literals
from lockgate.framework.lineage.lake_methods import wait_for_records
from lockgate.framework.lineage.model.edge_kinds import kind_names
from lockgate.framework.lineage.warehouse_lineage import address_of, lineage_of
from lockgate.framework.plugins import plugins
from lockgate.framework.store import Catalog

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = pytest.mark.usefixtures("interpreted", "own_index")

REASON = "spark.lockgate.lineage.reason"


@dataclass(frozen=True)
class Process:
    """A process, as the runs of one statement show it."""

    kind: str
    target: str
    text: str
    edges: frozenset[str]
    error: str | None
    written: int | None


class Recorder:
    """Runs statements, each under a reason of its own, and finds what was recorded of them."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._prefix = str(time.monotonic())

    def run(self, name: str, act: str | Callable[[], Any]) -> None:
        self.lake.spark.conf.set(REASON, f"{self._prefix} {name}")
        try:
            self.lake.sql(act) if isinstance(act, str) else act()
        finally:
            self.lake.spark.conf.unset(REASON)

    def found(self, catalog: Catalog | None = None) -> dict[str, list[Process]]:
        wait_for_records(self.lake.spark)
        found: dict[str, list[Process]] = {}
        with lineage_of(catalog or self.lake.catalog).reading() as index:
            spread(index)
            for number, kind, target, run in index.execute(_RUNS).fetchall():
                values = json.loads(run)
                prefix, _, name = values.get("why", {}).get("reason", "").partition(" ")
                if prefix == self._prefix:
                    edges = frozenset(
                        f"{target} < {source} {kinds}"
                        for source, target, bits in index.execute(_EDGES, (number, number)).fetchall()
                        for kinds in kind_names(bits)
                    )
                    how, written = values.get("how", ""), values.get("written")
                    each = Process(kind, target, how, edges, values.get("error"), written)
                    found.setdefault(name, []).append(each)
        return found


_RUNS = (
    "SELECT p.id, p.kind, d.namespace || d.name, r.run FROM run r JOIN process p ON p.id = r.process "
    "LEFT JOIN dataset d ON d.id = p.target"
)
_EDGES = (
    "SELECT s.name, t.name, e.kinds FROM back e JOIN field s ON s.id = e.source "
    "JOIN field t ON t.id = e.target WHERE e.process = ? UNION ALL "
    "SELECT s.name, '*', e.kinds FROM row_edge e JOIN field s ON s.id = e.source WHERE e.process = ?"
)


@pytest.fixture
def recorder(lake: Lake) -> Recorder:
    return Recorder(lake)


@pytest.fixture(scope="module")
def p(lake: Lake, shared_table: Callable[[str], str]) -> str:
    name = shared_table("p")
    lake.sql(f"CREATE TABLE {name} (id INT, name STRING)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    return name


NAME = frozenset({"name < name identity"})
NAMES = NAME | {"id < id identity"}
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """A statement, and what must be recorded of it."""

    sql: str
    kind: str
    target: str
    edges: frozenset[str] = NONE


def case(sql: str, kind: str, target: str, *edges: str) -> Case:
    return Case(sql, kind, target, frozenset(edges))


def names(sql: str, kind: str, target: str) -> Case:
    """A statement that copies both columns."""
    return Case(sql, kind, target, NAMES)


# `t` is the table that goes by the name `renamed` in the end, and so does all of its history.
V1, DIRECTORY = "spark_catalogdefault.lineage_v1", "file:{out}/directory"
CASES: dict[str, Case] = {
    "create": case("CREATE TABLE {t} (id INT, name STRING) TBLPROPERTIES ('primary-key' = 'id')", "CREATE_TABLE", "{renamed}"),
    "like": case("CREATE TABLE {like} LIKE {p}", "CREATE_TABLE_LIKE", "{like}"),
    "insert": names("INSERT INTO {t} SELECT id, name FROM {p}", "INSERT", "{renamed}"),
    "by name": names("INSERT INTO {t} BY NAME SELECT name, id FROM {p}", "INSERT", "{renamed}"),
    "with": names("WITH c AS (SELECT * FROM {p}) INSERT INTO {t} SELECT * FROM c", "INSERT", "{renamed}"),
    "overwrite": names("INSERT OVERWRITE {t} SELECT id, name FROM {p}", "INSERT_OVERWRITE", "{renamed}"),
    "ctas": names("CREATE TABLE {c} AS SELECT id, name FROM {p}", "CREATE_TABLE_AS_SELECT", "{c}"),
    "rtas": case("CREATE OR REPLACE TABLE {c} AS SELECT upper(name) AS u FROM {p}", "REPLACE_TABLE_AS_SELECT", "{c}",
                 "u < name transformation"),
    "merge": case("MERGE INTO {t} USING {p} p ON {t}.id = p.id WHEN MATCHED THEN UPDATE SET name = p.name", "MERGE", "{renamed}",
                  "name < name identity", "* < id join"),
    "update": case("UPDATE {t} SET name = concat(name, 'x') WHERE id = 1", "UPDATE", "{renamed}",
                   "name < name transformation", "* < id filter"),
    "delete": case("DELETE FROM {t} WHERE id = 2", "DELETE", "{renamed}", "* < id filter"),
    "delete all": case("DELETE FROM {t}", "DELETE", "{renamed}"),
    "truncate": case("TRUNCATE TABLE {t}", "TRUNCATE", "{renamed}"),
    "v1 ctas": names("CREATE TABLE spark_catalog.default.lineage_v1 USING json LOCATION '{out}/v1' AS SELECT id, name FROM {p}", "CREATE_TABLE_AS_SELECT", V1),
    "v1 insert": names("INSERT INTO spark_catalog.default.lineage_v1 SELECT id, name FROM {p}", "INSERT", V1),
    "v1 overwrite": names("INSERT OVERWRITE spark_catalog.default.lineage_v1 SELECT id, name FROM {p}", "INSERT_OVERWRITE", V1),
    "from v1": names("INSERT INTO {t} SELECT id, name FROM spark_catalog.default.lineage_v1", "INSERT", "{renamed}"),
    "drop v1": case("DROP TABLE spark_catalog.default.lineage_v1", "DROP_TABLE", V1),
    "directory": Case("INSERT OVERWRITE DIRECTORY '{out}/directory' USING json SELECT name FROM {p}", "EXPORT", DIRECTORY, NAME),
    "from directory": Case("CREATE TABLE {fromfile} AS SELECT name FROM json.`{out}/directory`", "CREATE_TABLE_AS_SELECT", "{fromfile}", NAME),
    "directory to directory": Case("INSERT OVERWRITE DIRECTORY '{out}/other' USING json SELECT name FROM json.`{out}/directory`", "EXPORT", "file:{out}/other", NAME),
    "view": case("CREATE OR REPLACE TEMPORARY VIEW lineage_view AS SELECT name AS n FROM {p}", "CREATE_VIEW", "spark_cataloglineage_view",
                 "n < name identity"),
    "from view": case("CREATE TABLE {fromview} AS SELECT n FROM lineage_view", "CREATE_TABLE_AS_SELECT", "{fromview}", "n < name identity"),
    "persistent view": case("CREATE VIEW spark_catalog.default.lineage_view (v) AS SELECT upper(name) AS u FROM {p} WHERE id > 0", "CREATE_VIEW",
                            "spark_catalogdefault.lineage_view", "v < name transformation", "* < id filter"),
    "from persistent view": case("INSERT OVERWRITE {fromview} SELECT v FROM spark_catalog.default.lineage_view", "INSERT_OVERWRITE",
                                 "{fromview}", "n < name transformation", "* < id filter"),
    "alter view": case("ALTER VIEW spark_catalog.default.lineage_view AS SELECT name AS w FROM {p}", "ALTER_VIEW",
                       "spark_catalogdefault.lineage_view", "w < name identity"),
    "drop view": case("DROP VIEW spark_catalog.default.lineage_view", "DROP_VIEW", "spark_catalogdefault.lineage_view"),
    "cache": Case("CACHE TABLE lineage_cache AS SELECT name FROM {p}", "CACHE", "lineage_cache", NAME),
    "from cache": Case("CREATE TABLE {fromcache} AS SELECT name FROM lineage_cache", "CREATE_TABLE_AS_SELECT", "{fromcache}", NAME),
    "cache table": Case("CACHE TABLE {p}", "CACHE", "cache of lake.{p}", NAMES),
    "immediate": Case("EXECUTE IMMEDIATE 'INSERT OVERWRITE {fromcache} SELECT name FROM {p}'", "INSERT_OVERWRITE", "{fromcache}", NAME),
    "add": case("ALTER TABLE {t} ADD COLUMN extra INT", "ADD_COLUMNS", "{renamed}"),
    "alter": case("ALTER TABLE {t} ALTER COLUMN extra TYPE BIGINT", "ALTER_COLUMNS", "{renamed}"),
    "rename column": case("ALTER TABLE {t} RENAME COLUMN extra TO more", "RENAME_COLUMN", "{renamed}"),
    "drop column": case("ALTER TABLE {t} DROP COLUMN more", "DROP_COLUMNS", "{renamed}"),
    "rename table": case("ALTER TABLE {t} RENAME TO {renamed}", "RENAME_TABLE", "{renamed}"),
    "drop": case("DROP TABLE {renamed}", "DROP_TABLE", "{renamed}"),
}  # fmt: skip
if SPARK < (4, 2):
    del CASES["like"]  # older grammars take no table of another catalog there
# The runs of these also say which snapshot they have made.
WRITERS = ("insert", "overwrite", "ctas", "rtas", "merge", "update", "delete", "delete all", "truncate")


def test_each_statement_is_one_process(
    lake: Lake, recorder: Recorder, p: str, table: Callable[[str], str], tmp_path: Path
) -> None:
    made = ("t", "c", "like", "fromview", "fromcache", "fromfile", "renamed")
    filled = {"p": p, "out": str(tmp_path), **{name: table(name) for name in made}}
    try:
        for name, each in CASES.items():
            recorder.run(name, each.sql.format(**filled))
        recorder.run("exists", f"CREATE TABLE IF NOT EXISTS {table('c')} AS SELECT id FROM {p}")
        for name, sql in (("show", "SHOW TABLES IN lake.sys"), ("explain", f"EXPLAIN SELECT * FROM {p}"), ("describe", f"DESCRIBE {p}"), ("read", f"SELECT * FROM {p}")):  # fmt: skip
            recorder.run(name, lambda sql=sql: lake.sql(sql).collect())
    finally:
        lake.sql("DROP TABLE IF EXISTS spark_catalog.default.lineage_v1")
        lake.spark.catalog.clearCache()
    found = recorder.found()
    assert {name: len(each) for name, each in found.items()} == dict.fromkeys(CASES, 1)
    short = {key: value.removeprefix("lake.") for key, value in filled.items()}
    assert {name: (each.kind, each.target, each.edges) for name, [each] in found.items()} == {
        name: (each.kind, each.target.format(**short), each.edges) for name, each in CASES.items()
    }
    texts = {name: mask_literals(each.sql.format(**filled)) for name, each in CASES.items()}
    texts["immediate"] = f"INSERT OVERWRITE {table('fromcache')} SELECT name FROM {p}"
    assert {name: each.text for name, [each] in found.items()} == texts
    assert [name for name in WRITERS if found[name][0].written is None] == []


def test_several_inserts_are_several_processes(
    lake: Lake, recorder: Recorder, p: str, table: Callable[[str], str]
) -> None:
    lake.sql(f"CREATE TABLE {table('one')} (id INT, name STRING)")
    lake.sql(f"CREATE TABLE {table('two')} (name STRING)")
    recorder.run("both", f"FROM {p} INSERT OVERWRITE {table('one')} SELECT id, name WHERE id > 1 INSERT INTO {table('two')} SELECT name")  # fmt: skip
    found = sorted(recorder.found()["both"], key=lambda each: each.target)
    assert [(each.kind, each.target.rpartition(".")[2], each.edges, each.written) for each in found] == [
        ("INSERT_OVERWRITE", "one", NAMES | {"* < id filter"}, 1),
        ("INSERT", "two", NAME, 1),
    ]


def test_what_is_dropped_with_its_database_reads_no_more(lake: Lake, p: str) -> None:
    lake.sql("CREATE DATABASE lake.lineage_gone")
    lake.sql(f"CREATE TABLE lake.lineage_gone.copy AS SELECT name FROM {p}")
    impact = f"CALL lake.sys.impact(table => '{p.removeprefix('lake.')}', `column` => 'name')"
    assert "lineage_gone.copy.name" in {row.reader for row in lake.sql(impact).collect()}
    lake.sql("DROP DATABASE lake.lineage_gone CASCADE")
    assert "lineage_gone.copy.name" not in {row.reader for row in lake.sql(impact).collect()}
    lake.sql("CREATE DATABASE lake.lineage_gone")
    lake.sql(f"CREATE TABLE lake.lineage_gone.copy AS SELECT name FROM {p}")
    assert "lineage_gone.copy.name" in {row.reader for row in lake.sql(impact).collect()}
    lake.sql("DROP DATABASE lake.lineage_gone CASCADE")


def test_data_frames(
    lake: Lake, recorder: Recorder, p: str, table: Callable[[str], str], tmp_path: Path
) -> None:
    rows = lake.spark.table(p)
    lake.sql(f"CREATE TABLE {table('t')} (id INT, name STRING) PARTITIONED BY (id)")
    acts: dict[str, tuple[str, Callable[[], Any]]] = {
        "create": ("CREATE_TABLE_AS_SELECT", lambda: rows.writeTo(table("new")).create()),
        "replace": ("REPLACE_TABLE_AS_SELECT", lambda: rows.writeTo(table("new")).createOrReplace()),
        "append": ("INSERT", lambda: rows.writeTo(table("t")).append()),
        "dynamic": ("INSERT_OVERWRITE", lambda: rows.writeTo(table("t")).overwritePartitions()),
        "insertInto": ("INSERT", lambda: rows.write.insertInto(table("new"))),
        "saveAsTable": ("CREATE_TABLE_AS_SELECT", lambda: rows.write.saveAsTable(table("saved"))),
        "export": ("EXPORT", lambda: rows.select("name").write.parquet(str(tmp_path / "out"))),
        "checkpoint": ("INSERT", lambda: rows.localCheckpoint().writeTo(table("t")).append()),
        "cache": ("INSERT", lambda: rows.cache().writeTo(table("t")).append()),
    }
    for name, (_, act) in acts.items():
        recorder.run(name, act)
    rows.unpersist()
    found = recorder.found()
    written = {name: [each for each in made if each.kind != "SELECT"] for name, made in found.items()}
    assert {name: [each.kind for each in made] for name, made in written.items()} == {
        name: [kind] for name, (kind, _) in acts.items()
    }
    edges = {name: made[0].edges for name, made in written.items()}
    assert edges == dict.fromkeys(acts, NAMES) | {"export": NAME}


def test_failed_and_cancelled_statements(
    lake: Lake, recorder: Recorder, p: str, table: Callable[[str], str]
) -> None:
    lake.sql(f"CREATE TABLE {table('t')} (id BIGINT)")
    with pytest.raises(Exception, match="777"):
        recorder.run("failed", f"INSERT INTO {table('t')} SELECT id + assert_true(false, '777') FROM {p}")
    with pytest.raises(Exception, match="nowhere"):
        recorder.run("not analysed", f"INSERT INTO {table('t')} SELECT nowhere FROM {p}")
    ended = threading.Event()
    threading.Thread(target=_cancel, args=(lake.spark, ended), daemon=True).start()
    long = "(SELECT count_if(a.id * b.id % 7 = 3) AS n FROM range(4000000000) a CROSS JOIN range(100000) b)"
    with pytest.raises(Exception, match=r"(?i)cancel"):
        recorder.run("cancelled", f"INSERT INTO {table('t')} SELECT id + n FROM {p}, {long}")
    ended.set()
    found = recorder.found()
    assert {name: [each.kind for each in made] for name, made in found.items()} == {
        "failed": ["INSERT"],
        "cancelled": ["INSERT"],
    }
    assert all(each.error for made in found.values() for each in made)
    assert "777" not in str(found)


def _cancel(spark: Any, ended: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    # Again and again: the first job may be over when it is cancelled, and then the next would run for hours.
    while not ended.wait(0.05):
        if tracker.getActiveJobsIds():
            spark.sparkContext.cancelAllJobs()


def test_history_follows_columns_and_tables(lake: Lake, p: str, table: Callable[[str], str]) -> None:
    """A column that is renamed keeps what it came from, a new one of its name does not get it."""
    t, moved = table("t"), table("moved")
    lake.sql(f"CREATE TABLE {t} (id INT, a STRING)")
    lake.sql(f"INSERT INTO {t} SELECT id, name FROM {p}")
    lake.sql(f"ALTER TABLE {t} RENAME COLUMN a TO b")
    lake.sql(f"ALTER TABLE {t} ADD COLUMN a INT")
    lake.sql(f"INSERT INTO {t} SELECT id, 'x' AS b, id AS a FROM {p}")
    sources = {edge.source.qualified.rpartition(".")[2] for edge in lake.lineage(f"{t}.b").found}
    assert sources == {"name"}
    sources = {edge.source.qualified.rpartition(".")[2] for edge in lake.lineage(f"{t}.a").found}
    assert sources == {"id"}
    lake.sql(f"ALTER TABLE {t} RENAME TO {moved}")
    lake.sql(f"CREATE TABLE {t} (id INT, b STRING)")
    assert {edge.target.table for edge in lake.lineage(f"{moved}.b").found} == {moved.removeprefix("lake.")}
    forward = {edge.target.qualified for edge in lake.lineage(f"{p}.name", "forward").found}
    assert f"{moved}.b".removeprefix("lake.") in forward
    assert f"{t}.b".removeprefix("lake.") not in forward


def test_two_warehouses_in_one_session(
    lake: Lake, recorder: Recorder, p: str, table: Callable[[str], str], tmp_path: Path
) -> None:
    other = lockgate.connect(str(tmp_path / "other"), spark=lake.spark, catalog="elsewhere")
    other.sql("CREATE DATABASE elsewhere.db")
    recorder.run("there", f"CREATE TABLE elsewhere.db.copy AS SELECT name FROM {p}")
    recorder.run("stays", "CREATE TABLE elsewhere.db.again AS SELECT name FROM elsewhere.db.copy")
    recorder.run("back", f"CREATE TABLE {table('back')} AS SELECT name FROM elsewhere.db.again")
    here, there = recorder.found(), recorder.found(other.catalog)
    assert set(there) == {"there", "stays", "back"}
    assert set(here) == {"there", "back"}
    own, others = address_of(lake.catalog), address_of(other.catalog)
    assert [edge.source.qualified for edge in other.lineage("db.again.name").found] == [
        "db.copy.name",
        f"{own}/{p.removeprefix('lake.')}.name",
    ]
    back = {edge.source.qualified for edge in lake.lineage(f"{table('back')}.name").found}
    assert back == {f"{others}/db.again.name"}
    readers = {edge.target.qualified for edge in lake.lineage(f"{p}.name", "forward").found}
    assert f"{others}/db.copy.name" in readers


def test_calls_are_asked_for_and_noted(lake: Lake, p: str, recorder: Recorder) -> None:
    name = p.removeprefix("lake.")
    lake.sql(f"CALL lake.sys.compact(table => '{name}')")
    plugins().events.flush()
    with lineage_of(lake.catalog).reading() as index:
        rows = index.execute(
            "SELECT p.name, d.name FROM process p JOIN dataset d ON d.id = p.target WHERE p.kind = 'CALL'"
        ).fetchall()
    assert ("compact", name) in rows
    traced = lake.sql(f"CALL lake.sys.lineage(name => '{name}.name', direction => 'forward')").collect()
    assert all(row.source for row in traced)
    assert lake.sql(f"CALL lake.sys.impact(table => '{name}', `column` => 'name')").columns[0] == "reader"


@pytest.fixture
def company(lake: Lake, table: Callable[[str], str], tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """A file of employees, loaded into two tables, joined, averaged, exported and queried."""
    (tmp_path / "empinfo.csv").write_text("no,name,salary,deptno,dname\n1,ann,100,7,dev\n2,bob,200,7,dev\n")
    rows = lake.spark.read.csv(
        str(tmp_path / "empinfo.csv"),
        header=True,
        schema="no INT, name STRING, salary INT, deptno INT, dname STRING",
    )
    rows.select("no", "name", "salary", "deptno").writeTo(table("empinfo")).create()
    rows.select("deptno", "dname").distinct().writeTo(table("department")).create()
    lake.sql(
        f"CREATE TABLE {table('employee')} AS SELECT name, salary, dname FROM {table('empinfo')} "
        f"JOIN {table('department')} USING (deptno)"
    )
    lake.sql(
        f"CREATE TABLE {table('avgsalary')} AS SELECT dname, avg(salary) AS avgsalary FROM {table('employee')} "
        "GROUP BY dname"
    )
    lake.spark.table(table("avgsalary")).write.csv(str(tmp_path / "avg"))
    lake.spark.conf.set("spark.lockgate.lineage", "all")
    lake.spark.table(table("avgsalary")).collect()
    yield table
    lake.spark.conf.unset("spark.lockgate.lineage")


def test_a_company_is_traced_both_ways(lake: Lake, company: Callable[[str], str], tmp_path: Path) -> None:
    named = {name: company(name).removeprefix("lake.") for name in ("empinfo", "employee", "avgsalary")}
    start = f"file:{tmp_path}/empinfo.csv#salary"
    back = [edge.source.qualified for edge in lake.lineage(f"{company('avgsalary')}.avgsalary").found]
    assert back == [f"{named['employee']}.salary", f"{named['empinfo']}.salary", start]
    forward = {edge.target.qualified for edge in lake.lineage(start, "forward").found}
    assert forward == {
        *(f"{named['empinfo']}.salary", f"{named['employee']}.salary", f"{named['avgsalary']}.avgsalary"),
        *(f"file:{tmp_path}/avg#avgsalary", "result.avgsalary"),
    }
