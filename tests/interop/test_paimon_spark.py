"""Paimon's own Spark connector, in its Spark, and Lockgate's change and read the same tables by turns.

The jar is the one that LOCKGATE_PAIMON_SPARK_JAR names, or comes by Maven; without it the tests are skipped.
Paimon's JVM lives in another time zone, so that nothing depends on one.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from both_sparks import Sparks
from exact_rows import exact_rows, in_order
from paimon_spark import Engine, MissingPaimonError, paimon_engine
from pyspark.errors import PySparkException

from lockgate import Lake

pytestmark = pytest.mark.interop

# The type of a column and its values in three rows, in SQL; a fourth row holds nulls.
VALUES: dict[str, tuple[str, str, str, str]] = {
    "f_bool": ("BOOLEAN", "true", "false", "null"),
    "f_tiny": ("TINYINT", "-128", "127", "0"),
    "f_small": ("SMALLINT", "-32768", "32767", "0"),
    "f_int": ("INT", "-2147483648", "2147483647", "0"),
    "f_big": ("BIGINT", "-9223372036854775808", "9223372036854775807", "0"),
    "f_float": ("FLOAT", "1.5", "'NaN'", "'-Infinity'"),
    "f_double": ("DOUBLE", "-1e300", "'Infinity'", "-0.0D"),
    "f_dec": ("DECIMAL(10, 2)", "12345678.90", "-0.01", "0"),
    "f_long_dec": ("DECIMAL(18, 0)", "999999999999999999", "-1", "0"),
    "f_wide_dec": ("DECIMAL(38, 10)", "1.5", "-9999999999999999999999999999.9999999999", "0"),
    "f_string": ("STRING", "'ü'", "''", "'日本語 text'"),
    "f_char": ("CHAR(5)", "'ab   '", "'abcde'", "'     '"),
    "f_varchar": ("VARCHAR(9)", "'nine'", "''", "'123456789'"),
    "f_bytes": ("BINARY", "X'00ff'", "X''", "X'deadbeef'"),
    # Paimon's connector shifts days before 1582 as it writes them: it goes through Java's older calendar.
    "f_date": ("DATE", "'1582-10-15'", "'9999-12-31'", "'1969-12-31'"),
    "f_ntz": (
        "TIMESTAMP_NTZ",
        "'2024-03-10 02:30:00.123456'",
        "'9999-12-31 23:59:59.999999'",
        "'1969-12-31'",
    ),
    "f_ltz": ("TIMESTAMP", "'2024-03-10 10:30:00.123456'", "'1900-01-01 00:00:00'", "'2024-11-03 01:30:00'"),
    "f_array": ("ARRAY<INT>", "array(1, null, 3)", "array()", "array(2147483647)"),
    "f_map": (
        "MAP<STRING, DECIMAL(5, 1)>",
        "map('k', 1.5, '', null)",
        "map()",
        "map('z', -9999.9)",
    ),
    "f_row": (
        "STRUCT<x: INT, y: STRUCT<at: TIMESTAMP_NTZ, raw: BINARY>>",
        "struct(7, struct(TIMESTAMP_NTZ '2001-02-03 04:05:06', X'ff'))",
        "struct(null, null)",
        "struct(null, struct(null, null))",
    ),
    "f_rows": (
        "ARRAY<STRUCT<a: STRING, b: ARRAY<DATE>>>",
        "array(struct('a', array(DATE '1970-01-01', null)), null, struct(null, array()))",
        "array()",
        "array(struct(null, null))",
    ),
    "f_deep": (
        "MAP<INT, ARRAY<STRING>>",
        "map(1, array('x'), 2, array())",
        "map()",
        "map(-1, array(null, ''))",
    ),
}
COLUMNS = "id BIGINT NOT NULL, part INT, " + ", ".join(f"{name} {kind[0]}" for name, kind in VALUES.items())
KINDS = {
    "append in buckets": "TBLPROPERTIES ('bucket'='3', 'bucket-key'='id')",
    "append partitioned": "PARTITIONED BY (part)",
    "key": "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')",
    "key partitioned": "PARTITIONED BY (part) TBLPROPERTIES ('primary-key'='id,part', 'bucket'='2')",
}
KEYED = "CREATE TABLE {t} (id INT, v STRING, n INT) TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
APPENDED = "CREATE TABLE {t} (id INT, v STRING, n INT)"
SEQUENCED = (
    "CREATE TABLE {t} (id INT, v STRING, n INT NOT NULL) "
    "TBLPROPERTIES ('primary-key'='id', 'bucket'='1', 'sequence.field'='n')"
)
BY_DAY = "CREATE TABLE {t} (id INT, v STRING, n INT) PARTITIONED BY (n)"


@pytest.fixture(scope="module")
def paimon_spark(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A session of Paimon's own connector over the warehouse of `lake`."""
    settings = {
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        # Its catalog would not see for a while how others change a schema.
        "spark.sql.catalog.lake.cache-enabled": "false",
        "spark.sql.catalog.lake.table-default.file.format": "orc",
    }
    try:
        engine = paimon_engine(lake.catalog.warehouse, tmp_path_factory.mktemp("paimon-spark"), more=settings)
    except MissingPaimonError as error:
        pytest.skip(str(error))
    yield engine
    engine.close()


@pytest.fixture
def sparks(lake: Lake, paimon_spark: Engine) -> Sparks:
    """A table that does not exist yet, under both connectors."""
    database = f"db_{uuid.uuid4().hex[:8]}"
    lake.catalog.create_namespace(database)
    return Sparks(lake, paimon_spark, database)


def select_values(numbers: tuple[int, ...] = (1, 2, 3, 4)) -> str:
    """A query for the rows of these numbers, by Spark alone."""
    return " UNION ALL ".join(
        f"SELECT CAST({number} AS BIGINT) AS id, {number % 2} AS part, "
        + ", ".join(
            f"CAST({'null' if number == 4 else kind[number]} AS {storable(kind[0])}) AS {name}"
            for name, kind in VALUES.items()
        )
        for number in numbers
    )


def storable(kind: str) -> str:
    return "STRING" if "CHAR" in kind else kind


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_in_every_kind_of_table(sparks: Sparks, kind: str) -> None:
    rows = in_order(exact_rows(sparks.theirs.read(select_values())))
    sparks.there(f"CREATE TABLE {{t}} ({COLUMNS}) {KINDS[kind]}", f"INSERT INTO {{t}} {select_values()}")
    sparks.agree(rows)
    by_spark, by_python = sparks.next_to("by_spark"), sparks.sibling("by_python")
    for copy in (by_spark, by_python):
        copy.here(f"CREATE TABLE {{t}} ({COLUMNS}) {KINDS[kind]}")
    by_spark.here(f"INSERT INTO {{t}} {select_values()}")
    by_python.ours.append(sparks.ours.read())
    by_spark.agree(rows)
    by_python.agree(rows)
    # What the other has written is updated, merged and compacted.
    sparks.here("UPDATE {t} SET f_int = 5 WHERE id = 1", f"INSERT INTO {{t}} {select_values((3,))}")
    by_spark.there("UPDATE {t} SET f_int = 5 WHERE id = 1", f"INSERT INTO {{t}} {select_values((3,))}")
    by_spark.call_there("compact")
    sparks.call_here("compact")
    assert sparks.agree() == by_spark.agree()
    assert sparks.rows_there("f_int", "WHERE id = 1") == [[5]]
    assert len(sparks.agree()) == (4 if "primary-key" in KINDS[kind] else 5)


@pytest.mark.parametrize("create", [KEYED, APPENDED, SEQUENCED, BY_DAY])
def test_statements_by_turns(sparks: Sparks, create: str) -> None:
    """The same statements by either side in a random order, compared with one side doing them all."""
    alone = sparks.next_to("alone")
    sparks.there(create)
    alone.here(create)
    chance = random.Random(7)
    for step in range(10):
        statement = a_statement(chance, step, keyed="primary-key" in create)
        (sparks.here if chance.random() < 0.5 else sparks.there)(statement)
        alone.here(statement)
        if chance.random() < 0.3:
            (sparks.call_here if chance.random() < 0.5 else sparks.call_there)("compact")
    assert sparks.agree() == alone.rows_in_python()


def a_statement(chance: random.Random, step: int, *, keyed: bool) -> str:
    first = chance.randrange(20)
    source = f"(SELECT id, 'at {step}' AS v, {100 + step} AS n FROM range({first}, {first + 8}))"
    return chance.choice(
        [
            f"INSERT INTO {{t}} SELECT cast(id AS INT), v, n FROM {source}",
            f"DELETE FROM {{t}} WHERE id % 5 = {first % 5}",
            f"UPDATE {{t}} SET v = 'updated {step}' WHERE id < {first}",
            f"MERGE INTO {{t}} t USING {source} s ON t.id = s.id WHEN MATCHED AND s.id % 3 = 0 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v, n) "
            "VALUES (cast(s.id AS INT), s.v, s.n)",
        ]
    )


EVOLUTION = (
    "ALTER TABLE {t} ADD COLUMN added STRING COMMENT 'new' AFTER id",
    "ALTER TABLE {t} DROP COLUMN gone",
    "ALTER TABLE {t} RENAME COLUMN a TO b",
    "ALTER TABLE {t} ALTER COLUMN b TYPE BIGINT",
    "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
    "ALTER TABLE {t} ALTER COLUMN d TYPE DECIMAL(20, 2)",
    "ALTER TABLE {t} ALTER COLUMN b AFTER s",
    "ALTER TABLE {t} ADD COLUMN s.z BOOLEAN",
    "ALTER TABLE {t} DROP COLUMN s.y",
    "ALTER TABLE {t} RENAME COLUMN s.x TO xx",
    "ALTER TABLE {t} ADD COLUMN items.element.t STRING",
    "ALTER TABLE {t} ADD COLUMN gone INT",
)


@pytest.mark.parametrize("create", ["", "TBLPROPERTIES ('primary-key'='id', 'bucket'='1')"])
@pytest.mark.parametrize("by", ["Paimon", "Lockgate", "both"])
def test_evolved_schemas(sparks: Sparks, create: str, by: str) -> None:
    sparks.there(
        "CREATE TABLE {t} (id INT NOT NULL, a INT, s STRUCT<x: INT, y: STRING, w: STRING>, "
        f"items ARRAY<STRUCT<p: INT>>, gone STRING, f FLOAT, d DECIMAL(8, 2)) {create}"
    )
    old = "SELECT {}, 1, struct(2, 'y', 'w'), array(struct(3), null), 'gone', 0.5F, 1.50"
    sparks.there("INSERT INTO {t} " + old.format(1))
    sparks.here("INSERT INTO {t} " + old.format(2))
    for number, change in enumerate(EVOLUTION):
        here = by == "Lockgate" or (by == "both" and number % 2)
        (sparks.here if here else sparks.there)(change)
    new = "SELECT {}, 'new', struct(5, 'w', true), 6L, array(struct(7, 't')), 1e300, 123456789012.25, 8"
    sparks.there("INSERT INTO {t} " + new.format(3))
    sparks.here("INSERT INTO {t} " + new.format(4))
    before: list[Any] = [None, [2, "w", None], 1, [[3, None], None], 0.5, "1.50", None]
    after: list[Any] = ["new", [5, "w", True], 6, [[7, "t"]], 1e300, "123456789012.25", 8]
    rows = [[1, *before], [2, *before], [3, *after], [4, *after]]
    sparks.agree(rows)
    for where, ids in (("b = 1", [1, 2]), ("s.xx > 2", [3, 4]), ("gone IS NULL", [1, 2]), ("f > 1", [3, 4])):
        expected = [[number] for number in ids]
        assert sparks.rows_here("id", f"WHERE {where}") == expected
        assert sparks.rows_there("id", f"WHERE {where}") == expected
    sparks.call_here("compact")
    sparks.agree(rows)
    sparks.there("INSERT INTO {t} " + new.format(5))
    sparks.call_there("compact")
    sparks.agree([*rows, [5, *after]])


def test_tags_and_time_travel(sparks: Sparks) -> None:
    sparks.there(APPENDED, "INSERT INTO {t} VALUES (1, 'a', 1)")
    sparks.call_there("create_tag", tag="theirs", snapshot=1)
    sparks.here("INSERT INTO {t} VALUES (2, 'b', 2)")
    sparks.call_here("create_tag", tag="ours", snapshot=2)
    sparks.there("INSERT INTO {t} VALUES (3, 'c', 3)")
    for read in (sparks.rows_here, sparks.rows_there):
        assert read("id", "VERSION AS OF 'theirs'") == [[1]]
        assert read("id", "VERSION AS OF 'ours'") == [[1], [2]]
        assert read("id", "VERSION AS OF 2") == [[1], [2]]
    moment = sparks.ours.snapshots()[1].time_millis
    when = f"TIMESTAMP AS OF timestamp_millis({moment})"
    assert sparks.rows_here("id", when) == [[1], [2]]
    sparks.call_here("rename_tag", tag="theirs", target_tag="renamed")
    sparks.call_there("expire_snapshots", retain_max=1, retain_min=1)
    assert sparks.rows_here("id", "VERSION AS OF 'renamed'") == [[1]]
    assert sparks.rows_in_python(tag="ours") == sparks.rows_there(rest="VERSION AS OF 'ours'")
    sparks.call_there("rollback", version="ours")
    assert sparks.agree() == [[1, "a", 1], [2, "b", 2]]
    sparks.call_there("delete_tag", tag="renamed")
    assert [tag.name for tag in sparks.ours.tags()] == ["ours"]
    sparks.here("DELETE FROM {t} WHERE id = 1")
    sparks.call_here("rollback", version="ours")
    assert sparks.agree() == [[1, "a", 1], [2, "b", 2]]


@pytest.mark.parametrize("create", [KEYED, APPENDED])
def test_branches_of_either_are_read_and_written_by_both(sparks: Sparks, create: str) -> None:
    sparks.here(create, "INSERT INTO {t} VALUES (1, 'main', 1)")
    sparks.call_here("create_tag", tag="start", snapshot=1)
    sparks.call_here("create_branch", branch="made_here", tag="start")
    sparks.call_there("create_branch", branch="made_there", tag="start")
    for name in ("made_here", "made_there"):
        branch = sparks.next_to(f"t$branch_{name}")
        branch.there("INSERT INTO {t} VALUES (2, 'theirs', 2)")
        branch.here("INSERT INTO {t} VALUES (3, 'ours', 3)")
        branch.agree([[1, "main", 1], [2, "theirs", 2], [3, "ours", 3]])
    sparks.agree([[1, "main", 1]])
    sparks.call_there("fast_forward", branch="made_here")
    sparks.agree([[1, "main", 1], [2, "theirs", 2], [3, "ours", 3]])
    sparks.call_there("delete_branch", branch="made_here")
    assert sparks.ours.branches() == ["made_there"]
    sparks.call_here("rollback", version="1")
    sparks.call_here("fast_forward", branch="made_there")
    sparks.agree([[1, "main", 1], [2, "theirs", 2], [3, "ours", 3]])


def test_partitions_and_overwrites(sparks: Sparks) -> None:
    sparks.there(
        "CREATE TABLE {t} (v INT, s STRING, d DATE, b BOOLEAN) PARTITIONED BY (s, d, b)",
        "INSERT INTO {t} VALUES (1, 'a b/c=d%', DATE '2024-02-29', true), (2, null, null, null)",
    )
    sparks.here("INSERT INTO {t} SELECT v + 10, s, d, b FROM {t}")
    sparks.agree()
    assert len({path.rsplit("/", 1)[0] for split in sparks.ours.scan().splits for path in split.paths}) == 2
    for read in (sparks.rows_here, sparks.rows_there):
        assert read("v", "WHERE s = 'a b/c=d%' AND d = DATE '2024-02-29' AND b") == in_order([[1], [11]])
        assert read("v", "WHERE s IS NULL") == in_order([[2], [12]])
    # Paimon's connector refuses a BOOLEAN among the partitions that are named.
    where = "PARTITION (s = 'a b/c=d%', d = '2024-02-29', b)"
    sparks.here(f"INSERT OVERWRITE {{t}} {where} SELECT 5, true")
    sparks.agree([[5, "a b/c=d%", 19782, True], [2, None, None, None], [12, None, None, None]])
    sparks.there(f"INSERT OVERWRITE {{t}} {where} SELECT 6, true")
    sparks.agree([[6, "a b/c=d%", 19782, True], [2, None, None, None], [12, None, None, None]])
    sparks.there("DELETE FROM {t} WHERE s IS NULL")
    sparks.here("INSERT OVERWRITE {t} SELECT 7, 'x', DATE '1969-12-31', false")
    sparks.agree([[7, "x", -1, False]])


def test_each_prunes_by_the_statistics_of_the_other(sparks: Sparks) -> None:
    columns = "id INT, s STRING, q DECIMAL(20, 2), at TIMESTAMP_NTZ, z TIMESTAMP, d DATE, f DOUBLE"
    sparks.there(f"CREATE TABLE {{t}} ({columns})")
    row = (
        "SELECT {0}, repeat('text {0} ', 5), {0}.50, TIMESTAMP_NTZ '202{0}-01-01 00:00:00.000001', "
        "TIMESTAMP '202{0}-01-01 00:00:00.000001', DATE '202{0}-01-01', CAST({0} AS DOUBLE)"
    )
    for number in range(6):
        (sparks.here if number % 2 else sparks.there)("INSERT INTO {t} " + row.format(number))
    for number in (0, 3, 5):
        for where in (
            f"s = repeat('text {number} ', 5)",
            f"q = {number}.50",
            f"at = TIMESTAMP_NTZ '202{number}-01-01 00:00:00.000001'",
            f"z = TIMESTAMP '202{number}-01-01 00:00:00.000001'",
            f"d = DATE '202{number}-01-01'",
            f"f = {number}D",
        ):
            assert sparks.rows_here("id", f"WHERE {where}") == [[number]], where
            assert sparks.rows_there("id", f"WHERE {where}") == [[number]], where
    for read in (sparks.rows_here, sparks.rows_there):
        assert read("count(*), min(id), max(d)") == [[6, 0, 20_089]]


def test_defaults_comments_and_properties(sparks: Sparks) -> None:
    sparks.here(
        "CREATE TABLE {t} (id INT COMMENT 'the key', n INT DEFAULT 7, s STRING DEFAULT 'it''s') "
        "COMMENT 'ours'",
        "INSERT INTO {t} (id) VALUES (1)",
    )
    sparks.there("INSERT INTO {t} (id) VALUES (2)")
    sparks.agree([[1, 7, "it's"], [2, 7, "it's"]])
    described = {row[0]: row[2] for row in exact_rows(sparks.theirs.read(f"DESCRIBE {sparks.sql_name}"))}
    assert described["id"] == "the key"
    there = sparks.next_to("there")
    there.there(
        "CREATE TABLE {t} (id INT COMMENT 'the key', n INT DEFAULT 7) COMMENT 'theirs' "
        "TBLPROPERTIES ('primary-key'='id', 'bucket'='1', 'write-only'='true', "
        "'snapshot.num-retained.max'='99')"
    )
    there.here("INSERT INTO {t} (id) VALUES (1)")
    there.there("INSERT INTO {t} (id) VALUES (2)")
    there.agree([[1, 7], [2, 7]])
    assert there.ours.schema.comment == "theirs"
    assert there.ours.schema.fields[0].description == "the key"


def test_what_changed_between_two_snapshots(sparks: Sparks) -> None:
    sparks.there(APPENDED)
    for number in range(1, 5):
        (sparks.here if number % 2 else sparks.there)(f"INSERT INTO {{t}} VALUES ({number}, 'v', 0)")
    sparks.call_here("compact")
    name = f"{sparks.database}.t"
    theirs = sparks.theirs.read(f"SELECT id FROM paimon_incremental_query('lake.{name}', 1, 3)")
    ours = sparks.lake.sql(f"SELECT id FROM lockgate_incremental_query('lake.{name}', 1, 3)").toArrow()
    assert in_order(exact_rows(theirs)) == in_order(exact_rows(ours)) == [[2], [3]]


def test_expiry_and_orphans(sparks: Sparks) -> None:
    sparks.there(KEYED)
    for number in range(6):
        (sparks.here if number % 2 else sparks.there)(
            f"INSERT INTO {{t}} VALUES (1, 'at {number}', {number})"
        )
    sparks.call_there("compact")
    sparks.call_here("expire_snapshots", retain_max=2, retain_min=1)
    sparks.call_there("expire_snapshots", retain_max=1, retain_min=1)
    sparks.call_there("remove_orphan_files")
    sparks.agree([[1, "at 5", 5]])
    assert len(sparks.ours.snapshots()) == 1


def test_a_table_that_paimon_rescaled(sparks: Sparks) -> None:
    sparks.there(KEYED, "INSERT INTO {t} SELECT cast(id AS INT), 'old', 0 FROM range(20)")
    sparks.call_there("rescale", bucket_num=4)
    # The table's option still says 2: Paimon's writer refuses such rows as well.
    with pytest.raises(PySparkException, match="has 4 buckets"):
        sparks.here("INSERT INTO {t} VALUES (1, 'new', 1)")
    sparks.there("ALTER TABLE {t} SET TBLPROPERTIES ('bucket'='4')")
    sparks.here("INSERT INTO {t} VALUES (1, 'new', 1)")
    sparks.there("INSERT INTO {t} VALUES (2, 'new', 2)")
    sparks.agree(
        [[number, "new", number] if number in (1, 2) else [number, "old", 0] for number in range(20)]
    )
