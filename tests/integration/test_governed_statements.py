"""Statements, settings, files and tables of other catalogs where somebody decides about access."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from governed_world import SEEN, World
from pyspark.errors import AnalysisException, PySparkException
from ranger_world import allow, row_filter
from spark_version import SPARK

from lockgate import connect

if TYPE_CHECKING:
    from lockgate import Lake

    Named = Callable[[str], str]


@pytest.fixture(scope="module")
def foreign(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A table of Spark's own catalog, and the folder in which there are other files too."""
    folder = str(tmp_path_factory.mktemp("foreign"))
    rows = lake.spark.createDataFrame([(1, "ann"), (2, "bob")], "id BIGINT, name STRING")
    rows.write.parquet(f"{folder}/files")
    lake.sql(f"CREATE TABLE spark_catalog.default.foreign USING parquet LOCATION '{folder}/files'")
    yield folder
    lake.sql("DROP TABLE spark_catalog.default.foreign")


# --- statements ---


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("SHOW TABLES IN spark_catalog.default", "SELECT on database"),
        ("CREATE TABLE spark_catalog.default.leak AS SELECT id FROM {t}", "CREATE on table"),
        ("DROP TABLE spark_catalog.default.foreign", "DROP on table"),
        ("DESCRIBE TABLE spark_catalog.default.foreign", "SELECT on table"),
        ("SELECT * FROM spark_catalog.default.foreign", "SELECT on table"),
        ("INSERT INTO spark_catalog.default.foreign SELECT id, name FROM {t}", "INSERT on"),
        ("ALTER TABLE spark_catalog.default.foreign SET TBLPROPERTIES ('a' = 'b')", "ALTER on table"),
        ("INSERT OVERWRITE DIRECTORY '{dir}/out' USING parquet SELECT id FROM {t}", "statement Insert"),
        ("SELECT * FROM parquet.`{dir}/files`", "path"),
        ("ADD JAR '{dir}/x.jar'", "statement AddJarsCommand"),
        ("CREATE FUNCTION f AS 'x.Y' USING JAR '{dir}/x.jar'", "statement CreateFunction"),
        ("SET spark.lockgate.user = root", "may not change spark.lockgate.user"),
        ("SET spark.sql.catalog.other = x.Y", "may not change spark.sql.catalog.other"),
        ("SET spark.sql.variable.substitute = true", "may not change spark.sql.variable.substitute"),
        ("CREATE TABLE default.same LIKE default.foreign", "SELECT on table"),
        ("SET spark.sql.extensions = x", "may not change spark.sql.extensions"),
        ("RESET spark.lockgate.user", "may not change spark.lockgate.user"),
        ("SET spark.sql.legacy.timeParserPolicy = LEGACY", "may not change spark.sql.legacy"),
        ("RESET", "may not change all settings"),
        ("CREATE TEMPORARY VIEW stolen USING parquet OPTIONS (path '{dir}/files')", "CreateTempViewUsing"),
    ],
)
def test_statements_are_refused_by_name(
    limited: World, foreign: str, people: str, statement: str, what: str
) -> None:
    with pytest.raises(AnalysisException) as refused:
        limited.sql(statement.format(t=people, dir=foreign))
    assert what in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.optimizer.excludedRules", "secret-value"),
        ("spark.sql.catalog.mine", "secret-value"),
        ("spark.sql.analyzer.singlePassResolver.enabledTentatively", "true"),
        ("spark.lockgate.governed", "secret-value"),
        ("spark.sql.redaction.string.regex", "secret-value"),
        ("spark.sql.variable.substitute", "false"),
        ("spark.hadoop.fs.s3a.access.key", "secret-value"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    ],
)
def test_settings_are_fenced_without_a_statement(
    limited: World, people: str, setting: str, value: str
) -> None:
    """`spark.conf.set`, which clients of Spark Connect have too."""
    session = limited.session("ann")
    assert limited.sql(f"SELECT id, ssn FROM {people}") == SEEN
    session.conf.set(setting, value)
    for statement in (f"SELECT id, ssn FROM {people}", "SHOW CATALOGS"):
        with pytest.raises(AnalysisException, match=f"has changed {setting}") as refused:
            limited.sql(statement)
        assert "secret-value" not in str(refused.value)
    session.conf.unset(setting)
    assert limited.sql(f"SELECT id, ssn FROM {people}") == SEEN


def test_create_table_like_reads_its_source_and_creates_its_target(
    limited: World, foreign: str, people: str
) -> None:
    source, target = "spark_catalog.default.foreign", "spark_catalog.default.same"
    reads, creates = allow(f"{source}.*", users=["ann"]), allow(f"{target}.*", "create", users=["ann"])
    statement = "CREATE TABLE default.same LIKE default.foreign"  # LIKE takes no catalog before Spark 4.2
    limited.put(allow(f"{source}.*", "create", users=["ann"]), creates)
    with pytest.raises(AnalysisException, match=r"SELECT on table spark_catalog\.default\.foreign"):
        limited.sql(statement)
    limited.put(reads)
    with pytest.raises(AnalysisException, match=r"CREATE on table spark_catalog\.default\.same"):
        limited.sql(statement)
    limited.put(reads, creates)
    limited.sql(statement)
    limited.session("root").sql(f"DROP TABLE {target}")
    # The source is a table of Lockgate of which nothing may be read.
    limited.put(allow(f"{people}_same.*", "create", users=["ann"]))
    if SPARK >= (4, 2):
        with pytest.raises(AnalysisException, match="SELECT on table"):
            limited.sql(f"CREATE TABLE {people}_same LIKE {people}")


def test_settings_of_the_application_may_not_be_unset(limited: World, lake: Lake, people: str) -> None:
    session = limited.session("ann")
    session.conf.unset("spark.sql.catalog.lake.warehouse")
    with pytest.raises(AnalysisException, match=r"has changed spark\.sql\.catalog\.lake\.warehouse"):
        limited.sql("SELECT 1")
    session.conf.set("spark.sql.catalog.lake.warehouse", lake.catalog.warehouse)
    session.conf.set("spark.sql.shuffle.partitions", "3")
    assert limited.sql(f"SELECT id, ssn FROM {people}") == SEEN


def test_procedures_of_other_catalogs_take_a_right_of_their_own(limited: World, lake_folder: Path) -> None:
    """Spark runs them as soon as their names are resolved."""
    files = lake_folder / "folders" / "called"
    files.parent.mkdir(exist_ok=True)
    session = limited.session("ann")
    session.sql("USE folders")
    try:
        session.sql("DECLARE OR REPLACE VARIABLE named STRING DEFAULT 'folders.db.called'")
        for text in (
            "CALL folders.db.called()",
            "CALL called()",
            "BEGIN CALL folders.db.called(); END",
            "CALL IDENTIFIER('folders.db.' || 'called')()",
            "CALL IDENTIFIER(named)()",
        ):
            with pytest.raises(PySparkException, match="statement ForeignCall"):
                session.sql(text)
            assert not files.exists()
        if SPARK >= (4, 1):  # 4.0 takes it for a table's column
            session.sql("DESCRIBE PROCEDURE folders.db.called")
    finally:
        session.sql("USE spark_catalog")
    limited.authorizer.governs_others = False
    session.sql("CALL folders.db.called()")
    assert files.exists()
    files.unlink()


@pytest.mark.skipif(SPARK < (4, 2), reason="SET PATH is of Spark 4.2")
def test_a_path_leads_to_no_procedure_of_another_catalog(limited: World, lake_folder: Path) -> None:
    files = lake_folder / "folders" / "called"
    files.parent.mkdir(exist_ok=True)
    session = limited.session("ann")
    session.conf.set("spark.sql.path.enabled", "true")
    try:
        session.sql("USE lake")
        session.sql("SET PATH = folders.db")
        for text in ("CALL called()", "CALL IDENTIFIER('cal' || 'led')()"):
            with pytest.raises(PySparkException, match="statement ForeignCall"):
                session.sql(text)
            assert not files.exists()
    finally:
        session.sql("SET PATH = DEFAULT_PATH")
        session.sql("USE spark_catalog")
        session.conf.unset("spark.sql.path.enabled")


def test_a_catalog_that_the_application_connects_is_no_clients(
    limited: World, lake: Lake, people: str, tmp_path: Path
) -> None:
    session = limited.session("root")
    connect(tmp_path / "annex", spark=session, catalog="annex")
    assert len(limited.sql(f"SELECT id FROM {people}", "root")) == 4
    session.conf.set("spark.sql.catalog.annex.warehouse", str(tmp_path / "elsewhere"))
    with pytest.raises(AnalysisException, match=r"has changed spark\.sql\.catalog\.annex\.warehouse"):
        limited.sql("SELECT 1", "root")


def test_statements_of_a_session_are_free(limited: World, people: str) -> None:
    for statement in (
        "SET spark.sql.shuffle.partitions = 3",
        "SHOW CATALOGS",
        "SHOW FUNCTIONS",
        "USE lake",
        f"CREATE OR REPLACE TEMPORARY VIEW own AS SELECT id, ssn FROM {people}",
        "DECLARE OR REPLACE VARIABLE v INT DEFAULT 1",
        "SET VAR v = 2",
        f"CACHE TABLE kept AS SELECT id, ssn FROM {people}",
        f"DESCRIBE TABLE {people}",
    ):
        limited.sql(statement)
    assert limited.sql("SELECT * FROM own") == SEEN
    assert limited.sql("SELECT * FROM kept") == SEEN
    limited.sql("UNCACHE TABLE kept")
    limited.sql("DROP VIEW own")
    limited.sql("USE spark_catalog")


def test_views_of_a_session_take_no_right(limited: World, foreign: str) -> None:
    for statement in (
        "CREATE TEMPORARY VIEW own_view AS SELECT 1 AS a",
        "CREATE OR REPLACE GLOBAL TEMPORARY VIEW own_global AS SELECT 1 AS a",
        "ALTER VIEW own_view AS SELECT 2 AS a",
        "ALTER VIEW global_temp.own_global AS SELECT 2 AS a",
        "ALTER VIEW own_view RENAME TO own_other",
        "ALTER VIEW global_temp.own_global RENAME TO global_temp.own_renamed",
        "DESCRIBE own_other",
        "SHOW COLUMNS IN own_other",
    ):
        limited.sql(statement)
    assert limited.sql("SELECT * FROM own_other") == [(2,)]
    assert limited.sql("SELECT * FROM global_temp.own_renamed") == [(2,)]
    limited.sql("DROP VIEW own_other")
    limited.sql("DROP VIEW global_temp.own_renamed")
    # A view of the session hides no table of its name.
    limited.sql("CREATE TEMPORARY VIEW foreign AS SELECT 1 AS a")
    for statement in ("DROP TABLE {t}", "ALTER TABLE {t} RENAME TO default.own", "DESCRIBE {t}"):
        with pytest.raises(AnalysisException, match=r"on table spark_catalog\.default\.foreign"):
            limited.sql(statement.format(t="spark_catalog.default.foreign"))
    limited.sql("DROP VIEW foreign")


def test_scripts_are_refused_by_name_and_may_handle_it(limited: World, people: str) -> None:
    with pytest.raises(AnalysisException, match=r"column .*\.people\.salary"):
        limited.sql(f"BEGIN SELECT max(salary) FROM {people}; END")
    handler = "DECLARE EXIT HANDLER FOR SQLSTATE '42501' SELECT 'no right'"
    assert limited.sql(f"BEGIN {handler}; SELECT max(salary) FROM {people}; END") == [("no right",)]


def test_errors_of_scripts_keep_their_words(lake: Lake) -> None:
    """Spark's parser declares errors of syntax alone, and has others for scripts."""
    with pytest.raises(PySparkException, match=r"INVALID_VARIABLE_DECLARATION\.ONLY_AT_BEGINNING"):
        lake.sql("BEGIN SELECT 1; DECLARE x INT; END")


def test_tables_of_which_nothing_may_be_read_are_not_listed(limited: World, people: str) -> None:
    other = people.replace("people", "secret_plans")
    limited.session("root").sql(f"CREATE TABLE IF NOT EXISTS {other} (id BIGINT)")
    database = people.rsplit(".", 1)[0]
    assert [row[1] for row in limited.sql(f"SHOW TABLES IN {database}")] == ["people"]
    assert "secret_plans" in [row[1] for row in limited.sql(f"SHOW TABLES IN {database}", "root")]
    with pytest.raises(AnalysisException, match="SELECT on table"):
        limited.sql(f"DESCRIBE TABLE {other}")


def test_permitted_queries_of_files_and_other_catalogs_leave_records(
    limited: World, foreign: str, people: str
) -> None:
    named = "spark_catalog.default.foreign"
    limited.put(
        allow(f"{named}.*", users=["ann"]), row_filter(named, "name <> 'z'", users=["ann"]), *limited.policies
    )
    for user, text, read in (
        ("root", f"SELECT max(id) FROM {named} -- one column", {"id"}),
        ("root", f"SELECT * FROM {named}", {"id", "name"}),
        ("root", f"SELECT name, id FROM {named}", {"id", "name"}),
        ("ann", f"SELECT max(id) FROM {named} -- and that of the row filter", {"id", "name"}),
        ("root", f"SELECT 1 WHERE 1 IN (SELECT max(id) FROM {named})", {"id"}),
        ("root", f"SELECT f.name FROM {named} f JOIN {people} p ON f.id = p.id", {"id", "name"}),
    ):
        limited.records.clear()
        limited.sql(text, user)
        found = {each for each in limited.records if "people" not in each.resource}
        known = None if "SELECT *" in text else text
        assert {(each.user, each.statement, each.allowed) for each in found} == {(user, known, True)}, text
        names = {f"{named.replace('.', '/')}/{column}" for column in read}
        assert {each.resource for each in found} == names, text
