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

import lockgate
from lockgate.framework.lineage.lake_methods import wait_for_records
from lockgate.framework.lineage.warehouse import address_of, lineage_of
from lockgate.framework.plugins import plugins
from lockgate.framework.store import Catalog

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = pytest.mark.usefixtures("interpreted")

REASON = "spark.lockgate.lineage.reason"


@pytest.fixture(autouse=True)
def own_index(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path_factory.getbasetemp() / "lineage"))


@dataclass(frozen=True)
class Process:
    """A process, as the runs of one statement show it."""

    kind: str
    target: str
    text: str
    edges: frozenset[tuple[str, str]]
    error: str | None


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
                    edges = frozenset(index.execute(_EDGES, (number,)).fetchall())
                    each = Process(kind, target, values.get("how", ""), edges, values.get("error"))
                    found.setdefault(name, []).append(each)
        return found


_RUNS = (
    "SELECT p.id, p.kind, d.namespace || d.name, r.run FROM run r JOIN process p ON p.id = r.process "
    "LEFT JOIN dataset d ON d.id = p.target"
)
_EDGES = (
    "SELECT s.name, t.name FROM back e JOIN field s ON s.id = e.source JOIN field t ON t.id = e.target "
    "WHERE e.process = ?"
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


NAMES = {("id", "id"), ("name", "name")}
NAME = {("name", "name")}
CASES: dict[str, str] = {
    "create": "CREATE TABLE {t} (id INT, name STRING) TBLPROPERTIES ('primary-key' = 'id')",
    "insert": "INSERT INTO {t} SELECT id, name FROM {p}",
    "by name": "INSERT INTO {t} BY NAME SELECT name, id FROM {p}",
    "overwrite": "INSERT OVERWRITE {t} SELECT id, name FROM {p}",
    "ctas": "CREATE TABLE {c} AS SELECT id, name FROM {p}",
    "rtas": "CREATE OR REPLACE TABLE {c} AS SELECT upper(name) AS u FROM {p}",
    "merge": "MERGE INTO {t} USING {p} p ON {t}.id = p.id WHEN MATCHED THEN UPDATE SET name = p.name",
    "update": "UPDATE {t} SET name = concat(name, 'x') WHERE id = 1",
    "delete": "DELETE FROM {t} WHERE id = 2",
    "truncate": "TRUNCATE TABLE {t}",
    "v1 ctas": "CREATE TABLE spark_catalog.default.lineage_v1 USING json LOCATION '{out}/v1' AS SELECT id, name FROM {p}",
    "v1 insert": "INSERT INTO spark_catalog.default.lineage_v1 SELECT id, name FROM {p}",
    "from v1": "INSERT INTO {t} SELECT id, name FROM spark_catalog.default.lineage_v1",
    "directory": "INSERT OVERWRITE DIRECTORY '{out}/directory' USING json SELECT name FROM {p}",
    "view": "CREATE OR REPLACE TEMPORARY VIEW lineage_view AS SELECT name AS n FROM {p}",
    "from view": "CREATE TABLE {fromview} AS SELECT n FROM lineage_view",
    "cache": "CACHE TABLE lineage_cache AS SELECT name FROM {p}",
    "from cache": "CREATE TABLE {fromcache} AS SELECT name FROM lineage_cache",
    "add": "ALTER TABLE {t} ADD COLUMN extra INT",
    "alter": "ALTER TABLE {t} ALTER COLUMN extra TYPE BIGINT",
    "rename column": "ALTER TABLE {t} RENAME COLUMN extra TO more",
    "drop column": "ALTER TABLE {t} DROP COLUMN more",
    "rename table": "ALTER TABLE {t} RENAME TO {renamed}",
    "drop": "DROP TABLE {renamed}",
}  # fmt: skip


def test_each_statement_is_one_process(
    lake: Lake, recorder: Recorder, p: str, table: Callable[[str], str], tmp_path: Path
) -> None:
    names = {name: table(name) for name in ("t", "c", "fromview", "fromcache", "renamed")}
    try:
        for name, sql in CASES.items():
            recorder.run(name, sql.format(p=p, out=tmp_path, **names))
        for name, sql in (("show", "SHOW TABLES IN lake.sys"), ("explain", f"EXPLAIN SELECT * FROM {p}"), ("describe", f"DESCRIBE {p}"), ("read", f"SELECT * FROM {p}")):  # fmt: skip
            recorder.run(name, lambda sql=sql: lake.sql(sql).collect())
    finally:
        lake.sql("DROP TABLE IF EXISTS spark_catalog.default.lineage_v1")
        lake.spark.catalog.uncacheTable("lineage_cache")
    found = recorder.found()
    assert {name: len(each) for name, each in found.items()} == dict.fromkeys(CASES, 1)


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
    truth = dict.fromkeys(acts, frozenset(NAMES))
    assert edges == truth | {"export": frozenset(NAME)}


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
