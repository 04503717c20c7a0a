"""Lookups inside the JVM of tasks: the same answers as by Spark's join and by the Python workers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import col, lit
from pyspark.sql.types import LongType, StringType, StructField, StructType
from same_frames import same as same_tuples

from lockgate import lookup
from lockgate.framework.version import CACHE_FORMAT, ROW_CODEC
from lockgate.lookup import lookup_join
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.join import plan
from lockgate.lookup.join.jvm import jvm_function
from lockgate.lookup.spec.lookup_spec import CacheLayout, CacheStructure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MakeName = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("lookups_end")

# Values of every flat type, with nulls and the ends of each range; `n` is from 0 to 3.
COLUMNS = {
    "flag BOOLEAN": "element_at(array(true, false, null, true), n + 1)",
    "tiny TINYINT": "cast(element_at(array(-128, 127, null, 0), n + 1) AS TINYINT)",
    "small SMALLINT": "cast(element_at(array(-32768, 32767, null, -1), n + 1) AS SMALLINT)",
    "whole INT": "element_at(array(-2147483648, 2147483647, null, -1), n + 1)",
    "big BIGINT": "element_at(array(-9223372036854775807L, 9223372036854775807L, null, id), n + 1)",
    "real FLOAT": "cast(element_at(array('NaN', '-Infinity', null, '-0.25'), n + 1) AS FLOAT)",
    "ratio DOUBLE": "cast(element_at(array('NaN', 'Infinity', null, '-1e-300'), n + 1) AS DOUBLE)",
    "price DECIMAL(18,2)": (
        "cast(element_at(array('-9999999999999999.99', '0.01', null, '7'), n + 1) AS DECIMAL(18,2))"
    ),
    "mass DECIMAL(38,3)": (
        "cast(element_at(array('-99999999999999999999999999999999999.999', '18446744073709551615.5', null, "
        "'-1'), n + 1) AS DECIMAL(38,3))"
    ),
    "name STRING": "element_at(array('', repeat('ü', 300), null, concat('n', id)), n + 1)",
    "code CHAR(5)": "element_at(array('a', 'abcde', null, 'b'), n + 1)",
    "raw BINARY": "element_at(array(X'', X'00FF00', null, cast(concat('b', id) AS BINARY)), n + 1)",
    "day DATE": "element_at(array(DATE'0001-01-01', DATE'9999-12-31', null, DATE'1969-12-31'), n + 1)",
    "at TIMESTAMP": "timestamp_micros(if(n = 2, null, id * -1234567891234))",
    "wall TIMESTAMP_NTZ": "cast(timestamp_micros(if(n = 2, null, id * 98765)) AS TIMESTAMP_NTZ)",
}
NAMES = [described.split(" ")[0] for described in COLUMNS]
WAYS: dict[str, dict[str, str]] = {
    "jvm": {},
    "workers": {"lookup.cache": "memory", "lookup.in-jvm": "false"},
    # A cache that outgrew mapped files after the join was planned.
    "jvm in RocksDB": {"lookup.cache": "full"},
}


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    made = [f"{value} AS {name}" for value, name in zip(COLUMNS.values(), NAMES, strict=True)]
    given = spark.range(start, end).selectExpr("id", "id % 7 AS g", "cast(id % 4 AS INT) AS n")
    return given.selectExpr("id", "g", *made)


KEYED = "'primary-key'='id', 'bucket'='2'"


def create(spark: SparkSession, name: str, properties: str = KEYED) -> None:
    described = ", ".join(COLUMNS)
    spark.sql(f"CREATE TABLE {name} (id BIGINT, g BIGINT, {described}) TBLPROPERTIES ({properties})")


def asks_in_jvm(joined: DataFrame) -> bool:
    text = str(joined._jdf.queryExecution().executedPlan().toString())
    assert ("ArrowEvalPython" in text) != ("lockgate.lookup" in text)
    return "lockgate.lookup" in text


def same(left: DataFrame, right: DataFrame) -> None:
    """Require the same rows; not a number is the same as itself."""
    assert left.schema.simpleString() == right.schema.simpleString()
    real = [name for name, kind in left.dtypes if kind in ("float", "double")]
    same_tuples(
        *(frame.withColumns({name: frame[name].cast("string") for name in real}) for frame in (left, right))
    )


@pytest.fixture(params=["jvm", *(pytest.param(way, marks=pytest.mark.long) for way in WAYS if way != "jvm")])
def way(
    request: pytest.FixtureRequest, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    if request.param != "jvm":
        request.getfixturevalue("interpreted")
    if request.param == "jvm in RocksDB":
        monkeypatch.setattr(plan, "answers_in_jvm", lambda *_: True)
    return {**options, **WAYS[request.param]}


def test_each_of_many_keys_is_found_and_no_other(
    spark: SparkSession, table: MakeName, options: dict[str, str]
) -> None:
    """Of which a layer's index in memory holds few; changes make a second layer, with keys that are gone."""
    name = table("many")
    spark.sql(f"CREATE TABLE {name} (k STRING, n BIGINT) TBLPROPERTIES ('primary-key'='k', 'bucket'='2')")
    spark.sql(f"INSERT INTO {name} SELECT concat('key', id), id FROM range(0, 20000, 2)")
    stream = spark.range(21_000).selectExpr("concat('key', id) AS k", "id")
    joined = lookup_join(stream, name, on="k", select=["n"], options=options)
    assert asks_in_jvm(joined)
    for change in (None, f"DELETE FROM {name} WHERE n % 6 = 0", f"UPDATE {name} SET n = -n WHERE n % 5 = 0"):
        if change:
            spark.sql(change)
            lookup.wait_for(name)
        same(joined, stream.join(spark.table(name), "k", "left").select(*joined.columns))


def test_every_value_of_one_row_a_key_while_it_changes(
    spark: SparkSession, table: MakeName, way: dict[str, str]
) -> None:
    name = table("one")
    create(spark, name)
    rows(spark, 0, 400).writeTo(name).append()
    stream = spark.range(-20, 460, 3, numPartitions=3).selectExpr("id", "id * 2 AS twice")
    joined = lookup_join(stream, name, on="id", select=NAMES, options=way)
    assert asks_in_jvm(joined) == ("lookup.in-jvm" not in way)

    def check() -> None:
        same(joined, stream.join(spark.table(name).drop("g"), "id", "left").select(*joined.columns))

    check()
    for change in (
        f"DELETE FROM {name} WHERE id % 9 = 0",
        f"UPDATE {name} SET name = concat('new', id), mass = null, whole = 5 WHERE id % 6 = 3",
        f"INSERT INTO {name} SELECT id + 400, g, {', '.join(NAMES)} FROM {name} WHERE id < 50",
        f"DELETE FROM {name} WHERE name = 'new3' OR id > 440",
        f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE id % 5 > 0",
    ):
        spark.sql(change)
        lookup.wait_for(name)
        check()
    status = lookup.status(name)
    assert status.served_snapshot is not None
    state = CacheDirectory(Path(status.directory)).version(status.served_snapshot)
    assert state is not None
    assert state.storage == way.get("lookup.cache", "memory")


@pytest.mark.long
def test_several_rows_of_a_key(spark: SparkSession, table: MakeName, way: dict[str, str]) -> None:
    stream = spark.range(-2, 9).selectExpr("id AS g", "id AS mine").union(spark.sql("SELECT null, -1"))
    for kind, properties in (("none", "'bucket'='-1'"), ("index", KEYED)):
        name = table(kind)
        create(spark, name, properties)
        rows(spark, 0, 60).writeTo(name).append()
        for how in ("left", "inner"):
            joined = lookup_join(stream, name, on="g", select=NAMES[4:], how=how, options=way)
            assert asks_in_jvm(joined) == ("lookup.in-jvm" not in way)
            same(joined, stream.join(spark.table(name), "g", how).select(*joined.columns))
        rows(spark, 40, 80).withColumn("g", spark.sql("SELECT 3L AS g").scalar()).writeTo(name).append()
        spark.sql(f"DELETE FROM {name} WHERE id < 10")
        lookup.wait_for(name)
        same(joined, stream.join(spark.table(name), "g", how).select(*joined.columns))


@pytest.mark.long
def test_what_workers_do_better_is_left_to_them(
    spark: SparkSession, table: MakeName, options: dict[str, str]
) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, at TIMESTAMP, tags ARRAY<STRING>, v STRING) "
        "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, timestamp_micros(1), array('a'), 'x')")

    def in_jvm(*select: str, **given: str) -> bool:
        more = {key.replace("_", "-").replace("lookup-", "lookup."): value for key, value in given.items()}
        joined = lookup_join(spark.range(3), name, on="id", select=list(select), options={**options, **more})
        assert joined.where("id = 1").collect()[0][-1] in ("x", ["a"])
        return asks_in_jvm(joined)

    assert in_jvm("at", "v")
    assert not in_jvm("tags")
    assert not in_jvm("v", lookup_cache="full")
    assert not in_jvm("v", lookup_memory_max_size="1 b")
    assert not in_jvm("v", lookup_retry_predicate="lookup_miss", lookup_fixed_delay="1 ms")
    assert not in_jvm("v", lookup_shuffle="true")
    assert not in_jvm("v", lookup_in_jvm="false")


def test_what_was_asked_is_counted(spark: SparkSession, table: MakeName, options: dict[str, str]) -> None:
    name = table("t")
    create(spark, name)
    rows(spark, 0, 100).writeTo(name).append()
    joined = lookup_join(spark.range(0, 400, 1, 3), name, on="id", select=["name"], options=options)
    assert asks_in_jvm(joined)
    for _ in range(2):
        joined.write.format("noop").mode("overwrite").save()
    deadline = time.monotonic() + 20
    while (batch := lookup.status(name).last_batch) is None or batch.rows < 400:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (batch.rows, batch.matched, batch.retried) == (400, 100, 0)
    assert 0 < batch.seconds < 60


@pytest.mark.long
def test_removed_states_are_let_go(spark: SparkSession, table: MakeName, options: dict[str, str]) -> None:
    name = table("t")
    create(spark, name)
    rows(spark, 0, 2000).writeTo(name).append()
    joined = lookup_join(spark.range(0, 3000, 1, 3), name, on="id", select=NAMES, options=options)
    jvm: Any = spark._jvm
    maps = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/maps")

    def held() -> set[str]:
        lines = [line for line in maps.read_text().splitlines() if options["lookup.cache-dir"] in line]
        return {line.split(" ", 5)[5].strip() for line in lines if "(deleted)" in line}

    assert joined.where("whole = -1").count() > 0
    most = 0
    for round_ in range(5):
        spark.sql(f"UPDATE {name} SET name = 'round {round_}', whole = {round_}")
        lookup.wait_for(name)
        counted = {row.whole: row["count"] for row in joined.groupBy("whole").count().collect()}
        assert counted == {round_: 2000, None: 1000}
        most = max(most, len(held()))
    # Those of one or two states, which the next batch's tasks close.
    assert most <= 12
    assert any(options["lookup.cache-dir"] in line for line in maps.read_text().splitlines())


# --- the function by itself --------------------------------------------------------------------------


LAYOUT = CacheLayout(
    CacheStructure.PRIMARY_KEY,
    pa.schema([("id", pa.int64())]),
    pa.schema([("v", pa.string())]),
    None,
    ("v",),
    ("id", "v"),
)


def ask(spark: SparkSession, place: Path, pin: int, wait_seconds: float = 0.2) -> list[Any]:
    answer = StructType([StructField("v", StringType())])
    asking = jvm_function(
        spark, "lake", str(place), LAYOUT, [LongType()], answer, wait_seconds, everywhere=False
    )
    with asking as function:
        asked = spark.range(3).select(function(lit(pin).cast("long"), lit(0).cast("long"), col("id")))
    return [row[0] for row in asked.collect()]


def test_a_state_that_never_comes_is_an_error_and_none_has_no_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "wanted").mkdir()
    assert ask(spark, tmp_path, 0) == [None, None, None]
    with pytest.raises(PySparkException, match=r"no owner builds the lookup cache .*snapshot 7 never comes"):
        ask(spark, tmp_path, 7)
    assert (tmp_path / "wanted" / "7").exists()  # an owner would have built it
    refusal = {"type": "SnapshotNotFoundError", "message": "snapshot 8 has expired"}
    (tmp_path / "wanted" / "8.error").write_text(json.dumps(refusal))
    with pytest.raises(PySparkException, match="SnapshotNotFoundError: snapshot 8 has expired"):
        ask(spark, tmp_path, 8, wait_seconds=30)
    assert not (tmp_path / "wanted" / "8.error").exists()


@pytest.mark.parametrize(
    ("layers", "storage", "error"),
    [
        (None, "memory", "does not hold snapshot 5"),
        ("{", "memory", "no owner builds the lookup cache"),
        ("{", "full", "no owner builds the lookup cache"),
    ],
)
def test_a_damaged_state_is_removed_for_its_owner_to_build(
    spark: SparkSession, tmp_path: Path, layers: str | None, storage: str, error: str
) -> None:
    """However many tasks meet it at once; here is no owner."""
    cache = tmp_path / "cache"
    state = cache / "generations" / "5"
    cache.mkdir(mode=0o700)
    (state / "db").mkdir(parents=True)
    (state / "GENERATION.json").write_text(json.dumps({"fingerprint": "f", "storage": storage}))
    (cache / "LAYOUT.json").write_text(json.dumps({"cache_format": CACHE_FORMAT, "row_codec": ROW_CODEC}))
    if layers is not None:
        (state / "db" / "LAYERS.json").write_text(layers)
    with pytest.raises(PySparkException, match=error):
        ask(spark, cache, 5)
    assert state.exists() is (layers is None)
