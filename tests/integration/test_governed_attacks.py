"""Statements by which a user tries to see, or to reach under another name, what policies hide."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from governed_world import World
from pyspark.errors import PySparkException
from ranger_world import allow, deny, mask, row_filter

if TYPE_CHECKING:
    from governed_foreign import Hiding
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

    Named = Callable[[str], str]

# Whatever begins with `zq` is hidden: rows, values, partitions.
ROWS = """VALUES (1, 'zq-ann', 7, 'x'), (2, 'zq-bob', 0, 'zq-y'), (3, 'zq-cal', 9, 'x'),
                 (4, 'zq-dan', 777111, 'zq-y')"""
COLUMNS = "(id INT, name STRING, n INT, dept STRING)"
MINE = "spark_catalog.default.mine"


@pytest.fixture(scope="module")
def tables(lake: Lake, shared_table: Named, lake_folder: Path) -> Iterator[dict[str, str]]:
    """A table of the warehouse and one of files, partitioned by a column that decides what is seen.

    And one of another catalog.
    """
    named = {"ours": shared_table("attacked"), "files": "spark_catalog.default.attacked"}
    for table, kind in ((named["ours"], ""), (named["files"], "USING parquet")):
        lake.sql(f"CREATE TABLE {table} {COLUMNS} {kind} PARTITIONED BY (dept)")
        lake.sql(f"INSERT INTO {table} {ROWS}")
    lake.sql(f"ANALYZE TABLE {named['files']} COMPUTE STATISTICS FOR ALL COLUMNS")
    lake.sql(f"CREATE TABLE {MINE} {COLUMNS} USING parquet PARTITIONED BY (dept)")
    named["folders"] = "folders.db.attacked"
    rows = lake.sql(f"SELECT * FROM {ROWS} AS v(id, name, n, dept)")
    rows.write.parquet(str(lake_folder / "folders" / "attacked"))
    yield named
    lake.sql(f"DROP TABLE {MINE}")
    lake.sql(f"DROP TABLE {named['files']}")


@pytest.fixture
def world(world: World, tables: dict[str, str]) -> World:
    """Ann may change tables and create her own, but sees a part of the two alone."""
    limits = [
        each
        for table in (tables["ours"], tables["files"])
        for each in (
            allow(f"{table}.*", "select", "insert", "alter", users=["ann"]),
            mask(f"{table}.name", "MASK_NULL", users=["ann"]),
            row_filter(table, "dept = 'x'", users=["ann"]),
        )
    ]
    own = [
        allow(path, "all", users=["ann"])
        for path in (f"{MINE}*.*", f"{MINE}*", "spark_catalog.mine*", "lake.mine*.*.*", "lake.mine*.*")
    ]
    world.put(*limits, *own)
    return world


def told(world: World, statement: str) -> str:
    try:
        return str(world.sql(statement))
    except PySparkException as error:
        return f"refused: {error}"


def test_a_renamed_column_would_lose_its_policies(world: World, tables: dict[str, str]) -> None:
    table = tables["ours"]
    assert "without row filter and masks" in told(world, f"ALTER TABLE {table} RENAME COLUMN name TO open")
    world.put(allow(f"{table}.*", "select", "alter", users=["ann"]), deny(f"{table}.name", users=["ann"]))
    assert "apply for: select on column" in told(world, f"ALTER TABLE {table} RENAME COLUMN name TO open")
    world.put(allow(f"{table}.*", "select", "alter", users=["ann"]))
    world.sql(f"ALTER TABLE {table} RENAME COLUMN name TO open")
    world.sql(f"ALTER TABLE {table} RENAME COLUMN open TO name", "root")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE {mine}1 USING parquet LOCATION '{files}'",
        "CREATE TABLE {mine}1 {columns} USING parquet OPTIONS (path '{files}')",
        "CREATE TABLE {short}1 LIKE {short} LOCATION '{files}'",
        "CREATE TABLE {mine}1 USING parquet LOCATION '{files}/dept=zq-y' AS SELECT 1 AS id",
        "ALTER TABLE {mine} ADD PARTITION (dept='p') LOCATION '{files}/dept=zq-y'",
        "ALTER TABLE {mine} PARTITION (dept='p') SET LOCATION '{files}/dept=zq-y'",
        "ALTER TABLE {mine} SET LOCATION '{files}'",
        "CREATE DATABASE spark_catalog.mine_db LOCATION '{files}'",
        "CREATE TABLE {mine}1 {columns} USING text LOCATION '{warehouse}'",
        "CREATE TABLE {mine}1 {columns} USING jdbc OPTIONS (url 'jdbc:derby:{files}', dbtable 't')",
        "SELECT nothing FROM parquet.`{files}`",
    ],
)
def test_files_get_no_other_name(
    world: World, tables: dict[str, str], lake: Lake, lake_folder: Path, statement: str
) -> None:
    """Or else anyone who may create a table would read the files of any other."""
    names = {
        "mine": MINE,
        "short": MINE.removeprefix("spark_catalog."),  # before Spark 4.2, LIKE takes no catalog
        "columns": COLUMNS,
        "files": str(lake_folder / "spark-warehouse" / "attacked"),
        "warehouse": lake.catalog.warehouse,
    }
    found = told(world, statement.format(**names))
    assert "on path" in found or "another name" in found
    assert "`n`" not in found
    assert world.sql(f"SELECT id FROM {MINE}") == []


def test_a_migration_shows_no_more_than_its_caller_sees(world: World, lake_folder: Path) -> None:
    world.grant_calls("ann")
    files = lake_folder / "spark-warehouse" / "attacked"
    for source, words in (
        ("'spark', 'default.attacked'", "without row filter and masks"),
        (f"'parquet', '{files}'", "SELECT on path"),
        (f"'orc', '{lake_folder}/warehouse'", "files of the warehouse become no other table"),
    ):
        assert words in told(world, f"CALL lake.sys.migrate_table({source}, target_table => 'mine.copy')")
        assert words in told(
            world,
            f"CALL lake.sys.migrate_table({source}, target_table => 'mine.copy', delete_origin => true)",
        )
    found = told(world, "CALL lake.sys.migrate_database('spark', 'default', target_database => 'mine')")
    assert "SELECT on database" in found
    assert "attacked" not in found
    assert files.is_dir()


@pytest.mark.parametrize("function", ["reflect", "java_method", "try_reflect"])
def test_methods_of_java_take_a_right_of_their_own(world: World, function: str) -> None:
    for statement in (
        "SELECT {call}",
        "SELECT id FROM range(3) WHERE (SELECT {call}) = 'x'",
        "CREATE OR REPLACE TEMPORARY VIEW called AS SELECT upper({call}) AS v",
    ):
        text = statement.format(call=f"{function}('java.lang.System', 'getProperty', 'user.name')")
        assert "statement CallMethodViaReflection" in told(world, text)


@pytest.mark.parametrize(
    ("setting", "value", "row_filter_text"),
    [
        ("spark.sql.ansi.doubleQuotedIdentifiers", "true", 'dept <> "dept"'),
        ("spark.sql.session.timeZone", "Asia/Tokyo", "hour(timestamp_seconds(id)) = 0 AND dept = 'x'"),
        ("spark.sql.functionResolution.sessionOrder", "last", "upper(dept) = 'X'"),
        ("spark.sql.parser.escapedStringLiterals", "true", r"dept <> '\\x' AND dept = 'x'"),
    ],
)
def test_settings_of_a_session_mean_nothing_in_a_policy(
    world: World, tables: dict[str, str], setting: str, value: str, row_filter_text: str
) -> None:
    table = tables["ours"]
    world.put(allow(f"{table}.*", users=["ann"]), row_filter(table, row_filter_text, users=["ann"]))
    before = told(world, f"SELECT id FROM {table}")
    session = world.session("ann")
    session.conf.set(setting, value)
    try:
        assert told(world, f"SELECT id FROM {table}") == before
    finally:
        session.conf.unset(setting)


READS_OF_FILES = {
    "a folder": lambda session, folder: session.read.parquet(folder),
    "files": lambda session, folder: session.read.orc(f"{folder}/zq-part", f"{folder}/other"),
    "none": lambda session, folder: session.read.json(f"{folder}/absent"),
    "a pattern": lambda session, folder: session.read.csv(f"{folder}/z*"),
    "a pattern in a pattern": lambda session, folder: session.read.text(f"{folder[:-4]}*/zq-*"),
    "a pattern of nothing": lambda session, folder: session.read.parquet(f"{folder}/{{x,y}}*"),
    "an option": lambda session, folder: session.read.format("parquet").option("path", folder).load(),
    "an option of many": lambda session, folder: (
        session.read.format("parquet").option("paths", f'["{folder}"]').load()
    ),
    "a class": lambda session, folder: session.read.format("org.apache.spark.sql.parquet").load(folder),
    "SQL": lambda session, folder: session.sql(f"SELECT * FROM parquet.`{folder}`"),
    "a query within": lambda session, folder: session.sql(
        f"WITH c AS (SELECT 1 AS a) SELECT a FROM c WHERE EXISTS (SELECT * FROM parquet.`{folder}/z*`)"
    ),
    "a common table": lambda session, folder: session.sql(
        f"WITH c AS (SELECT * FROM `ORC`.`{folder}/z*`) SELECT 1"
    ),
    "a stream": lambda session, folder: session.readStream.schema("a INT").json(folder),
}


@pytest.mark.parametrize("read", READS_OF_FILES)
def test_paths_are_refused_before_files_there_are_opened(world: World, lake_folder: Path, read: str) -> None:
    """Or else errors of Spark would name files, and tell whether there are any."""
    folder = lake_folder / "unreadable" / "inner"
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "zq-part").write_bytes(b"neither Parquet nor ORC")
    with pytest.raises(PySparkException, match=r"on path .*unreadable.* is denied to user 'ann'") as found:
        READS_OF_FILES[read](world.session("ann"), str(folder))
    assert ("zq" in str(found.value)) == (read == "files")


def test_a_pattern_reads_what_may_be_read(world: World, lake_folder: Path) -> None:
    folder = lake_folder / "patterns"
    for name in ("shown-1", "shown-2", "zq-3"):
        (folder / name).mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.table({"id": [1, 2]}), folder / name / "part.parquet")
    world.put_paths("ann", f"{folder}/shown-1", f"{folder}/shown-2")
    session = world.session("ann")
    assert session.read.parquet(f"{folder}/shown-*").count() == 4
    assert session.sql(f"SELECT id FROM parquet.`{folder}/{{shown-1,shown-2}}`").count() == 4
    with pytest.raises(PySparkException, match="denied to user 'ann'") as found:
        session.read.parquet(f"{folder}/*")
    assert "zq" not in str(found.value)


ROADS: dict[str, Callable[[SparkSession, Path], object]] = {
    "text": lambda session, folder: session.read.text(str(folder)),
    "json, whose schema is found": lambda session, folder: session.read.json(f"{folder}/*"),
    "csv, whose header is shown": lambda session, folder: session.read.option("header", True).csv(
        str(folder)
    ),
    "binaryFile": lambda session, folder: session.read.format("binaryFile").load(str(folder)),
    "recursive": lambda session, folder: session.read.option("recursiveFileLookup", True).text(str(folder)),
    "SQL": lambda session, folder: session.sql(
        f"SELECT value, _metadata.file_path FROM text.`{folder}/../in`"
    ),
    "stream": lambda session, folder: session.readStream.text(str(folder)),
    "LOCATION": lambda session, folder: session.sql(
        f"CREATE TABLE spark_catalog.default.linked (v STRING) USING text LOCATION '{folder}'"
    ),
    "write": lambda session, folder: session.range(1).write.mode("append").parquet(str(folder)),
}
LINKS: dict[str, Callable[[Path, Path], None]] = {
    "file": lambda inside, secret: (inside / "x").symlink_to(secret / "secret"),
    "folder": lambda inside, secret: (inside / "p=1").symlink_to(secret),
    "deep": lambda inside, secret: (inside / "a" / "b").symlink_to(secret),
    "hard": lambda inside, secret: os.link(secret / "secret", inside / "x"),
}


@pytest.fixture
def linked(world: World, tmp_path: Path) -> tuple[Path, Path]:
    """A folder that ann may read and write, and one that she may not."""
    inside, secret = tmp_path / "in", tmp_path / "secret"
    (inside / "a").mkdir(parents=True)
    secret.mkdir()
    (inside / "mine").write_text('{"v": "mine"}\n')
    (secret / "secret").write_text('{"v": "secret"}\n')
    world.put_paths("ann", str(inside), accesses=("read", "write"))
    return inside, secret


@pytest.mark.parametrize("link", LINKS)
def test_no_link_leads_out_of_a_folder_that_may_be_read(
    world: World, linked: tuple[Path, Path], link: str
) -> None:
    inside, secret = linked
    session = world.session("ann")
    (inside / "again").symlink_to(inside / "mine")
    assert session.read.text(str(inside)).count() == 2
    planned = session.read.text(str(inside))
    stream = session.readStream.text(str(inside))
    LINKS[link](inside, secret)
    for road, read in ROADS.items():
        with pytest.raises(PySparkException, match="denied to user 'ann'") as found:
            read(session, inside)
        assert '"secret"' not in str(found.value), road
        assert road != "LOCATION" or "a link leads to" in str(found.value)
    # Frames that were made before the link came.
    with pytest.raises(PySparkException, match="files that a link leads to is denied to user 'ann'"):
        planned.collect()
    with pytest.raises(PySparkException, match=r"denied to user 'ann'|through a link|Invalid batch"):
        stream.writeStream.format("memory").queryName("linked").start().processAllAvailable()
    world.put_paths("ann", "/")
    assert session.read.option("recursiveFileLookup", True).text(str(inside)).count() == 3


def _link_file(inside: Path, secret: Path) -> None:
    (inside / "a" / "mine").unlink()
    (inside / "a" / "mine").symlink_to(secret / "mine")


def _link_folder(inside: Path, secret: Path) -> None:
    (inside / "a").rename(inside / "before")
    (inside / "a").symlink_to(secret)


def _hard_link(inside: Path, secret: Path) -> None:
    (inside / "a" / "mine").unlink()
    os.link(secret / "mine", inside / "a" / "mine")


EXCHANGED = {
    "file": ("a/mine", _link_file),
    "pattern": ("a/*", _link_file),
    "folder": ("a", _link_folder),
    "hard": ("a/mine", _hard_link),
}


def _shown(frame: DataFrame) -> DataFrame:
    frame.explain()
    return frame


def _collected(frame: DataFrame) -> DataFrame:
    frame.collect()
    return frame


REFUSED = "files that a link leads to is denied|or folder was exchanged, or got another name"
USED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "only made": lambda frame: frame,
    "shown": _shown,
    "collected": _collected,
    "kept": lambda frame: frame.where("length(value) = 4").cache(),
    "in stages": lambda frame: _shown(frame.groupBy("value").count()),
}


@pytest.mark.parametrize("kind", EXCHANGED)
def test_files_that_are_exchanged_after_planning_are_decided_about_again(
    world: World, linked: tuple[Path, Path], kind: str
) -> None:
    """Spark reads by path, whatever is there by then, also by a plan that it has made and kept before."""
    inside, secret = linked
    path, exchange = EXCHANGED[kind]
    (inside / "a" / "mine").write_text("mine\n")
    (secret / "mine").write_text("zq-s\n")
    session = world.session("ann")
    frames = {use: used(session.read.text(f"{inside}/{path}")) for use, used in USED.items()}
    session.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        frames["of Spark's second kind of source"] = _shown(session.read.text(f"{inside}/{path}"))
    finally:
        session.conf.unset("spark.sql.sources.useV1SourceList")
    try:
        exchange(inside, secret)
        for use, frame in frames.items():
            with pytest.raises(PySparkException, match=REFUSED) as found:
                frame.collect()
            assert "zq" not in str(found.value), use
        world.put_paths("ann", "/")
        assert frames["shown"].select("*").collect() == [("zq-s",)]
    finally:
        frames["kept"].unpersist()


def test_files_that_are_exchanged_below_a_barrier_are_decided_about_again(
    world: World, hiding: Hiding, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "other"):
        (tmp_path / "in" / name).write_text("mine\nzq-s\n")
    hiding.hide(row_filter="value NOT LIKE 'zq%'")
    session = world.session("ann")
    frames = [session.read.text(f"{tmp_path}/in/{name}") for name in "ab"]
    (tmp_path / "in" / "a").unlink()
    (tmp_path / "in" / "a").symlink_to("other")
    assert [frame.collect() for frame in frames] == [[("mine",)], [("mine",)]]
    hiding.hide(row_filter="value = 'none'")
    for frame in frames:
        with pytest.raises(PySparkException, match="under policies that have changed, or for other files"):
            frame.select("value").collect()


def test_no_link_leads_into_a_warehouse_or_out_of_a_table(
    world: World, lake: Lake, linked: tuple[Path, Path]
) -> None:
    """A table's own location may be a link, and its partitions may be elsewhere."""
    inside, secret = linked
    (inside / "x").symlink_to(lake.catalog.warehouse)
    with pytest.raises(PySparkException, match="read by its name"):
        world.session("ann").read.text(str(inside))
    (inside / "x").unlink()
    name = "spark_catalog.default.linked_files"
    world.put()
    lake.sql(f"CREATE TABLE {name} (value STRING) USING text")
    try:
        lake.sql(f"INSERT INTO {name} VALUES ('mine')")
        world.put(allow(f"{name}.*", users=["ann"]))
        assert world.sql(f"SELECT * FROM {name}") == [("mine",)]
        path = lake.sql(f"SELECT _metadata.file_path FROM {name}").collect()[0][0]
        (Path(path.removeprefix("file:")).parent / "x").symlink_to(secret / "secret")
        world.session("ann").catalog.refreshTable(name)
        with pytest.raises(PySparkException, match="files that a link leads to is denied to user 'ann'"):
            world.sql(f"SELECT * FROM {name}")
    finally:
        world.put()
        lake.sql(f"DROP TABLE {name}")


def test_statements_take_no_variables_of_the_server(world: World) -> None:
    """Spark replaces them in every text that it parses, and in values of settings that these name."""
    session = world.session("ann")
    session.conf.set("own.name", "${env:PATH}")
    try:
        for text in ("${env:PATH}", "${system:user.home}", "${own.name}", "${hivevar:own.name}"):
            for use in (
                lambda text: session.sql(f"SELECT '{text}'"),
                lambda text: session.range(1).selectExpr(f"'{text}'"),
                lambda text: session.sql(f"EXECUTE IMMEDIATE \"SELECT '{text}'\""),
            ):
                with pytest.raises(PySparkException, match="may not take variables of the server"):
                    use(text)
        with pytest.raises(PySparkException, match="may not take variables of the server"):
            session.table("`${env:PATH}`")
        session.conf.unset("own.name")
        session.sql("SET own.word = 'of my own'")
        assert world.sql("SELECT ${own.word}, '${own.none}'") == [("of my own", "")]
        assert world.sql("SELECT '${own'") == [("${own",)]
    finally:
        session.conf.unset("own.name")
        session.conf.unset("own.word")


def test_settings_take_no_variables_of_the_server(world: World) -> None:
    """Spark replaces them wherever it reads a setting."""
    session, secret = world.session("ann"), os.environ["PATH"]
    broken = session.createDataFrame([("{",)], "line STRING")
    values = ("${env:PATH}", "x${system:user.home}", "${own.name}", "${hiveconf:own.name}")
    for name in ("spark.sql.defaultCatalog", "spark.sql.columnNameOfCorruptRecord"):
        for value in values:
            session.conf.set("own.name", "${env:PATH}" if "own" in value else "plain")
            session.conf.set(name, value)
            try:
                for use in (
                    lambda: session.sql("SELECT current_catalog()"),
                    lambda: session.sql("SET -v"),
                    lambda: session.sql("USE nowhere.of_mine"),
                    lambda: session.range(1).filter("id = 0"),
                    lambda: broken.select("line"),
                ):
                    with pytest.raises(PySparkException, match=f"variables of the server.*{name}") as found:
                        use()
                    assert secret not in str(found.value)
                if value == values[0]:
                    session.sql(f"RESET {name}")
                    assert world.sql("SELECT 1") == [(1,)]
            finally:
                session.conf.unset(name)
                session.conf.unset("own.name")
    # The name of a variable of one's own is free.
    session.conf.set("own.name", "plain")
    session.conf.set("spark.sql.columnNameOfCorruptRecord", "${own.name}")
    try:
        assert world.sql("SELECT 1") == [(1,)]
        session.conf.set("spark.sql.variable.substitute", "false")
        with pytest.raises(PySparkException, match="may not take variables of the server"):
            session.sql("SET spark.sql.defaultCatalog=${env:PATH}")
    finally:
        for name in ("own.name", "spark.sql.columnNameOfCorruptRecord", "spark.sql.variable.substitute"):
            session.conf.unset(name)


# Of each the first word that Spark does not find ends the analysis, and its error lists the columns.
WRONG = """
ALTER TABLE {t} RENAME COLUMN nosuch TO x
ALTER TABLE {t} DROP COLUMN nosuch
ALTER TABLE {t} ALTER COLUMN nosuch COMMENT 'x'
ALTER TABLE {t} ADD COLUMN x INT AFTER nosuch
ALTER TABLE {t} ADD COLUMN nosuch.x INT
SELECT * FROM {t} JOIN (SELECT 1 AS nosuch) USING (nosuch)
SELECT * FROM VALUES (1) AS a(nosuch) LEFT SEMI JOIN {t} USING (nosuch)
SELECT * EXCEPT (nosuch) FROM {t}
SELECT nosuch.* FROM (SELECT * FROM {t}) AS a
SELECT struct(*).nosuch FROM {t}
SELECT 1 WHERE EXISTS (SELECT nosuch.* FROM {t})
WITH c AS (SELECT nosuch.* FROM {t}) SELECT 1 FROM c
INSERT INTO {own} SELECT * FROM {t}
INSERT INTO {own} BY NAME SELECT * FROM {t}
MERGE INTO {own} t USING {t} s ON t.only = s.zqid WHEN NOT MATCHED THEN INSERT *
FROM {t} |> SET nosuch = 1
EXPLAIN SELECT * EXCEPT (nosuch) FROM {t}
EXECUTE IMMEDIATE 'SELECT * EXCEPT (nosuch) FROM {t}'
SELECT nosuch FROM {t}
CREATE TEMPORARY VIEW wrong AS SELECT * EXCEPT (nosuch) FROM {t}
CREATE TABLE {own}2 AS SELECT nosuch.* FROM {t}
DELETE FROM {own} WHERE only IN (SELECT nosuch.* FROM {t})
SELECT nosuch.* FROM {t} VERSION AS OF 1
SELECT * EXCEPT (nosuch) FROM spark_catalog.default.wrong_view
INSERT INTO {t} (nosuch) VALUES (1)
INSERT INTO {t} VALUES (1)
INSERT INTO {t} VALUES (DEFAULT)
INSERT INTO {t} BY NAME SELECT 1 AS nosuch
INSERT INTO {t} SELECT nosuch FROM {own}
INSERT OVERWRITE {t} (nosuch) SELECT 1
INSERT INTO {t} PARTITION (nosuch) VALUES (1)
INSERT INTO {t} PARTITION (nosuch = 1) VALUES (1)
INSERT INTO {t} REPLACE WHERE nosuch = 1 SELECT 1
INSERT INTO IDENTIFIER('{t}') (nosuch) VALUES (1)
FROM VALUES (1) AS v(x) INSERT INTO {own} SELECT x INSERT INTO {t} (nosuch) SELECT x
WITH c AS (SELECT 1 AS x) INSERT INTO {t} (nosuch) SELECT x FROM c
EXPLAIN INSERT INTO {t} (nosuch) VALUES (1)
EXECUTE IMMEDIATE 'INSERT INTO {t} (nosuch) VALUES (1)'
UPDATE {t} SET nosuch = 1
DELETE FROM {t} WHERE nosuch = 1
MERGE INTO {t} t USING {own} s ON t.nosuch = s.only WHEN MATCHED THEN DELETE
DESCRIBE {t} nosuch
DESCRIBE {t} zqin.nosuch
CREATE INDEX i ON TABLE {t} (nosuch)
ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS nosuch
ALTER TABLE {t} DROP PARTITION (nosuch = 1)
TRUNCATE TABLE {t} PARTITION (nosuch = 1)
SHOW PARTITIONS {t} PARTITION (nosuch = 1)
SHOW COLUMNS IN {t}
CACHE TABLE held AS SELECT * EXCEPT (nosuch) FROM {t}
LOAD DATA LOCAL INPATH '/nosuch' INTO TABLE {t} PARTITION (nosuch = 1)
"""


@pytest.mark.parametrize("kind", ["ours", "other"])
def test_errors_of_wrong_statements_name_no_column_that_may_not_be_read(
    world: World, lake: Lake, shared_table: Named, kind: str
) -> None:
    own = shared_table("own")
    table = shared_table("wrong") if kind == "ours" else "spark_catalog.default.wrong"
    lake.sql(f"CREATE TABLE IF NOT EXISTS {own} (only INT)")
    lake.sql(
        f"CREATE TABLE {table} (zqid INT, zqname STRING, zqin STRUCT<zqa: INT>) USING parquet"
        if kind == "other"
        else f"CREATE TABLE {table} (zqid INT, zqname STRING, zqin STRUCT<zqa: INT>)"
    )
    rights = allow(f"{own}*.*", "all", users=["ann"])
    lake.sql(f"CREATE VIEW spark_catalog.default.wrong_view AS SELECT * FROM {table}")
    try:
        world.put(rights)
        for line in WRONG.strip().splitlines():
            statement = line.format(t=table, own=own)
            if kind == "ours" or "VERSION" not in statement:
                found = told(world, statement)
                assert "denied to user 'ann'" in found, statement
                assert "zq" not in found.replace("s.zqid", "").replace("zqin.nosuch", ""), statement
        frame = world.session("ann").range(1).withColumnRenamed("id", "nosuch")
        writes = [
            lambda: frame.write.insertInto(table),
            lambda: frame.write.insertInto(table, overwrite=True),
        ]
        if kind == "ours":  # Spark writes others' tables of this kind by INSERT alone
            writes += [
                lambda: frame.writeTo(table).append(),
                lambda: frame.write.saveAsTable(table, mode="append"),
            ]
        for write in writes:
            with pytest.raises(PySparkException, match="is denied to user 'ann'") as refused:
                write()
            assert "zq" not in str(refused.value)
        # Who may read a part of the table gets Spark's error, and who may change it, too.
        world.put(rights, allow(f"{table}.zqid", users=["ann"]))
        assert "nosuch" in told(world, f"SELECT * EXCEPT (nosuch) FROM {table}")
        world.put(rights, allow(f"{table}.*", "alter", users=["ann"]), allow(table, "alter", users=["ann"]))
        assert "`nosuch` cannot be resolved" in told(world, f"ALTER TABLE {table} RENAME COLUMN nosuch TO x")
        world.put(rights, allow(f"{table}.*", "insert", users=["ann"]), allow(table, "insert", users=["ann"]))
        assert "zqin" in told(world, f"INSERT INTO {table} (nosuch) VALUES (1)")
        world.sql(f"INSERT INTO {table} (zqname, zqid) VALUES ('a', 1)")
    finally:
        lake.sql("DROP VIEW spark_catalog.default.wrong_view")
        if kind == "other":
            lake.sql(f"DROP TABLE {table}")
