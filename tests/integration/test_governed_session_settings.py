"""Settings of a session under row filters and masks, which have the server's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from governed_world import SEEN, World
from pyspark.errors import AnalysisException, PySparkException
from ranger_world import allow, mask, row_filter

from lockgate.framework.spark.enforcement.session_settings import is_judged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

UNFIT = [
    ("spark.sql.ansi.enabled", "false"),
    ("spark.sql.caseSensitive", "true"),
    ("spark.sql.mapKeyDedupPolicy", "LAST_WIN"),
    ("spark.sql.optimizer.decorrelateInnerQuery.enabled", "false"),
    ("spark.sql.aSettingOfTomorrow", "secret-value"),
    ("parquet.read.filter", "secret-value"),
]
ZONE = "spark.sql.session.timeZone"


@contextmanager
def changed(session: SparkSession, setting: str, value: str) -> Iterator[None]:
    """Change a setting as clients do, without a statement."""
    session.conf.set(setting, value)
    try:
        yield
    finally:
        session.conf.unset(setting)


def test_every_setting_of_the_installed_spark_is_judged(lake: Lake) -> None:
    jvm: Any = lake.spark._jvm
    settings = getattr(getattr(jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
    names = [entry.key() for entry in settings.getConfigEntries().toArray()]
    assert len(names) > 500
    assert [name for name in names if not is_judged(name) and not settings.isStaticConfigKey(name)] == []


def test_the_clone_that_fills_a_cache_has_changed_nothing(limited: World, lake: Lake, people: str) -> None:
    """Spark changes options of the driver's JVM after the start, so that they differ from the session's."""
    session: Any = limited.session("ann")
    given, conf = session._jsparkSession.initialSessionOptions(), lake.spark.sparkContext._jsc.sc().conf()  # type: ignore[union-attr]  # no Connect
    name = next(key for key in ("spark.ui.enabled", "spark.master") if given.contains(key))
    before = conf.get(name)
    conf.set(name, "as Spark has it")
    try:
        frame = session.sql(f"SELECT id, ssn FROM {people}").cache()
        assert sorted(map(tuple, frame.collect())) == SEEN
        session.sql(f"CACHE TABLE kept AS SELECT id, ssn FROM {people} WHERE id > 0")
        assert limited.sql("SELECT * FROM kept") == SEEN
    finally:
        conf.set(name, before)
        session.catalog.clearCache()


@pytest.mark.parametrize(("setting", "value"), UNFIT)
def test_what_policies_compute_takes_the_settings_of_the_server(
    limited: World, people: str, setting: str, value: str
) -> None:
    session, query = limited.session("ann"), f"SELECT id, ssn FROM {people}"
    limited.sql("CREATE OR REPLACE TEMPORARY VIEW seen AS " + query)
    with changed(session, setting, value):
        for text in (query, "SELECT id FROM seen", f"SELECT count(*) FROM {people}"):
            with pytest.raises(AnalysisException, match=f"has changed {setting}") as refused:
                limited.sql(text)
            assert "secret-value" not in str(refused.value)
        # Of what is not hidden the user may have any settings, and so may others.
        assert limited.sql("SELECT 1") == [(1,)]
    with changed(limited.session("root"), setting, value):
        assert len(limited.sql(query, "root")) == 4
    assert limited.sql(query) == SEEN


ENTERED = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.catalog.default_iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.default_iceberg.type": "hive",
    "spark.sql.catalog.default_iceberg.default-namespace": "default",
    "spark.sql.catalog.default_iceberg.cache-enabled": "false",
    "spark.sql.catalog.default_cache_iceberg": "org.apache.iceberg.spark.SparkCachedTableCatalog",
    "spark.sql.catalog.default_rewrite_catalog": "org.apache.iceberg.spark.SparkRewriteTableCatalog",
}


def test_what_iceberg_and_delta_enter_in_a_session_locks_nobody_out(limited: World, people: str) -> None:
    """With the values that these engines enter, and no others."""
    session, query = limited.session("ann"), f"SELECT id, ssn FROM {people}"
    with ExitStack() as entered:
        for setting, value in ENTERED.items():
            entered.enter_context(changed(session, setting, value))
        assert limited.sql(query) == SEEN
        for setting in ("spark.sql.catalog.default_iceberg", "spark.sql.catalog.default_iceberg.type"):
            with changed(session, setting, "mine"), pytest.raises(AnalysisException, match="only the server"):
                limited.sql(query)
            session.conf.set(setting, ENTERED[setting])
    assert limited.sql(query) == SEEN


def test_ids_of_parquet_fields_that_delta_asks_for_change_no_row(
    lake: Lake, table: Callable[[str], str], tmp_path: Path
) -> None:
    """On a table with a renamed and a re-created column, and on Parquet files that Spark wrote."""
    name, folder = table("ids"), str(tmp_path / "files")
    lake.sql(f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('file.format' = 'parquet')")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'old')")
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN v TO w")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN v STRING")
    lake.sql(f"INSERT INTO {name} VALUES (2, 'w', 'new')")
    lake.spark.table(name).write.parquet(folder)
    queries = (f"SELECT * FROM {name} WHERE v IS NULL OR v = 'new'", f"SELECT v, w FROM parquet.`{folder}`")

    def found() -> list[list[tuple[Any, ...]]]:
        return [sorted(map(tuple, lake.sql(query).collect()), key=str) for query in queries]

    before = found()
    assert before[0] == [(1, "old", None), (2, "w", "new")]
    with changed(lake.spark, "spark.sql.parquet.fieldId.read.enabled", "true"):
        assert found() == before


def test_a_plan_that_is_older_than_a_change_is_not_run(limited: World, people: str) -> None:
    session = limited.session("ann")
    rows = session.sql(f"SELECT id, ssn FROM {people}")
    with (
        changed(session, "spark.sql.ansi.enabled", "false"),
        pytest.raises(Exception, match=r"has changed spark\.sql\.ansi\.enabled"),
    ):
        rows.collect()
    assert sorted(map(tuple, rows.collect())) == SEEN


@pytest.mark.parametrize(
    ("setting", "value"),
    [("fs.s3a.endpoint", "http://mine"), ("spark.sql.optimizer.excludedRules", "x.Y"), ("hadoop.mine", "1")],
)
def test_no_plan_is_older_than_a_change_of_the_servers_settings(
    limited: World, people: str, setting: str, value: str
) -> None:
    """A Connect server keeps analysed plans of its clients, which no rule of analysis sees again."""
    limited.put(allow(f"{people}.*", users=["ann"]))  # nothing is computed for a policy
    session = limited.session("ann")
    query = f"SELECT id FROM {people}"
    frames = [session.sql(query), session.range(3), session.sql("SELECT 1 AS id")]
    with changed(session, setting, value):
        for rows in frames:
            with pytest.raises(Exception, match=f"has changed {setting}, which only the server sets"):
                rows.collect()
    assert len(session.sql(query).collect()) == 4


STATE_STORES = "spark.sql.streaming.stateStore.providerClass"
PRUNED_STREAMS = "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan"


@pytest.mark.parametrize(("setting", "foreign"), [(STATE_STORES, "some.Provider"), (PRUNED_STREAMS, "true")])
def test_a_default_that_spark_enters_changes_nothing(
    limited: World, people: str, lake: Lake, setting: str, foreign: str
) -> None:
    session, query = limited.session("ann"), f"SELECT id, ssn FROM {people}"
    with changed(session, setting, lake.spark.conf.get(setting)):
        assert limited.sql(query) == SEEN
    with changed(session, setting, foreign), pytest.raises(AnalysisException, match=f"has changed {setting}"):
        limited.sql(query)


def test_a_refused_setting_is_put_back_by_a_statement(limited: World, people: str) -> None:
    limited.sql("SET spark.sql.ansi.enabled = false")
    with pytest.raises(AnalysisException, match="RESET it"):
        limited.sql(f"SELECT id, ssn FROM {people}")
    limited.sql("RESET spark.sql.ansi.enabled")
    assert limited.sql(f"SELECT id, ssn FROM {people}") == SEEN


def test_the_zone_of_policies_is_the_servers(limited: World, people: str, lake: Lake) -> None:
    server = lake.spark.conf.get(ZONE)
    limited.put(
        allow(f"{people}.*", users=["ann"]),
        mask(f"{people}.name", "CUSTOM", users=["ann"], value="current_timezone()"),
        mask(
            f"{people}.dept",
            "CUSTOM",
            users=["ann"],
            value="date_format(timestamp_seconds(0), 'dd HH') || current_database() || current_catalog()",
        ),
        row_filter(
            people, "hour(timestamp_seconds(id * 3600)) = id AND current_timezone() <> 'x'", users=["ann"]
        ),
    )
    query = f"SELECT id, name, dept FROM {people}"
    before = limited.sql(query)
    assert {row[1] for row in before} <= {server}
    limited.sql("USE lake")
    limited.sql("SET TIME ZONE 'Pacific/Kiritimati'")
    assert limited.sql("SELECT current_timezone()") == [("Pacific/Kiritimati",)]
    assert limited.sql(query) == before
    limited.sql(f"RESET {ZONE}")
    limited.sql("USE spark_catalog")


@pytest.fixture(scope="module")
def times(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A table of times that are text in its file."""
    folder = tmp_path_factory.mktemp("times")
    (folder / "a.csv").write_text("1,2024-01-01 23:00:00\n2,2024-01-02 01:00:00\n")
    lake.sql(f"CREATE TABLE spark_catalog.default.times (id INT, at TIMESTAMP) USING csv LOCATION '{folder}'")
    yield "spark_catalog.default.times"
    lake.sql("DROP TABLE spark_catalog.default.times")


def test_times_of_files_are_not_shifted_under_a_row_filter(times: str, world: World) -> None:
    only = row_filter(times, "at < TIMESTAMP'2024-01-02 00:00:00'", users=["ann"])
    world.put(allow(f"{times}.*", users=["ann"]), only)
    assert world.sql(f"SELECT id FROM {times}") == [(1,)]
    world.sql("SET TIME ZONE '+14:00'")
    with pytest.raises(AnalysisException, match=r"has changed spark\.sql\.session\.timeZone"):
        world.sql(f"SELECT id FROM {times}")
    assert world.sql("SELECT 1") == [(1,)]
    world.sql(f"RESET {ZONE}")
    assert world.sql(f"SELECT id FROM {times}") == [(1,)]


def test_settings_show_no_variables_of_the_server_without_a_statement(world: World) -> None:
    """A client asks Spark's catalog, or for a setting that falls back to another, and no rule sees it."""
    secret = os.environ["PATH"]
    for value in ("${env:PATH}", "${system:java.class.path}", "${own.name}"):
        session = world.session("ann").newSession()
        session.conf.set("spark.lockgate.user", "ann")
        session.conf.set("own.name", "${env:PATH}")
        session.conf.set("spark.sql.defaultCatalog", value)
        for ask in (
            session.catalog.currentCatalog,
            session.catalog.currentDatabase,
            session.catalog.listCatalogs,
            session.catalog.listTables,
            lambda session=session: session.catalog.tableExists("t"),
            lambda session=session: session.catalog.setCurrentDatabase("nowhere"),
        ):
            try:
                told = str(ask())
            except PySparkException as error:
                told = str(error)
            assert secret not in told
            assert ".jar" not in told


def test_the_fence_of_variables_stands_before_any_rule_is_made(world: World) -> None:
    """Also in a session that nobody has asked anything, whose settings are read by their entries."""
    session = world.session("ann").newSession()
    session.conf.set("spark.sql.defaultCatalog", "${env:PATH}")
    conf, jvm = session._jsparkSession.sessionState().conf(), cast("Any", session._jvm)
    entry = jvm.org.apache.spark.sql.internal.SQLConf.DEFAULT_CATALOG()
    for _ in range(100):
        if conf.getConf(entry) == "${env:PATH}":
            break
        time.sleep(0.05)
    assert conf.getConf(entry) == "${env:PATH}"
