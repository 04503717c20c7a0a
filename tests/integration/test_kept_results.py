"""The result cache: equal queries are answered by kept rows, and only they."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from governed_world import World
from pyspark.sql.functions import udf
from ranger_world import allow, deny, mask, row_filter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

    Named = Callable[[str], str]

SWITCH = "spark.lockgate.result.cache"


@pytest.fixture
def keeping(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(SWITCH, "true")
    yield
    spark.conf.unset(SWITCH)


@pytest.fixture(scope="module")
def events(lake: Lake, shared_table: Named) -> str:
    """Events of three hosts, in two files."""
    name = shared_table("events")
    lake.spark.range(100).selectExpr("id", "concat('h', id % 3) AS host").coalesce(2).writeTo(name).create()
    return name


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan())


def is_kept(frame: DataFrame) -> bool:
    """Whether kept rows answer a query, which is planned but not run."""
    return "CachedResult" in plan(frame)


def asked(session: SparkSession, sql: str) -> tuple[bool, list[tuple[Any, ...]]]:
    """Whether kept rows answer, and the rows."""
    frame = session.sql(sql)
    return is_kept(frame), sorted(map(tuple, frame.collect()), key=repr)


@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT host, count(*) AS n, sum(id) FROM {0} GROUP BY host",
        "SELECT a.host, b.id FROM {0} a JOIN {0} b ON a.id = b.id + 1 WHERE b.id < 9",
        "SELECT id FROM {0} WHERE id > (SELECT avg(id) FROM {0}) AND host IN (SELECT max(host) FROM {0})",
        "SELECT id, row_number() OVER (PARTITION BY host ORDER BY id) AS n FROM {0}",
        "SELECT id FROM {0} UNION ALL SELECT id + 1 FROM {0} ORDER BY id LIMIT 7",
        "SELECT explode(array(host, 'x')) FROM {0} WHERE id < 4",
        "SELECT host FROM {0} WHERE lake.sys.match(host, 'h1')",
    ],
)
def test_an_equal_query_is_answered_by_kept_rows(spark: SparkSession, events: str, query: str) -> None:
    sql = query.format(events)
    before, rows = asked(spark, sql)
    after, again = asked(spark, sql)
    assert (before, after) == (False, True)
    assert again == rows != []


@pytest.mark.usefixtures("keeping")
def test_kept_rows_start_no_job_and_say_their_age(spark: SparkSession, events: str) -> None:
    sql = f"SELECT host, max(id) AS last FROM {events} GROUP BY host"
    rows = spark.sql(sql).collect()
    spark.sparkContext.setJobGroup("kept", "the second run")
    try:
        second = spark.sql(sql.replace("last", "newest"))
        assert [row.newest for row in second.collect()] == [row.last for row in rows]
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup("kept")
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    assert "3 rows, computed" in plan(second)
    # What other nodes make of the rows, and what reads them in tasks.
    assert second.toArrow()["newest"].to_pylist() == [row.last for row in rows]
    assert spark.sql(f"SELECT count(*) FROM ({sql})").collect()[0][0] == 3


@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, rand() FROM {0} WHERE id < 5",
        "SELECT id, rand(7) FROM {0} WHERE id < 5",
        "SELECT uuid() FROM {0} WHERE id < 5",
        "SELECT id, current_timestamp() FROM {0} WHERE id < 5",
        "SELECT id FROM {0} WHERE now() > TIMESTAMP '2001-01-01' AND id < 5 OR second(now()) < 99",
        "SELECT id FROM {0} WHERE id < (SELECT 5 * floor(1 + rand()) FROM {0} LIMIT 1)",
        "SELECT input_file_name() FROM {0} WHERE id < 5",
        "SELECT monotonically_increasing_id() FROM {0} WHERE id < 5",
        "SELECT kept_shout(host) FROM {0} WHERE id < 5",
        "SELECT java_method('java.util.UUID', 'randomUUID') FROM {0} WHERE id < 5",
        "SELECT * FROM {0} TABLESAMPLE (50 PERCENT)",
        "SELECT id FROM {0}, (SELECT count(*) FROM `{1}$snapshots`) WHERE id < 5",
    ],
)
def test_what_may_differ_from_run_to_run_is_not_kept(spark: SparkSession, events: str, query: str) -> None:
    spark.udf.register("kept_shout", udf(lambda text: text.upper(), "string", useArrow=False))
    sql = query.format(events, events.rsplit(".", 1)[-1])
    if "$snapshots" in sql:
        catalog, database, _ = events.split(".")
        sql = sql.replace("FROM `", f"FROM {catalog}.{database}.`")
    for _ in range(2):
        frame = spark.sql(sql)
        # A time is a constant of its plan, by which no other query is answered.
        assert not is_kept(frame) or "now()" in sql, plan(frame)
        frame.collect()
    if "current_timestamp" in sql:
        first, second = (spark.sql(sql).collect()[0][1] for _ in range(2))
        assert first < second


@pytest.mark.usefixtures("keeping")
def test_a_new_snapshot_is_another_question(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.range(5).writeTo(name).create()
    sql = f"SELECT count(*) AS n, sum(id) AS s FROM {name} WHERE id % 2 = 0"
    assert asked(spark, sql) == (False, [(3, 6)])
    assert asked(spark, sql) == (True, [(3, 6)])
    spark.range(10, 11).writeTo(name).append()
    assert asked(spark, sql) == (False, [(4, 16)])
    assert asked(spark, sql) == (True, [(4, 16)])
    old = sql.replace(name, f"{name} VERSION AS OF 1")
    assert asked(spark, old)[1] == [(3, 6)]
    # A rollback, and then another snapshot of the same number.
    spark.sql(f"CALL lake.sys.rollback(table => '{name.removeprefix('lake.')}', version => '1')")
    spark.range(20, 21).writeTo(name).append()
    assert asked(spark, sql) == (False, [(4, 26)])
    # Another table of the name, whose snapshot has the same number.
    spark.sql(f"DROP TABLE {name}")
    spark.range(2).writeTo(name).create()
    assert asked(spark, sql) == (False, [(1, 0)])


@pytest.mark.usefixtures("keeping")
def test_a_tag_that_moves_takes_no_rows_along(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.range(5).writeTo(name).create()
    spark.range(5, 7).writeTo(name).append()
    short = name.removeprefix("lake.")

    def tagged() -> int:
        rows = spark.read.option("scan.tag-name", "now").table(name).selectExpr("sum(id % 9)").collect()
        return int(rows[0][0])

    for snapshot, total in ((1, 10), (2, 21)):
        lake.call("create_tag", table=short, tag="now", snapshot=snapshot)
        assert [tagged(), tagged()] == [total, total]
        lake.call("delete_tag", table=short, tag="now")


@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize(
    ("setting", "values", "query"),
    [
        ("spark.sql.session.timeZone", ["UTC", "Asia/Tokyo"], "SELECT hour(timestamp_seconds(id)) FROM {0}"),
        ("spark.sql.ansi.enabled", ["false", "true"], "SELECT CAST(host AS INT) FROM {0} WHERE id < 2"),
        ("spark.sql.caseSensitive", ["false", "true"], "SELECT id + 1 AS n FROM {0} WHERE id < 3"),
    ],
)
def test_a_changed_setting_is_another_question(
    spark: SparkSession, events: str, setting: str, values: list[str], query: str
) -> None:
    sql = query.format(events)
    before = str(spark.conf.get(setting))
    answers = []
    try:
        for value in values:
            spark.conf.set(setting, value)
            assert not is_kept(spark.sql(sql))
            try:
                answers.append(asked(spark, sql)[1])
            except Exception as refused:  # ANSI does
                answers.append([(type(refused).__name__,)])
        if setting != "spark.sql.caseSensitive":
            assert answers[0] != answers[1]
    finally:
        spark.conf.set(setting, before)


@pytest.mark.usefixtures("keeping")
def test_results_under_keys_are_not_kept(spark: SparkSession, table: Named) -> None:
    name = table("sealed")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES ('orc.encrypt'='pii:ssn')")
    spark.sql(f"INSERT INTO {name} SELECT id, concat('s', id) FROM range(40)")
    for sql in (f"SELECT max(ssn) FROM {name}", f"SELECT count(*) FROM {name} WHERE ssn LIKE 's1%'"):
        assert [asked(spark, sql)[0] for _ in range(2)] == [False, False]
    assert [asked(spark, f"SELECT sum(id) FROM {name} WHERE id > 3")[0] for _ in range(2)] == [False, True]


@pytest.mark.usefixtures("keeping")
def test_explain_pushdown_describes_the_scans_of_a_kept_query(lake: Lake, events: str) -> None:
    sql = f"SELECT id + 2 AS m FROM {events} WHERE id > 50"
    assert [asked(lake.spark, sql)[0] for _ in range(2)] == [False, True]
    assert len(lake.explain_pushdown(sql)) == 1


def test_nothing_is_kept_unless_the_session_asks(spark: SparkSession, events: str) -> None:
    sql = f"SELECT id + 3 AS m FROM {events} WHERE id > 50"
    assert [asked(spark, sql)[0] for _ in range(2)] == [False, False]
    spark.conf.set(SWITCH, "yes")
    try:
        with pytest.raises(Exception, match=r"result\.cache is 'yes': set it to true or false"):
            spark.sql(sql).collect()
    finally:
        spark.conf.unset(SWITCH)


def test_rows_are_bounded_by_their_bytes(spark: SparkSession) -> None:
    """Those that nobody used for the longest time go first, and what is larger than all is not kept."""
    gateway: Any = spark.sparkContext._gateway
    gateway.jvm.io.lockgate.spark.rules.results.ResultsCheck.main(gateway.new_array(gateway.jvm.String, 0))


# --- users ---


def switched_on(world: World, user: str) -> SparkSession:
    session: SparkSession = world.session(user)
    session.conf.set(SWITCH, "true")
    return session


def test_users_never_get_each_others_rows(world: World, people: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "lockgate.framework.spark.enforcement.statements.CHECKED_ELSEWHERE", {"spark.lockgate.user", SWITCH}
    )
    everyone = ["ann", "bob"]
    world.put(
        allow(f"{people}.*", users=everyone),
        row_filter(people, "dept = 'x'", users=["ann"]),
        mask(f"{people}.ssn", "MASK_NULL", users=["ann"]),
    )
    sql = f"SELECT name, ssn FROM {people} WHERE salary > 50"
    some = [("ann", None), ("cal", None)]
    whole = [("ann", "111-11-1111"), ("bob", "222-22-2222"), ("cal", "333-33-3333")]
    ann, bob = switched_on(world, "ann"), switched_on(world, "bob")
    assert asked(bob, sql) == (False, whole)
    assert asked(bob, sql) == (True, whole)
    assert asked(ann, sql) == (False, some)
    assert asked(ann, sql) == (True, some)
    # Policies change: another filter, and then no right at all.
    world.put(allow(f"{people}.*", users=everyone), row_filter(people, "dept = 'y'", users=["ann"]))
    assert asked(ann, sql) == (False, [("bob", "222-22-2222")])
    world.put(allow(f"{people}.*", users=everyone), deny(f"{people}.ssn", users=["bob"]))
    for text in (sql, sql.replace("ssn", "upper(ssn)")):
        with pytest.raises(Exception, match="denied to user 'bob'"):
            asked(bob, text)
    world.put(allow(f"{people}.*", users=["ann"]))
    with pytest.raises(Exception, match="denied to user 'bob'"):
        asked(bob, sql)
    assert asked(ann, sql) == (False, whole)


def test_a_governed_user_cannot_switch_it_on(world: World, people: str) -> None:
    """What a server keeps in its memory is the server's to say."""
    world.put(allow(f"{people}.*", users=["ann"]))
    with pytest.raises(Exception, match="may not change"):
        world.session("ann").sql(f"SET {SWITCH} = true").collect()
