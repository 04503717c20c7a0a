"""lookup_join against Spark's own join, in batch and in streams, with the table changing concurrently."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from flight_tables import flights, planes
from lookup_ways import BOTH_WAYS
from same_frames import same

from lockgate import lookup
from lockgate.errors import (
    ColumnNotFoundError,
    InputError,
    MaskedDataWarning,
    NamespaceNotFoundError,
    NotFoundError,
    OptionError,
    TableNotFoundError,
)
from lockgate.lookup import lookup_join
from lockgate.lookup.driver import service
from lockgate.pushdown import col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


MakeName = Callable[[str], str]
Join = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("lookups_end")


@pytest.mark.usefixtures("generated")
@BOTH_WAYS
def test_left_and_inner_by_primary_key(
    spark: SparkSession, table: MakeName, options: dict[str, str], lookup_join: Join
) -> None:
    name = table("planes")
    planes(spark, name)
    stream = flights(spark)
    for how in ("left", "inner"):
        joined = lookup_join(stream, name, on="tailnum", how=how, options=options)
        same(joined, stream.join(spark.table(name), "tailnum", how).select(*joined.columns))


def test_owners_end_soon_after_batch_queries(
    spark: SparkSession, table: MakeName, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[bool] = []
    note_use = service.Lookup.note_use

    def note(self: service.Lookup, runs: Callable[[], bool] | None) -> None:
        assert runs is not None
        noted.append(runs())
        note_use(self, runs)

    monkeypatch.setattr(service.Lookup, "note_use", note)
    monkeypatch.setattr(service, "_BATCH_SECONDS", 0.0)
    name = table("planes")
    planes(spark, name)
    for year in range(3):
        joined = lookup_join(
            flights(spark), name, "tailnum", where=col("year") > 1990 + year, options=options
        )
        assert len(joined.collect()) == 1000
    assert noted == [True] * 3, "each is asked for while its query runs"
    deadline = time.monotonic() + 60
    while lookup.statuses():
        assert time.monotonic() < deadline, "an owner runs on"
        time.sleep(0.05)


@pytest.mark.parametrize("cached", ["partial", "encrypted"])
def test_owners_that_answer_rest_soon_after_batch_queries(
    spark: SparkSession,
    table: MakeName,
    options: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    cached: str,
) -> None:
    monkeypatch.setattr(service, "_BATCH_SECONDS", 0.5)
    name, given = table("people"), dict(options)
    more = ", 'orc.encrypt'='pii:ssn'" if cached == "encrypted" else ""
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1'{more})"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, concat('ssn-', id) FROM range(20)")
    if cached == "partial":
        given["lookup.cache"] = "partial"

    def joined() -> Any:
        return lookup_join(spark.range(3), name, on="id", options=given).orderBy("id")

    def await_rest() -> None:
        deadline = time.monotonic() + 60
        while lookup.statuses()[0].owner_pid is not None:
            assert time.monotonic() < deadline, "the owner runs on"
            time.sleep(0.05)

    kept = joined()
    for _ in range(2):  # the plan of a kept query asks no driver, and its tasks call for the owner
        assert [row.ssn for row in kept.collect()] == ["ssn-0", "ssn-1", "ssn-2"]
        await_rest()
    spark.sql(f"UPDATE {name} SET ssn = 'new' WHERE id = 1")
    assert [row.ssn for row in joined().collect()] == ["ssn-0", "new", "ssn-2"]
    await_rest()


def test_chosen_and_renamed_columns_and_the_snapshot(
    spark: SparkSession, lake: Lake, table: MakeName, options: dict[str, str]
) -> None:
    name = table("planes")
    planes(spark, name)
    stream = flights(spark).withColumnRenamed("tailnum", "plane")
    joined = lake.lookup_join(  # type: ignore[attr-defined]  # a method that a plugin adds
        stream,
        name,
        on={"plane": "tailnum"},
        select={"built": "year", "kind": "model"},
        snapshot_column="planes_snapshot",
        options=options,
    )
    assert joined.columns == ["flight", "plane", "gate", "built", "kind", "planes_snapshot"]
    dim = spark.table(name).selectExpr("tailnum AS plane", "year AS built", "model AS kind")
    plain = stream.join(dim, "plane", "left").selectExpr(*joined.columns[:5], "1L AS planes_snapshot")
    same(joined, plain)


@pytest.mark.long
@BOTH_WAYS
def test_several_matches_without_and_with_a_primary_key(
    spark: SparkSession,
    table: MakeName,
    options: dict[str, str],
    lookup_join: Join,
) -> None:
    weather, pk = table("weather"), table("by_id")
    spark.sql(f"CREATE TABLE {weather} (origin STRING, hour INT, temp DOUBLE, note STRING)")
    spark.sql(
        f"INSERT INTO {weather} SELECT if(id % 9 = 0, null, concat('O', id % 3)), cast(id % 12 AS INT), "
        "id / 3, if(id % 4 = 0, null, concat('note ', id)) FROM range(60)"
    )
    spark.sql(
        f"CREATE TABLE {pk} (id BIGINT, origin STRING, hour INT, temp DOUBLE, note STRING) "
        "TBLPROPERTIES ('primary-key'='id', 'bucket'='1')"
    )
    spark.sql(f"INSERT INTO {pk} SELECT row_number() OVER (ORDER BY temp), * FROM {weather}")
    stream = spark.sql(
        "SELECT id AS flight, if(id % 7 = 0, null, concat('O', id % 4)) AS origin, "
        "cast(id % 14 AS TINYINT) AS hour FROM range(200)"
    )
    for name in (weather, pk):
        for how in ("left", "inner"):
            joined = lookup_join(
                stream, name, on=["origin", "hour"], how=how, select=["note", "temp"], options=options
            )
            plain = stream.join(spark.table(name), ["origin", "hour"], how).select(*joined.columns)
            same(joined, plain)


TYPED = {
    "BOOLEAN": "id % 2 = 0",
    "TINYINT": "cast(id AS TINYINT)",
    "SMALLINT": "cast(id AS SMALLINT)",
    "INT": "cast(id AS INT)",
    "BIGINT": "id",
    "FLOAT": "cast(id / 4 AS FLOAT)",
    "DOUBLE": "id / 3",
    "DECIMAL(9,2)": "cast(id / 8 AS DECIMAL(9,2))",
    "DECIMAL(30,3)": "cast(id / 8 AS DECIMAL(30,3))",
    "STRING": "concat('é', id)",
    "BINARY": "cast(concat('b', id) AS BINARY)",
    "DATE": "date_add(DATE'1960-01-01', cast(id AS INT) * 500)",
    "TIMESTAMP": "timestamp_micros(id * 1234567891234)",
    "TIMESTAMP_NTZ": "cast(timestamp_micros(id * 1234567891234) AS TIMESTAMP_NTZ)",
}


@pytest.mark.long
@pytest.mark.usefixtures("generated")
@BOTH_WAYS
def test_values_of_every_flat_type(
    spark: SparkSession, table: MakeName, options: dict[str, str], lookup_join: Join
) -> None:
    name = table("typed")
    columns = [(f"c{n}", kind, expression) for n, (kind, expression) in enumerate(TYPED.items())]
    described = ", ".join(f"{column} {kind}" for column, kind, _ in columns)
    made = ", ".join(f"if(id % 10 = {n}, null, {e}) AS {c}" for n, (c, _, e) in enumerate(columns))
    spark.sql(f"CREATE TABLE {name} (id BIGINT, {described}) TBLPROPERTIES ('primary-key'='id','bucket'='1')")
    spark.sql(f"INSERT INTO {name} SELECT id, {made} FROM range(40)")
    source = spark.sql("SELECT id, cast(id % 3 AS INT) AS x FROM range(0, 60, 2)")
    joined = lookup_join(source, name, on="id", options=options)
    same(joined, source.join(spark.table(name), "id", "left").select(*joined.columns))
    # By keys of every type together: test_lookup_values.
    for column, kind, expression in columns:
        if kind not in ("BOOLEAN", "DOUBLE"):
            continue
        stream = spark.sql(f"SELECT {expression} AS {column} FROM range(0, 60, 3)")
        by_value = lookup_join(stream, name, on=column, how="inner", select=["id"], options=options)
        plain = stream.join(spark.table(name), column).select(column, "id")
        same(by_value, plain)


@BOTH_WAYS
def test_session_time_zones_do_not_move_timestamps(
    spark: SparkSession,
    table: MakeName,
    options: dict[str, str],
    lookup_join: Join,
) -> None:
    name = table("moments")
    spark.sql(
        f"CREATE TABLE {name} (k TIMESTAMP, t TIMESTAMP, n TIMESTAMP_NTZ) "
        "TBLPROPERTIES ('primary-key'='k', 'bucket'='1')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT timestamp_micros(id), timestamp_micros(id * 7), "
        "TIMESTAMP_NTZ'2024-03-10 02:30:00' FROM range(10)"
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for other in ("America/New_York", "Asia/Shanghai"):
            spark.conf.set("spark.sql.session.timeZone", other)
            stream = spark.sql("SELECT timestamp_micros(id) AS k FROM range(5, 15)")
            joined = lookup_join(stream, name, on="k", options=options)
            same(joined, stream.join(spark.table(name), "k", "left").select(*joined.columns))
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))


def test_a_condition_on_the_dimension(spark: SparkSession, table: MakeName, options: dict[str, str]) -> None:
    name = table("planes")
    planes(spark, name)
    stream = flights(spark)
    joined = lookup_join(
        stream, name, on="tailnum", select=["model"], where=col("seats") < 300, options=options
    )
    some = spark.table(name).where("seats < 300").select("tailnum", "model")
    same(joined, stream.join(some, "tailnum", "left").select(*joined.columns))


@BOTH_WAYS
def test_several_lookups_in_one_query(
    spark: SparkSession, table: MakeName, options: dict[str, str], lookup_join: Join
) -> None:
    first, second = table("planes"), table("gates")
    planes(spark, first)
    spark.sql(
        f"CREATE TABLE {second} (gate BIGINT, label STRING) TBLPROPERTIES ('primary-key'='gate','bucket'='1')"
    )
    spark.sql(f"INSERT INTO {second} SELECT id, concat('gate ', id) FROM range(4)")
    stream = flights(spark)
    joined = lookup_join(stream, first, on="tailnum", select=["model"], options=options)
    joined = lookup_join(joined, second, on="gate", how="inner", options=options)
    plain = stream.join(spark.table(first).select("tailnum", "model"), "tailnum", "left")
    plain = plain.join(spark.table(second), "gate").select(*joined.columns)
    same(joined, plain)
    same(
        joined.where("model is not null").groupBy("label").count(),
        plain.where("model is not null").groupBy("label").count(),
    )


@BOTH_WAYS
def test_a_dimension_without_rows(
    spark: SparkSession, table: MakeName, options: dict[str, str], lookup_join: Join
) -> None:
    name = table("nothing")
    spark.sql(f"CREATE TABLE {name} (k BIGINT, v STRING) TBLPROPERTIES ('primary-key'='k','bucket'='1')")
    stream = spark.range(5).withColumnRenamed("id", "k")
    assert [tuple(row) for row in lookup_join(stream, name, on="k", options=options).collect()] == [
        (n, None) for n in range(5)
    ]
    assert lookup_join(stream, name, on="k", how="inner", options=options).count() == 0


@BOTH_WAYS
def test_encrypted_dimensions_are_joined_decrypted_or_masked(
    spark: SparkSession,
    public: Lake,
    table: MakeName,
    options: dict[str, str],
    lookup_join: Join,
) -> None:
    name = table("people")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES "
        "('primary-key'='id', 'bucket'='1', 'orc.encrypt'='pii:ssn', 'orc.mask'='nullify:ssn')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, concat('ssn-', id) FROM range(20)")
    stream = spark.range(3)
    joined = lookup_join(stream, name, on="id", options=options)
    assert [row.ssn for row in joined.orderBy("id").collect()] == ["ssn-0", "ssn-1", "ssn-2"]
    with pytest.warns(MaskedDataWarning, match="ssn"):
        masked = lookup_join(stream, name.replace("lake.", "public.", 1), on="id", options=options)
    assert [row.ssn for row in masked.collect()] == [None, None, None]


# --- bad input -----------------------------------------------------------------------------------------


def test_bad_input_is_refused_when_the_join_is_written(
    spark: SparkSession, table: MakeName, options: dict[str, str]
) -> None:
    name = table("planes")
    planes(spark, name)
    stream = flights(spark)

    def refused(
        error: type[Exception], message: str, *, on: Any = "tailnum", dim: str = name, **more: Any
    ) -> None:
        with pytest.raises(error, match=message):
            lookup_join(stream, dim, on=on, **{"options": options, **more})

    refused(
        ColumnNotFoundError, "the stream has no column 'tailnumber'; did you mean 'tailnum'", on="tailnumber"
    )
    refused(ColumnNotFoundError, "no column 'tail'", on={"tailnum": "tail"})
    refused(ColumnNotFoundError, "did you mean 'seats'", select=["seat"])
    refused(
        InputError, r"has type smallint in the stream and STRING.* in the dimension", on={"gate": "tailnum"}
    )
    refused(InputError, r"has type bigint in the stream and INT", on={"flight": "year"})
    refused(InputError, r"has a column 'gate' already.*{'dim_seats': 'seats'}", select={"gate": "seats"})
    refused(InputError, r"has a column 'flight' already: .*snapshot_column=", snapshot_column="flight")
    refused(InputError, r"has a column 'Year' already: .*snapshot_column=", snapshot_column="Year")
    refused(InputError, r"column 'gate' \('tailnum' in the dimension\) has type", on={"gate": "tailnum"})
    refused(InputError, "options takes Mapping", options={"lookup.cache-dir": None})
    refused(InputError, "how= must be 'left' or 'inner', not 'right'", how="right")
    refused(InputError, "at least one column in on=", on=[])
    refused(InputError, r"select= takes a list of columns: \['model'\]", select="model")
    refused(OptionError, r"did you mean 'lookup\.cache-dir'", options={"lookup.cache-dri": "x"})
    refused(TableNotFoundError, r"did you mean '\w+\.planes'", dim=table("plane"))
    refused(NamespaceNotFoundError, "there is no database", dim="lake.nowhere.planes")
    refused(NotFoundError, "no catalog 'lakes'; did you mean 'lake'", dim="lakes.db.planes")
    refused(InputError, "is not a Lockgate catalog", dim="spark_catalog.db.planes")
    refused(InputError, r"named catalog\.database\.table", dim="planes")


def test_the_pin_table_alone_is_refused(spark: SparkSession, database: str, table: MakeName) -> None:
    name = table("planes")
    planes(spark, name)
    with pytest.raises(Exception, match="read by lookup joins only"):
        spark.table(f"lake.{database}.`planes$pin`").collect()


def test_a_plan_asks_for_its_snapshot_once_when_it_runs(
    spark: SparkSession, table: MakeName, options: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = table("planes")
    planes(spark, name)
    joined = lookup_join(
        flights(spark), name, on="tailnum", select=["model"], snapshot_column="s", options=options
    )
    joined.explain()
    assert "lockgate.lookup" in capsys.readouterr().out
    with pytest.raises(NotFoundError, match="no lookup on"):
        lookup.status(name)
    context = spark.sparkContext
    context.setJobGroup("pin", "")
    try:
        assert {row.s for row in joined.collect()} == {lookup.status(name).served_snapshot}
        # The snapshot comes with the plan, not by a job of its own.
        assert len(context.statusTracker().getJobIdsForGroup("pin")) == 1
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None takes it away


@BOTH_WAYS
def test_columns_are_found_without_regard_to_case(
    spark: SparkSession,
    table: MakeName,
    options: dict[str, str],
    lookup_join: Join,
) -> None:
    name = table("planes")
    planes(spark, name)
    stream = flights(spark).withColumnRenamed("tailnum", "TailNum")
    joined = lookup_join(stream, name, on={"tailnum": "tailnum"}, select=["model"], options=options)
    assert joined.columns == ["flight", "TailNum", "gate", "model"]
    assert joined.where("model is not null").count() > 100


@pytest.mark.parametrize("strategy", ["lookup", "spark"])
def test_names_are_found_as_spark_finds_them(
    spark: SparkSession, table: MakeName, options: dict[str, str], strategy: str
) -> None:
    name = table("dim")
    spark.sql(f"CREATE TABLE {name} (`k.1` INT, `Nam``e` STRING) TBLPROPERTIES ('primary-key'='k.1')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'one')")
    stream = spark.sql("SELECT 1 AS `i``d.x`, 2 AS snapshot_id")
    catalog, database, plain = name.split(".")
    joined = lookup_join(
        stream,
        f"{catalog}.`{database}`.`{plain}`",
        on={"I`d.x": "K.1"},
        select={"n`.m": "nam`e"},
        snapshot_column="s.n",
        options={**options, "lookup.strategy": strategy},
    )
    assert joined.columns == ["i`d.x", "snapshot_id", "n`.m", "s.n"]
    assert [tuple(row) for row in joined.collect()] == [(1, 2, "one", 1)]


@pytest.mark.long
@pytest.mark.usefixtures("generated")
@BOTH_WAYS
def test_many_rows_asked_for_by_many_rows(
    spark: SparkSession,
    table: MakeName,
    options: dict[str, str],
    lookup_join: Join,
) -> None:
    # Several times what one answer may take.
    dim = table("dim")
    spark.sql(f"CREATE TABLE {dim} (k INT, v STRING)")
    spark.sql(f"INSERT INTO {dim} SELECT 1, repeat('x', 1000) FROM range(1000)")
    stream = spark.range(300, numPartitions=1).selectExpr("cast(if(id % 100 = 0, 2, 1) as int) AS k", "id")
    joined = lookup_join(stream, dim, on="k", options=options)
    found = joined.selectExpr("count(*)", "count(v)", "sum(length(v))", "count(distinct id)").first()
    assert found is not None
    assert tuple(found) == (297 * 1000 + 3, 297 * 1000, 297 * 1000 * 1000, 300)
