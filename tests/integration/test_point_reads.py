"""Queries for single values: the driver reads the few rows while it plans, and no job is started."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import lockgate
from lockgate.errors import MaskedDataWarning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
SIZE = "source.split.driver-max-size"
OFF = f"WITH (`{SIZE}` = '0')"


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def on_driver(frame: DataFrame) -> bool:
    return "DriverScan" in plan(frame)


def collected(spark: SparkSession, frame: DataFrame) -> tuple[list[str], int]:
    """The rows of a query, and how many jobs it takes to collect them."""
    group = uuid.uuid4().hex
    spark.sparkContext.setJobGroup(group, "a test")
    try:
        found = rows(frame)
        return found, len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None takes the property away


def rows(frame: DataFrame) -> list[str]:
    """The rows as text, in which NaN equals itself and the zeros differ."""
    return sorted(str(tuple(row)) for row in frame.collect())


def ask(spark: SparkSession, name: str, condition: str, columns: str = "*") -> list[str]:
    """Answer a query that the driver reads, after seeing that tasks answer it alike."""
    frame = spark.sql(f"SELECT {columns} FROM {name} WHERE {condition}")
    assert on_driver(frame), condition
    found, jobs = collected(spark, frame)
    assert jobs == 0, condition
    tasks = spark.sql(f"SELECT {columns} FROM {name} {OFF} WHERE {condition}")
    assert not on_driver(tasks)
    assert found == rows(tasks), condition
    assert frame.schema == tasks.schema
    return found


def left_to_tasks(spark: SparkSession, name: str, condition: str, columns: str = "*") -> list[str]:
    """Answer a query that the driver does not read."""
    frame = spark.sql(f"SELECT {columns} FROM {name} WHERE {condition}")
    assert not on_driver(frame), condition
    found = rows(frame)
    assert found == rows(spark.sql(f"SELECT {columns} FROM {name} {OFF} WHERE {condition}"))
    return found


@pytest.fixture(scope="module")
def numbers(spark: SparkSession, shared_table: Named) -> str:
    """Five files of ten rows; `id` grows from file to file."""
    name = shared_table("numbers")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, n INT, s STRING, tags ARRAY<STRING>, at STRUCT<x: INT, y: STRING>)"
    )
    spark.range(0, 50, numPartitions=5).selectExpr(
        "id", "CAST(id % 10 AS INT) AS n", "concat('s', id) AS s", "array('a', concat('b', id)) AS tags",
        "named_struct('x', CAST(id AS INT), 'y', concat('y', id)) AS at",
    ).writeTo(name).append()  # fmt: skip
    return name


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("id = 17", 1),
        ("17 = id", 1),
        ("id <=> 17", 1),
        ("id = 17 AND n > 3 AND s LIKE 's1%'", 1),
        ("id = 17 AND n IS NULL", 0),
        ("id IN (11, 12, 13, NULL)", 3),
        ("id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13)", 12),
        ("id = 11 OR s = 's12'", 2),
        ("id = 17 AND NOT n = 3", 1),
        ("id = 17 AND at.x = 17", 1),
        ("id = 1000", 0),
        ("n = 7", 5),
    ],
)
def test_conditions_that_the_driver_answers(
    spark: SparkSession, numbers: str, condition: str, count: int
) -> None:
    assert len(ask(spark, numbers, condition)) == count


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "columns",
    [
        "s",
        "n AS m, id",
        "id + 1, CAST(n AS STRING)",
        "at.y",
        "tags",
        "at",
        "id, id",
        "7 AS seven",
        "s = 's17'",
    ],
)
def test_a_query_reads_any_columns_of_one_row(spark: SparkSession, numbers: str, columns: str) -> None:
    assert len(ask(spark, numbers, "id = 17", columns)) == 1


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "condition",
    ["id > 47", "id = 17 AND upper(s) = 'S17'", "id = 17 AND uuid() <> s", "id = 3 OR n > 8", "id % 50 = 17"],
)
def test_other_conditions_are_left_to_tasks(spark: SparkSession, numbers: str, condition: str) -> None:
    assert left_to_tasks(spark, numbers, condition)


def test_explain_says_it_and_reports_stay(spark: SparkSession, numbers: str, lake: Lake) -> None:
    frame = spark.table(numbers).where("id = 17").select("s")
    assert f"{numbers} snapshot=1 accepted=[id IS NOT NULL, id = 17] read on the driver" in plan(frame)
    frame.explain("formatted")
    frame.collect()
    metrics = frame._jdf.queryExecution().executedPlan().metrics()
    shown = {
        name: metrics.apply(name).value() for name in ("numOutputRows", "files", "skipped_by_statistics")
    }
    assert shown == {"numOutputRows": 1, "files": 1, "skipped_by_statistics": 4}
    (report,) = lake.explain_pushdown(f"SELECT s FROM {numbers} WHERE id = 17")
    assert (report.total.files, report.kept.files) == (5, 1)


def test_the_ways_to_take_rows(spark: SparkSession, numbers: str) -> None:
    frame = spark.table(numbers).where("id IN (15, 16, 17)").select("id")
    assert on_driver(frame)
    assert frame.count() == 3
    assert len(frame.take(2)) == 2
    assert [row.id for row in frame.tail(1)] == [17]
    assert sorted(row.id for row in frame.toLocalIterator()) == [15, 16, 17]
    assert sorted(row.id for row in frame.rdd.collect()) == [15, 16, 17]
    assert sorted(frame.toArrow().column("id").to_pylist()) == [15, 16, 17]
    assert [row.id for row in frame.limit(1).collect()] == [15]
    assert frame.orderBy(frame.id.desc()).first() == (17,)
    cached = frame.cache()
    assert cached.count() == 3
    assert sorted(row.id for row in cached.collect()) == [15, 16, 17]
    cached.unpersist()


def test_aggregates_and_unions(spark: SparkSession, numbers: str) -> None:
    for query in (
        "SELECT count(*), max(s), sum(n) FROM {0} {1} WHERE id = 17",
        "SELECT n, count(*) FROM {0} {1} WHERE id IN (15, 17, 25) GROUP BY n",
        "SELECT s FROM {0} {1} WHERE id = 3 UNION ALL SELECT s FROM {0} {1} WHERE id = 44",
        "SELECT DISTINCT n FROM {0} {1} WHERE id IN (15, 17, 25)",
        "SELECT (SELECT s FROM {0} {1} WHERE id = 9), id FROM {0} {1} WHERE id = 17",
        "SELECT count(*) FROM {0} {1} WHERE id = 1000",
    ):
        frame = spark.sql(query.format(numbers, ""))
        assert on_driver(frame), query
        assert rows(frame) == rows(spark.sql(query.format(numbers, OFF))), query


@pytest.mark.parametrize("threshold", ["-1", "10mb"])
def test_joins(spark: SparkSession, numbers: str, table: Named, threshold: str) -> None:
    """With the rows on either side, or both, whether Spark broadcasts them or not."""
    other = table("other")
    spark.sql(f"CREATE TABLE {other} AS SELECT id AS k, n AS m FROM {numbers} WHERE id % 2 = 1")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    try:
        for kind in ("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"):
            query = (
                "SELECT * FROM (SELECT * FROM {0} {2} WHERE id IN (12, 13, 17)) a "
                f"{kind} {{1}} b ON a.n = b.m"
            )
            frame = spark.sql(query.format(numbers, other, ""))
            assert on_driver(frame)
            assert rows(frame) == rows(spark.sql(query.format(numbers, other, OFF)))
        itself = spark.sql(
            f"SELECT a.s, b.s FROM {numbers} a JOIN {numbers} b ON a.n = b.n WHERE a.id = 17 AND b.id = 27"
        )
        assert rows(itself) == ["('s17', 's27')"]
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_joins_by_buckets_move_no_rows(spark: SparkSession, table: Named) -> None:
    names = [table("a"), table("b")]
    for name in names:
        spark.sql(f"CREATE TABLE {name} (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '4')")
        spark.sql(f"INSERT INTO {name} SELECT id, id * 2 FROM range(100)")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        query = f"SELECT a.id, b.v FROM {names[0]} a LEFT JOIN {names[1]} b ON a.id = b.id WHERE a.v = 14"
        frame = spark.sql(query)
        assert rows(frame) == ["(7, 14)"]
        assert "Exchange" not in plan(frame)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_the_size(spark: SparkSession, numbers: str) -> None:
    for size, expected in (("0", False), ("10 b", False), ("1 mb", True)):
        frame = spark.sql(f"SELECT * FROM {numbers} WITH (`{SIZE}` = '{size}') WHERE id = 17")
        assert on_driver(frame) is expected, size
        assert len(rows(frame)) == 1
    with pytest.raises(PySparkException, match=SIZE):
        spark.read.option(SIZE, "much").table(numbers).where("id = 17").collect()
    spark.sql(f"ALTER TABLE {numbers} SET TBLPROPERTIES ('{SIZE}' = '0')")
    try:
        assert not on_driver(spark.table(numbers).where("id = 17"))
        assert on_driver(spark.read.option(SIZE, "1 mb").table(numbers).where("id = 17"))
    finally:
        spark.sql(f"ALTER TABLE {numbers} UNSET TBLPROPERTIES ('{SIZE}')")


def test_many_rows_are_left_to_tasks(spark: SparkSession, table: Named) -> None:
    name = table("many")
    spark.sql(
        f"CREATE TABLE {name} AS SELECT /*+ COALESCE(1) */ id, id % 2 AS odd, id % 20 AS n FROM range(15000)"
    )
    assert len(ask(spark, name, "n = 3")) == 750
    assert len(left_to_tasks(spark, name, "odd = 1")) == 7500
    long = table("long")
    spark.sql(
        f"CREATE TABLE {long} AS SELECT 1 AS n, repeat(CAST(id AS STRING), 100000) AS s FROM range(300)"
    )
    assert len(spark.sql(f"SELECT s FROM {long} WHERE n = 1").collect()) == 300
    assert not on_driver(spark.sql(f"SELECT s FROM {long} WHERE n = 1"))
    assert on_driver(spark.sql(f"SELECT s FROM {long} WHERE n = 1 AND s LIKE '29%'"))


def test_many_files_are_left_to_tasks(spark: SparkSession, table: Named) -> None:
    name = table("files")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, n INT)")
    spark.range(0, 100, numPartitions=10).selectExpr("id", "CAST(id % 10 AS INT) AS n").writeTo(name).append()
    assert len(left_to_tasks(spark, name, "n = 3")) == 10
    assert len(ask(spark, name, "id IN (3, 13)")) == 2


def test_partitions(spark: SparkSession, table: Named) -> None:
    name = table("p")
    spark.sql(f"CREATE TABLE {name} (id INT, day DATE, part STRING) PARTITIONED BY (day, part)")
    spark.sql(f"INSERT INTO {name} SELECT id, DATE '2024-02-29', 'a/b' FROM range(5)")
    spark.sql(f"INSERT INTO {name} SELECT id, NULL, 'ü' FROM range(3, 8)")
    assert len(ask(spark, name, "id = 3")) == 2
    assert len(ask(spark, name, "id = 3 AND day = DATE '2024-02-29'", "id, part, day")) == 1
    assert len(ask(spark, name, "id = 3 AND part = 'ü'", "day, part")) == 1
    # A partition is no single value: its rows are what tasks are for.
    assert len(left_to_tasks(spark, name, "part = 'ü'")) == 5


def test_key_tables(spark: SparkSession, table: Named) -> None:
    """The newest row of a key counts, wherever an older one would pass the filter."""
    name = table("k")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')")
    spark.sql(f"INSERT INTO {name} SELECT id, 'old' FROM range(10)")
    spark.sql(f"INSERT INTO {name} SELECT id, 'new' FROM range(5)")
    spark.sql(f"DELETE FROM {name} WHERE id = 9")
    assert ask(spark, name, "id = 3") == ["(3, 'new')"]
    assert ask(spark, name, "id = 7") == ["(7, 'old')"]
    assert ask(spark, name, "id = 3 AND v = 'old'") == []
    assert ask(spark, name, "id = 9") == []
    assert ask(spark, name, "id IN (2, 7, 9)", "v") == ["('new',)", "('old',)"]
    assert len(ask(spark, name, "v = 'old'")) == 4
    spark.sql(f"UPDATE {name} SET v = 'newest' WHERE id = 3")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 7 AS id) s ON t.id = s.id AND t.id = 7 WHEN MATCHED THEN DELETE"
    )
    assert ask(spark, name, "id IN (3, 7)") == ["(3, 'newest')"]
    first = f"{name} VERSION AS OF 1"
    assert rows(spark.sql(f"SELECT * FROM {first} WHERE id = 3")) == ["(3, 'old')"]
    assert on_driver(spark.sql(f"SELECT * FROM {first} WHERE id = 3"))


def test_changes_of_single_rows(spark: SparkSession, table: Named) -> None:
    name = table("c")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    spark.range(20).coalesce(1).selectExpr("CAST(id AS INT) AS id", "'old' AS v").writeTo(name).append()
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    spark.sql(f"UPDATE {name} SET v = 'new' WHERE id IN (4, 5)")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 6 AS id) s ON t.id = s.id AND t.id = 6 "
        "WHEN MATCHED THEN UPDATE SET v = 'merged'"
    )
    spark.sql(f"INSERT INTO {name} SELECT id + 100, v FROM {name} WHERE id = 4")
    expected = {**dict.fromkeys(range(20), "old"), 4: "new", 5: "new", 6: "merged", 104: "new"}
    del expected[3]
    assert {row.id: row.v for row in spark.table(name).collect()} == expected
    assert ask(spark, name, "id IN (3, 4, 6)") == ["(4, 'new')", "(6, 'merged')"]


def test_evolved_columns(spark: SparkSession, table: Named) -> None:
    name = table("e")
    spark.sql(f"CREATE TABLE {name} (id INT, n INT, name STRING)")
    spark.sql(f"INSERT INTO {name} SELECT id, id * 2, concat('n', id) FROM range(10)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN name TO called")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN more STRING FIRST")
    spark.sql(f"INSERT INTO {name} SELECT 'm', id, 5000000000, 'late' FROM range(5, 12)")
    assert ask(spark, name, "id = 5") == ["('m', 5, 5000000000, 'late')", "(None, 5, 10, 'n5')"]
    assert ask(spark, name, "called = 'n5'", "n, more") == ["(10, None)"]
    assert ask(spark, name, "n = 10", "called") == ["('n5',)"]
    assert ask(spark, name, "n = 5000000000 AND id = 6", "called") == ["('late',)"]
    assert ask(spark, name, "more <=> NULL AND id = 5", "called") == ["('n5',)"]


def test_columns_of_files(spark: SparkSession, numbers: str) -> None:
    columns = "id, _FILE_PATH, _ROW_INDEX, _PARTITION, _BUCKET"
    (found,) = ask(spark, numbers, "id = 17", columns)
    assert found.endswith(", 7, '', 0)")
    assert len(ask(spark, numbers, "id IN (7, 17) AND _ROW_INDEX = 7", "id")) == 2


VALUES: dict[str, tuple[str, list[str]]] = {
    "TINYINT": ("-5Y", ["-5Y", "5Y"]),
    "INT": ("-5", ["-5", "5"]),
    "FLOAT": ("1.5F", ["1.5F", "CAST('NaN' AS FLOAT)", "-0.0F", "0.0F"]),
    "DOUBLE": ("1.5D", ["1.5D", "CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", "-0.0D", "0.0D"]),
    "DECIMAL(10,2)": ("1.50", ["1.50", "-99999999.99"]),
    "DECIMAL(38,10)": ("12345678901234567890.5", ["12345678901234567890.5", "-1"]),
    "STRING": ("'ß–é'", ["'ß–é'", "''", "'A'", "'a'", "'東京'"]),
    "BINARY": ("X'00FF'", ["X'00FF'", "X''", "X'7F'"]),
    "DATE": ("DATE '1582-10-04'", ["DATE '1582-10-04'", "DATE '2024-02-29'"]),
    "TIMESTAMP": ("TIMESTAMP '1900-01-01 00:00:00.000001'", ["TIMESTAMP '1900-01-01 00:00:00.000001'"]),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ '2024-03-31 02:30:00'", ["TIMESTAMP_NTZ '2024-03-31 02:30:00'"]),
}


# Types that are much like another one here: the long lane has them.
LIKE_OTHERS = {"TINYINT", "FLOAT", "DECIMAL(10,2)", "TIMESTAMP_NTZ"}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] if kind in LIKE_OTHERS else []) for kind in VALUES]
)
def test_single_values_of_every_type(spark: SparkSession, table: Named, kind: str) -> None:
    name = table("v")
    first, values = VALUES[kind]
    spark.sql(f"CREATE TABLE {name} (v {kind}, w {kind}, i INT)")
    listed = ", ".join(f"({value}, {first}, {i})" for i, value in enumerate([*values, "NULL"]))
    spark.sql(f"INSERT INTO {name} SELECT * FROM VALUES {listed}")
    for value in values:
        assert ask(spark, name, f"v = {value}"), value
        for operator in ("<", "<=", ">", ">=", "<>"):
            ask(spark, name, f"v {operator} {value} AND i IN (0, 1, 2, 3, 4, 5)")
    assert len(ask(spark, name, "v IS NULL AND i <=> %d" % len(values))) == 1  # noqa: UP031 - braces are SQL's
    ask(spark, name, f"v IN ({', '.join(values)})")
    ask(spark, name, f"v = {first} AND v = w", "w, i")


def test_nan_and_zeros(spark: SparkSession, table: Named) -> None:
    name = table("z")
    spark.sql(f"CREATE TABLE {name} (d DOUBLE)")
    spark.sql(f"INSERT INTO {name} VALUES (0.0D), (-0.0D), (double('NaN')), (1D), (NULL)")
    assert len(ask(spark, name, "d = 0D")) == 2
    assert len(ask(spark, name, "d = -0D")) == 2
    assert ask(spark, name, "d = double('NaN')") == ["(nan,)"]
    assert len(ask(spark, name, "d IN (double('NaN'), 1D) AND d > 0D")) == 2


def test_text_of_other_kinds(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (c CHAR(5), v VARCHAR(5), s STRING)")
    spark.sql(f"INSERT INTO {name} VALUES ('ab', 'ab', 'ab'), ('AB', 'AB', 'AB')")
    assert len(left_to_tasks(spark, name, "c = 'ab'")) == 1
    assert ask(spark, name, "v = 'ab'", "v, s") == ["('ab', 'ab')"]
    assert ask(spark, name, "v = 'ab '", "v, s") == []
    query = f"SELECT s FROM {name} {{}} WHERE s COLLATE UTF8_LCASE = 'ab'"
    assert len(rows(spark.sql(query.format("")))) == 2
    assert rows(spark.sql(query.format(""))) == rows(spark.sql(query.format(OFF)))


@pytest.fixture(scope="module")
def people(spark: SparkSession, shared_table: Named) -> str:
    """`<database>.people`, with an encrypted column that others see the digest of."""
    name = shared_table("people")
    properties = "'orc.encrypt' = 'pii:ssn', 'orc.mask' = 'sha256:ssn'"
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING) TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {name} SELECT id, concat('ssn-', id) FROM range(20)")
    return name


def test_encrypted_columns(spark: SparkSession, people: str) -> None:
    assert ask(spark, people, "ssn = 'ssn-7'") == ["(7, 'ssn-7')"]
    assert ask(spark, people, "id = 7", "ssn") == ["('ssn-7',)"]
    assert "SecretKey" not in plan(spark.sql(f"SELECT * FROM {people} WHERE id = 7"))
    assert "ssn-7" not in plan(spark.sql(f"SELECT * FROM {people} WHERE id = 7"))


@pytest.mark.filterwarnings("ignore::lockgate.errors.MaskedDataWarning")
def test_masks_without_the_key(spark: SparkSession, lake_folder: Path, people: str) -> None:
    lockgate.connect(str(lake_folder / "warehouse"), spark=spark, catalog="blind_points")
    name = people.replace("lake.", "blind_points.", 1)
    (mask,) = (row[0] for row in spark.sql("SELECT upper(sha2('ssn-7', 256))").collect())
    assert ask(spark, name, "id = 7") == [f"(7, '{mask}')"]
    assert ask(spark, name, f"ssn = '{mask}'", "id") == ["(7,)"]
    assert ask(spark, name, "ssn = 'ssn-7'") == []
    with pytest.warns(MaskedDataWarning, match="ssn"):
        spark.sql(f"SELECT ssn FROM {name} WHERE id = 7").collect()
    before = rows(spark.table(people))
    masked = spark.table(name).where("id = 7").cache()
    try:
        assert rows(masked) == [f"(7, '{mask}')"]
        for source in (masked, spark.table(name).where("id = 7")):
            with pytest.raises(PySparkException, match="pii"):
                source.writeTo(name).append()
    finally:
        masked.unpersist()
    assert rows(spark.table(people)) == before


def test_errors_are_those_of_tasks(spark: SparkSession, lake: Lake, people: str) -> None:
    location = lake.catalog.load_table(people.removeprefix("lake.")).location
    for path in Path(location).rglob("*.orc"):
        whole = path.read_bytes()
        path.write_bytes(bytes(255 - byte for byte in whole[:300]) + whole[300:])
    messages: list[Any] = []
    for options in ("", OFF):
        frame = spark.sql(f"SELECT * FROM {people} {options} WHERE id = 7")
        assert not on_driver(frame)
        with pytest.raises(PySparkException) as raised:
            frame.collect()
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
