"""SQL beyond SELECT and INSERT: states and ranges of snapshots, defaults, replacements, estimates."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException

from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.snapshot_selection import Between

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


@pytest.fixture
def events(spark: SparkSession, table: Named) -> str:
    """A key table of three snapshots, the second of them tagged."""
    name = table("events")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    for values in ("(1, 'a'), (2, 'b')", "(2, 'c'), (3, 'd')", "(4, 'e')"):
        spark.sql(f"INSERT INTO {name} VALUES {values}")
    spark.sql(f"CALL lake.sys.create_tag('{name.removeprefix('lake.')}', 'two', 2)")
    return name


# --- states and ranges ---------------------------------------------------------------------------


def test_ranges_of_snapshots(lake: Lake, spark: SparkSession, events: str) -> None:
    expected = [(2, "c"), (3, "d")]
    assert rows(spark.sql(f"SELECT * FROM {events} WITH (`incremental-between` = '1,two')")) == expected
    assert rows(spark.sql(f"SELECT * FROM lockgate_incremental_query('{events}', 1, 2)")) == expected
    assert rows(spark.read.option("incremental-between", "1,2").table(events)) == expected
    assert spark.read.option("incremental-between", "1,2").table(events).count() == 2
    newer = spark.sql(f"SELECT id FROM lockgate_incremental_query('{events}', 'two', 3) WHERE v > 'a'")
    assert rows(newer) == [(4,)]
    times = [snapshot.time_millis for snapshot in lake.catalog.load_table(events[5:]).snapshots()]
    since = f"SELECT * FROM lockgate_incremental_between_timestamp('{events}', '{times[0]}', '{times[2]}')"
    assert rows(spark.sql(since)) == [*expected, (4, "e")]
    # Whatever else the session does, it has the functions.
    other = spark.newSession()
    other.table(events)
    assert rows(other.sql(f"SELECT * FROM lockgate_incremental_query('{events}', 1, 2)")) == expected


def test_states_by_options(spark: SparkSession, events: str) -> None:
    two = [(1, "a"), (2, "c"), (3, "d")]
    for option in ("`scan.tag-name` = 'two'", "`scan.version` = '2'", "`SCAN.SNAPSHOT-ID` = '2'"):
        assert rows(spark.sql(f"SELECT * FROM {events} WITH ({option})")) == two
    assert rows(spark.sql(f"SELECT * FROM {events} VERSION AS OF 'two'")) == two
    assert rows(spark.read.option("versionAsOf", "2").table(events)) == two
    assert spark.read.option("scan.timestamp", "2200-01-01 00:00:00").table(events).count() == 4


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("{} WITH (`scan.snapshotid` = '1')", "did you mean 'scan.snapshot-id'"),
        ("{} WITH (`scan.snapshot-id` = 'x')", "scan.snapshot-id"),
        ("{} WITH (`scan.snapshot-id` = '1', `scan.tag-name` = 'two')", "contradict"),
        ("{} VERSION AS OF 1 WITH (`scan.tag-name` = 'two')", "contradict"),
        ("{} WITH (`incremental-between` = '2,1')", "forward"),
        ("{} WITH (`branch` = 'b')", "branch_name"),
        ("lockgate_incremental_query('{}', 1)", "two ends"),
        ("lockgate_incremental_query('{}s', 1, 2)", "did you mean"),
        ("lockgate_incremental_query('{}', 1, 9)", "1 to 3"),
        ("lockgate_incremental_query('{}', 1, rand())", "constants"),
    ],
)
def test_forms_that_are_refused(spark: SparkSession, events: str, form: str, words: str) -> None:
    with pytest.raises((AnalysisException, IllegalArgumentException), match=words):
        spark.sql("SELECT * FROM " + form.format(events)).collect()


def test_branches_in_sql(lake: Lake, spark: SparkSession, events: str) -> None:
    spark.sql(f"CALL lake.sys.create_branch(table => '{events[5:]}', branch => 'b', tag => 'two')")
    branch = f"{events.rpartition('.')[0]}.`events$branch_b`"
    spark.sql(f"INSERT INTO {branch} VALUES (9, 'z')")
    spark.sql(f"DELETE FROM {branch} WHERE id = 1")
    assert rows(spark.table(branch)) == [(2, "c"), (3, "d"), (9, "z")]
    assert rows(spark.sql(f"SELECT * FROM {branch} WITH (`incremental-between` = '2,3')")) == [(9, "z")]
    assert rows(spark.sql(f"SELECT * FROM {branch} VERSION AS OF 'two'")) == [(1, "a"), (2, "c"), (3, "d")]
    assert spark.table(events).count() == 4


# --- defaults ------------------------------------------------------------------------------------


def test_defaults_fill_columns_that_are_left_out(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("defaults")
    spark.sql(
        f"CREATE TABLE {name} (id INT, s STRING DEFAULT 'it''s', d DATE DEFAULT DATE'2024-02-03', n INT, "
        "a ARRAY<INT> DEFAULT ARRAY(1, 2))"
    )
    spark.sql(f"INSERT INTO {name} (id) VALUES (1)")
    spark.sql(f"INSERT INTO {name} (id, s, d, n) VALUES (2, NULL, DEFAULT, 5)")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n SET DEFAULT 7")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN s DROP DEFAULT")
    spark.range(3, 4).selectExpr("CAST(id AS INT) AS id").writeTo(name).append()
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 4 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN "
        "INSERT (id) VALUES (s.id)"
    )
    spark.sql(f"UPDATE {name} SET n = DEFAULT WHERE id = 1")
    found = spark.sql(f"SELECT id, s, CAST(d AS STRING), n, a FROM {name}")
    assert rows(found) == [
        (1, "it's", "2024-02-03", 7, [1, 2]),
        (2, None, "2024-02-03", 5, [1, 2]),
        (3, None, "2024-02-03", 7, [1, 2]),
        (4, None, "2024-02-03", 7, [1, 2]),
    ]
    created = spark.sql(f"SHOW CREATE TABLE {name}").collect()[0][0]
    spark.sql(created.replace(name, f"{name}_again"))
    spark.sql(f"CREATE TABLE {name}_like LIKE {name}")
    fields = lake.catalog.load_table(name[5:]).schema.fields
    assert [field.default for field in fields] == [None, None, "'2024-02-03'", "7", "ARRAY(1, 2)"]
    for copy in ("again", "like"):
        assert lake.catalog.load_table(f"{name[5:]}_{copy}").schema.fields == fields


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE TABLE {} (id INT, d DATE DEFAULT current_date())", "must be a constant"),
        ("CREATE TABLE {} (id INT, t TIMESTAMP DEFAULT TIMESTAMP'2024-01-01 00:00:00')", "different ways"),
        ("ALTER TABLE {}_old ADD COLUMN c INT DEFAULT 5", "ALTER COLUMN"),
        ("ALTER TABLE {}_old ALTER COLUMN id SET DEFAULT 1 + 1", "must be a constant"),
    ],
)
def test_defaults_that_are_refused(spark: SparkSession, table: Named, statement: str, words: str) -> None:
    name = table("refused")
    spark.sql(f"CREATE TABLE {name}_old (id INT)")
    with pytest.raises(AnalysisException, match=words):
        spark.sql(statement.format(name))


# --- replacements --------------------------------------------------------------------------------


def test_a_replaced_table_keeps_its_past(lake: Lake, spark: SparkSession, events: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TABLE {events} PARTITIONED BY (v) COMMENT 'new' "
        f"AS SELECT v, id AS n FROM {events}"
    )
    assert rows(spark.table(events)) == [("a", 1), ("c", 2), ("d", 3), ("e", 4)]
    assert spark.table(events).columns == ["v", "n"]
    assert rows(spark.sql(f"SELECT * FROM {events} VERSION AS OF 'two'")) == [(1, "a"), (2, "c"), (3, "d")]
    properties = {row.key for row in spark.sql(f"SHOW TBLPROPERTIES {events}").collect()}
    assert "lockgate.generation" not in properties
    two = [(1, "a"), (2, "c"), (3, "d")]
    moment = lake.catalog.load_table(events[5:]).snapshot(2).time_millis / 1000
    time = datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%F %T.%f")
    for form in (
        "VERSION AS OF 2",
        f"TIMESTAMP AS OF '{time}'",
        "WITH (`versionAsOf` = '2')",
        "WITH (`versionAsOf` = 'two')",
        f"WITH (`timestampAsOf` = '{time}')",
    ):
        assert rows(spark.sql(f"SELECT * FROM {events} {form}")) == two
    assert rows(spark.read.option("versionAsOf", "two").table(events)) == two
    for key, value in (
        ("scan.snapshot-id", "2"),
        ("scan.tag-name", "two"),
        ("scan.version", "two"),
        ("scan.timestamp", time),
        ("scan.timestamp-millis", str(round(moment * 1000))),
    ):
        with pytest.raises(AnalysisException, match=r"replaced in between.*versionAsOf"):
            spark.sql(f"SELECT * FROM {events} WITH (`{key}` = '{value}')").collect()
    with pytest.raises(AnalysisException, match=r"OVERWRITE|replaced"):
        spark.sql(f"SELECT * FROM lockgate_incremental_query('{events}', 2, 4)").collect()
    spark.sql(f"INSERT INTO {events} (v, n) VALUES ('z', 9)")
    spark.sql(f"CALL lake.sys.rollback('{events[5:]}', '3')")
    assert spark.table(events).columns == ["id", "v"]
    assert spark.table(events).count() == 4


def test_readers_during_a_replacement(
    lake: Lake, spark: SparkSession, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.framework.spark.bridge import dispatcher
    from lockgate.framework.spark.operations import replacements as replace_operations

    seen: list[list[tuple[Any, ...]]] = []

    def watched(context: Any, request: dict[str, Any]) -> Any:
        seen.append(rows(spark.table(events)))
        done = replace_operations.commit_staged(context, request)
        seen.append(rows(spark.table(events)))
        return done

    monkeypatch.setitem(dispatcher._OWN, "table.commit_staged", watched)
    spark.sql(f"CREATE OR REPLACE TABLE {events} AS SELECT 7 AS other")
    assert seen == [[(1, "a"), (2, "c"), (3, "d"), (4, "e")], [(7,)]]


# --- estimates -----------------------------------------------------------------------------------


def test_the_optimizer_knows_columns(spark: SparkSession, table: Named) -> None:
    name = table("estimated")
    spark.sql(f"CREATE TABLE {name} (id INT, d DATE)")
    spark.sql(f"INSERT INTO {name} SELECT id, DATE'2024-01-01' + CAST(id AS INT) FROM range(1000)")
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        for where, most in (("id < 100", 110), ("d >= DATE'2026-01-01'", 280), ("id = 5", 2)):
            plan = spark.sql(f"EXPLAIN COST SELECT * FROM {name} WHERE {where}").collect()[0][0]
            filtered = next(line for line in plan.splitlines() if line.startswith("Filter"))
            assert 1 <= float(filtered.partition("rowCount=")[2].rstrip(")")) <= most
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")


def test_the_difference_of_two_tags(lake: Lake, spark: SparkSession, table: Named) -> None:
    """Rows of the later state that the earlier one lacks: by read options, SQL's WITH and the function."""
    name = table("tagged")
    of = name.removeprefix("lake.")
    lake.sql(
        f"CREATE TABLE {name} (id INT, v STRING, tags ARRAY<INT>) "
        "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
    )
    lake.sql(f"INSERT INTO {name} SELECT INT(id), 'a', array(INT(id)) FROM range(6)")
    lake.sql(f"CALL lake.sys.create_tag('{of}', '2024-03-01')")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'b', array(1)), (2, 'b', NULL), (9, 'b', array(9))")
    lake.sql(f"INSERT INTO {name} VALUES (2, 'a', array(2)), (3, 'a', array(3))")
    lake.sql(f"DELETE FROM {name} WHERE id = 5")
    lake.sql(f"CALL lake.sys.create_tag('{of}', '2024-03-02')")
    lake.sql(f"INSERT INTO {name} VALUES (7, 'later', NULL)")
    lake.sql(f"CALL lake.sys.expire_snapshots('{of}', retain_max => 1, retain_min => 1)")
    expected = [(1, "b"), (9, "b")]
    ends = "2024-03-01,2024-03-02"
    by_options = spark.read.option("incremental-between", ends).table(name).where("v = 'b'")
    assert sorted(map(tuple, by_options.select("id", "v").collect())) == expected
    tagged = f"{name} WITH (`incremental-to-auto-tag` = '2024-03-02') t"
    with_clause = f"SELECT t.id, upper(t.v) FROM {tagged} ORDER BY t.id"
    assert [tuple(row) for row in spark.sql(with_clause).collect()] == [(1, "B"), (9, "B")]
    function = f"lockgate_incremental_query('{name}', '2024-03-01', '2024-03-02')"
    assert spark.sql(f"SELECT count(*), max(id) FROM {function}").collect() == [(2, 9)]
    joined = f"SELECT a.id FROM {name} WITH (`incremental-between` = '{ends}') a JOIN {name} b ON a.id = b.id"
    assert sorted(row[0] for row in spark.sql(joined).collect()) == [1, 9]
    request = ReadRequest(between=Between(1, 4, states="diff"), columns=("id",))
    python = lake.catalog.load_table(of).read(request)
    assert sorted(python["id"].to_pylist()) == [1, 9]
    lake.sql(f"ALTER TABLE {name} ADD COLUMN m MAP<STRING, INT>")
    with pytest.raises(Exception, match="column m has a MAP"):
        spark.read.option("incremental-between", ends).table(name).collect()
