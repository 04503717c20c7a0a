"""Values of encrypted columns in streams, with and without lookups: warned of, or encrypted there alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from encrypted_people import SECRET, location, make_people, session_choice
from plain_search import found_in
from spark_version import SPARK

from lockgate.errors import PlaintextWarning
from lockgate.framework.spark.bridge.dispatcher import dispatcher
from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake


Named = Callable[[str], str]
pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture
def people(spark: SparkSession, table: Named) -> str:
    return make_people(spark, table("people"))


@pytest.fixture
def plain(spark: SparkSession, table: Named) -> str:
    name = table("plain")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING)")
    return name


def test_a_stream_makes_an_encrypted_table_and_warns_once(
    lake: Lake, spark: SparkSession, people: str, plain: str, table: Named, tmp_path: Path
) -> None:
    spark.range(1, 3).repartition(2).write.option("maxRecordsPerFile", 1).parquet(str(tmp_path / "ids"))
    reader = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
    ids = reader.parquet(str(tmp_path / "ids"))
    joined = ids.join(spark.table(people).select("id", "ssn"), "id").selectExpr(
        "CAST(id AS INT) AS id", "ssn"
    )

    def run(target: str, checkpoint: str) -> None:
        writer = joined.writeStream.option("checkpointLocation", str(tmp_path / checkpoint))
        writer.trigger(availableNow=True).toTable(target).awaitTermination()

    copy = table("copy")
    run(copy, "one")
    assert spark.table(copy).count() == 2
    assert found_in(location(lake, copy), SECRET) == {}
    with pytest.warns(PlaintextWarning) as seen:
        run(plain, "two")
    assert len([each for each in seen if each.category is PlaintextWarning]) == 1
    assert spark.table(plain).count() == 2


LOOKUPS = {
    "workers": {"lookup.strategy": "lookup"},
    "shuffle": {"lookup.strategy": "lookup", "lookup.shuffle": "true"},
    "spark": {"lookup.strategy": "spark"},
}


@pytest.fixture
def buckets(spark: SparkSession, table: Named) -> str:
    name = table("dimension")
    spark.sql(
        f"CREATE TABLE {name} (id INT, ssn STRING, city STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn', "
        "'primary-key' = 'id', 'bucket' = '2', 'file.compression' = 'none')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, '{SECRET}1', 'Riga'), (2, '{SECRET}2', 'Oslo')")
    return name


def stream_of_ids(spark: SparkSession, folder: Path) -> DataFrame:
    """Two micro-batches of one id each."""
    spark.range(1, 3).repartition(2).write.option("maxRecordsPerFile", 1).parquet(str(folder))
    reader = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder)).selectExpr("CAST(id AS INT) AS id")


@pytest.mark.usefixtures("lookups_end")
@pytest.mark.parametrize(
    "form", ["spark", *(pytest.param(form, marks=pytest.mark.long) for form in ("workers", "shuffle"))]
)
def test_a_stream_with_a_lookup_makes_an_encrypted_table(
    lake: Lake, spark: SparkSession, buckets: str, table: Named, tmp_path: Path, form: str
) -> None:
    options = {"lookup.cache-dir": str(tmp_path / "cache"), **LOOKUPS[form]}
    select = {"number": "ssn", "city": "city"}
    ids = stream_of_ids(spark, tmp_path / "ids")
    joined = lookup_join(ids, buckets, on="id", select=select, options=options)
    copy = table("copy")
    writer = joined.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).toTable(copy).awaitTermination()
    made = lake.catalog.load_table(copy.removeprefix("lake."))
    assert made.schema.options["orc.encrypt"] == "pii:number"
    assert found_in(made.location, SECRET) == {}
    assert sorted(row.number for row in spark.table(copy).collect()) == [f"{SECRET}1", f"{SECRET}2"]


@pytest.mark.usefixtures("lookups_end")
def test_what_a_lookup_answers_is_not_its_key(
    lake: Lake, spark: SparkSession, people: str, table: Named, tmp_path: Path
) -> None:
    cities = table("cities")
    spark.sql(f"CREATE TABLE {cities} AS SELECT 'x' AS code, 'Riga' AS city")
    options = {"lookup.cache-dir": str(tmp_path / "cache"), "lookup.strategy": "lookup"}
    for in_jvm in ("true", "false"):
        given = {**options, "lookup.in-jvm": in_jvm}
        joined = lookup_join(spark.table(people), cities, on={"ssn": "code"}, options=given)
        copy = table(f"copy_{in_jvm}")
        joined.select("id", "city").writeTo(copy).create()
        assert "orc.encrypt" not in lake.catalog.load_table(copy.removeprefix("lake.")).schema.options


FORMS = {
    "in SQL": {},
    "in Python": {"lookup.strategy": "lookup", "lookup.in-jvm": "false"},
    "in the JVM": {"lookup.strategy": "lookup", "lookup.in-jvm": "true"},
    "by Spark": {"lookup.strategy": "spark"},
}


@pytest.mark.usefixtures("lookups_end")
@pytest.mark.parametrize("form", FORMS)
def test_what_is_computed_from_a_lookup(
    lake: Lake, spark: SparkSession, people: str, plain: str, tmp_path: Path, form: str
) -> None:
    """Only the expression is wanted, so Spark forgets the column, and what is said of it."""
    options = {"lookup.cache-dir": str(tmp_path / "cache"), **FORMS[form]}
    orders = spark.range(1, 3).selectExpr("CAST(id AS INT) AS id")

    def write() -> None:
        if form == "in SQL":
            orders.createOrReplaceTempView("orders_of_secrets")
            hints = ", ".join(f"'{key}'='{value}'" for key, value in options.items())
            dimension = f"{people} /*+ OPTIONS({hints}) */ FOR SYSTEM_TIME AS OF PROCTIME() AS d"
            query = f"SELECT o.id, upper(d.ssn) FROM orders_of_secrets o JOIN {dimension} ON o.id = d.id"
            spark.sql(f"INSERT INTO {plain} {query}")
        else:
            joined = lookup_join(orders, people, on="id", select=["ssn"], options=options)
            joined.selectExpr("id", "upper(ssn) AS ssn").writeTo(plain).append()

    with session_choice(spark, "refuse"), pytest.raises(Exception, match="refused by"):
        write()
    assert spark.table(plain).count() == 0
    with pytest.warns(PlaintextWarning, match="plain gets values of encrypted columns in the clear: ssn"):
        write()


@pytest.mark.parametrize("value", ["ssn", pytest.param("concat(ssn, '!') AS ssn", marks=pytest.mark.long)])
def test_batches_given_to_a_function(
    spark: SparkSession, people: str, plain: str, tmp_path: Path, value: str
) -> None:
    ids = stream_of_ids(spark, tmp_path / "ids")
    joined = ids.join(spark.table(people), "id").selectExpr("id", value)

    def run(checkpoint: str) -> None:
        writer = joined.writeStream.option("checkpointLocation", str(tmp_path / checkpoint))
        writer = writer.foreachBatch(lambda rows, _: rows.select("id", "ssn").writeTo(plain).append())
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.warns(PlaintextWarning, match="plain gets values") as seen:
        run("one")
    assert len([each for each in seen if each.category is PlaintextWarning]) == 1
    with session_choice(spark, "refuse"), pytest.raises(Exception, match="refused by"):
        run("two")
    assert spark.table(plain).count() == 2


def test_streams_into_files(spark: SparkSession, people: str, tmp_path: Path) -> None:
    joined = stream_of_ids(spark, tmp_path / "ids").join(spark.table(people).select("id", "ssn"), "id")

    def run(target: str) -> None:
        writer = joined.writeStream.option("checkpointLocation", str(tmp_path / f"{target}_checkpoint"))
        started = writer.trigger(availableNow=True).format("parquet").start(str(tmp_path / target))
        started.awaitTermination()

    with pytest.warns(PlaintextWarning, match=r"one.* gets values .*ssn of") as seen:
        run("one")
    assert len([each for each in seen if each.category is PlaintextWarning]) == 1
    with session_choice(spark, "refuse"), pytest.raises(Exception, match="refused by"):
        run("two")


@pytest.mark.parametrize("sink", ["console", "memory", "noop"])
def test_streams_into_sinks_without_a_table(
    spark: SparkSession, people: str, tmp_path: Path, sink: str
) -> None:
    joined = stream_of_ids(spark, tmp_path / "ids").join(spark.table(people).select("id", "ssn"), "id")

    def run(name: str) -> None:
        writer = joined.writeStream.option("checkpointLocation", str(tmp_path / name)).queryName(name)
        writer.trigger(availableNow=True).format(sink).start().awaitTermination()

    if sink != "console":  # nothing is kept
        with session_choice(spark, "refuse"):
            run("kept_nowhere")
        return
    with pytest.warns(PlaintextWarning, match=r"console gets values .*ssn of") as seen:
        run("one")
    assert len([each for each in seen if each.category is PlaintextWarning]) == 1
    with session_choice(spark, "refuse"), pytest.raises(Exception, match="refused by"):
        run("two")


@pytest.mark.parametrize(("form", "encrypt"), [("orc", "pii:ssn"), ("orc", "pii:id"), ("parquet", "pii:ssn")])
def test_streams_into_files_that_are_encrypted(
    spark: SparkSession, people: str, key_file: Path, tmp_path: Path, form: str, encrypt: str
) -> None:
    joined = stream_of_ids(spark, tmp_path / "ids").join(spark.table(people).select("id", "ssn"), "id")
    scope = dispatcher().scopes.register(dispatcher().scopes.of_spec(f"file:{key_file}"))
    keys = {"orc.key.provider": f"lockgate:{scope}", "orc.encrypt": encrypt}

    def run() -> None:
        writer = joined.writeStream.options(**keys).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).format(form).start(str(tmp_path / "out")).awaitTermination()

    with session_choice(spark, "refuse"):
        # In older versions tasks of a stream do not see its sink's options, and write plaintext.
        if (form, encrypt) != ("orc", "pii:ssn") or SPARK < (4, 3):
            with pytest.raises(Exception, match="refused by"):
                run()
            return
        run()
    assert found_in(str(tmp_path / "out"), SECRET) == {}
