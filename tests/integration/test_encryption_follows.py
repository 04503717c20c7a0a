"""Values of encrypted columns on their way elsewhere: warned of, refused, or encrypted there alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from plain_search import found_in
from spark_version import SPARK

import lockgate
from lockgate.errors import MaskedDataWarning, PlaintextWarning
from lockgate.framework.spark.bridge.dispatcher import dispatcher
from lockgate.framework.spark.operations.context import SESSION_CONF
from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("interpreted")

SECRET = "777-88-"
WRITERS: dict[str, Callable[[SparkSession, str, str], None]] = {
    "CTAS": lambda spark, source, target: sql(
        spark, f"CREATE TABLE {target} AS SELECT id, ssn FROM {source}"
    ),
    "RTAS": lambda spark, source, target: sql(
        spark,
        f"CREATE TABLE {target} (x INT)",
        f"REPLACE TABLE {target} AS SELECT id, ssn FROM {source}",
    ),
    "writeTo": lambda spark, source, target: spark.table(source).select("id", "ssn").writeTo(target).create(),
    "saveAsTable": lambda spark, source, target: (
        spark.table(source).select("id", "ssn").write.saveAsTable(target)
    ),
    "cached": lambda spark, source, target: (
        spark.table(source).select("id", "ssn").cache().writeTo(target).create()
    ),
    "expression": lambda spark, source, target: sql(
        spark, f"CREATE TABLE {target} AS SELECT id, concat(ssn, '!') AS ssn FROM {source}"
    ),
    "join and union": lambda spark, source, target: sql(
        spark,
        f"CREATE TABLE {target} AS SELECT a.id, b.ssn FROM {source} a JOIN {source} b ON a.id = b.id "
        f"UNION ALL SELECT 9, 'none'",
    ),
    "aggregate": lambda spark, source, target: sql(
        spark, f"CREATE TABLE {target} AS SELECT id, max(ssn) AS ssn FROM {source} GROUP BY id"
    ),
}


def sql(spark: SparkSession, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement).collect()


@pytest.fixture(scope="module")
def blind(lake: Lake, lake_folder: Path) -> Lake:
    """The same warehouse as a catalog without keys."""
    return lockgate.connect(str(lake_folder / "warehouse"), spark=lake.spark, catalog="blind")


@pytest.fixture
def people(spark: SparkSession, table: Named) -> str:
    name = table("people")
    spark.sql(
        f"CREATE TABLE {name} (id INT, ssn STRING, address STRUCT<zip: STRING, city: STRING>) TBLPROPERTIES "
        "('orc.encrypt' = 'pii:ssn,address.zip', 'orc.mask' = 'sha256:ssn', 'file.compression' = 'none')"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (1, '{SECRET}1', named_struct('zip', '{SECRET}z', 'city', 'Riga')), "
        f"(2, '{SECRET}2', NULL)"
    )
    return name


@pytest.fixture
def plain(spark: SparkSession, table: Named) -> str:
    name = table("plain")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING)")
    return name


def location(lake: Lake, name: str) -> Path:
    return Path(lake.catalog.load_table(name.removeprefix("lake.")).location)


@contextmanager
def session_choice(spark: SparkSession, choice: str) -> Iterator[None]:
    spark.conf.set(SESSION_CONF, choice)
    try:
        yield
    finally:
        spark.conf.unset(SESSION_CONF)


@pytest.mark.parametrize("road", WRITERS)
def test_a_table_that_a_statement_makes_encrypts_alike(
    lake: Lake, spark: SparkSession, people: str, table: Named, road: str
) -> None:
    copy = table("copy")
    WRITERS[road](spark, people, copy)
    spark.catalog.clearCache()
    made = lake.catalog.load_table(copy.removeprefix("lake."))
    assert made.schema.options["orc.encrypt"] == "pii:ssn"
    assert made.schema.options["orc.mask"] == "sha256:ssn"
    assert found_in(made.location, SECRET) == {}
    assert f"{SECRET}1" in str(spark.table(copy).collect())


def test_parts_of_structs(lake: Lake, spark: SparkSession, people: str, table: Named) -> None:
    copy = table("copy")
    spark.sql(f"CREATE TABLE {copy} AS SELECT id, address AS place, address.zip AS zip FROM {people}")
    made = lake.catalog.load_table(copy.removeprefix("lake."))
    assert made.schema.options["orc.encrypt"] == "pii:place.zip;pii:zip"
    assert found_in(made.location, SECRET) == {}


def test_what_tells_nothing_is_free(lake: Lake, spark: SparkSession, people: str, table: Named) -> None:
    copy = table("copy")
    spark.sql(
        f"CREATE TABLE {copy} AS SELECT count(ssn) AS n, max(sha2(ssn, 256)) AS h, "
        f"max(ssn IS NULL) AS b FROM {people}"
    )
    assert "orc.encrypt" not in lake.catalog.load_table(copy.removeprefix("lake.")).schema.options


def test_windows_order_by_a_value_or_answer_it(
    lake: Lake, spark: SparkSession, people: str, table: Named
) -> None:
    ranks, firsts = table("ranks"), table("firsts")
    spark.sql(f"CREATE TABLE {ranks} AS SELECT id, row_number() OVER (ORDER BY ssn) AS n FROM {people}")
    spark.sql(
        f"CREATE TABLE {firsts} AS "
        f"SELECT id, first(ssn) OVER (PARTITION BY id ORDER BY id) AS s FROM {people}"
    )
    options = [lake.catalog.load_table(name.removeprefix("lake.")).schema.options for name in (ranks, firsts)]
    assert [each.get("orc.encrypt") for each in options] == [None, "pii:s"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {plain} SELECT id, ssn FROM {people}",
        "INSERT OVERWRITE {plain} SELECT id, lower(ssn) FROM {people}",
        "MERGE INTO {plain} p USING {people} q ON p.id = q.id WHEN NOT MATCHED THEN "
        "INSERT (id, ssn) VALUES (q.id, q.ssn)",
        "MERGE INTO {plain} p USING {people} q ON p.id = q.id "
        "WHEN MATCHED THEN UPDATE SET ssn = upper(q.ssn) WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_a_table_that_is_there(
    lake: Lake, spark: SparkSession, people: str, plain: str, statement: str
) -> None:
    text = statement.format(plain=plain, people=people)
    told = r"plain gets values of encrypted columns in the clear: ssn \(from ssn of .*\.people\): .*'pii:ssn'"
    with session_choice(spark, "refuse"), pytest.raises(Exception, match=told):
        spark.sql(text)
    assert spark.table(plain).count() == 0
    with pytest.warns(PlaintextWarning, match=told):
        spark.sql(text)
    spark.sql(f"ALTER TABLE {plain} SET TBLPROPERTIES ('orc.encrypt' = 'other:ssn')")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spark.sql(text)


@pytest.mark.parametrize("key", ["", ", 'primary-key' = 'id', 'bucket' = '1'"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET note = concat('was ', ssn) WHERE id = 1",
        "MERGE INTO {t} t USING {people} p ON t.id = p.id WHEN MATCHED THEN UPDATE SET note = p.ssn",
    ],
    ids=["UPDATE", "MERGE"],
)
def test_changed_rows(
    lake: Lake, spark: SparkSession, people: str, table: Named, key: str, statement: str
) -> None:
    name = table("changed")
    spark.sql(
        f"CREATE TABLE {name} (id INT, ssn STRING, note STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn', "
        f"'file.compression' = 'none'{key})"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, '{SECRET}1', 'a'), (2, '{SECRET}2', 'b')")
    text = statement.format(t=name, people=people)
    with warnings.catch_warnings():  # what stays encrypted, or is only compared, is no road
        warnings.simplefilter("error")
        spark.sql(f"UPDATE {name} SET ssn = upper(ssn) WHERE id = 1")
        spark.sql(f"DELETE FROM {name} WHERE ssn IN (SELECT concat(ssn, '!') FROM {people})")
    with (
        session_choice(spark, "refuse"),
        pytest.raises(Exception, match=r"changed gets .* note \(from ssn of"),
    ):
        spark.sql(text)
    assert found_in(location(lake, name), SECRET) == {}
    with pytest.warns(PlaintextWarning, match=r"changed gets .* note \(from ssn of .*'pii:note'"):
        spark.sql(text)
    assert found_in(location(lake, name), SECRET)


def test_what_changed_rows_left_in_the_clear_is_removed(
    lake: Lake, spark: SparkSession, plain: str, people: str
) -> None:
    with pytest.warns(PlaintextWarning):
        spark.sql(
            f"MERGE INTO {plain} p USING {people} q ON p.id = q.id "
            "WHEN NOT MATCHED THEN INSERT (id, ssn) VALUES (q.id, q.ssn)"
        )
    spark.sql(f"UPDATE {plain} SET ssn = concat(ssn, '!') WHERE id = 1")
    assert found_in(location(lake, plain), SECRET)
    spark.sql(f"ALTER TABLE {plain} SET TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    spark.sql(f"CALL lake.sys.expire_plaintext(table => '{plain.removeprefix('lake.')}')").collect()
    assert found_in(location(lake, plain), SECRET) == {}
    assert sorted(row.ssn for row in spark.table(plain).collect()) == [f"{SECRET}1!", f"{SECRET}2"]


def test_the_option_of_the_table_goes_first(spark: SparkSession, people: str, table: Named) -> None:
    copy = table("copy")
    with session_choice(spark, "warn"), pytest.raises(Exception, match="refused by"):
        spark.sql(
            f"CREATE TABLE {copy} TBLPROPERTIES ('encryption.on-plaintext' = 'refuse') "
            f"AS SELECT ssn FROM {people}"
        )
    assert not spark.catalog.tableExists(copy)
    with session_choice(spark, "warn"), pytest.warns(PlaintextWarning, match="ssn"):
        spark.sql(f"CREATE TABLE {copy} AS SELECT ssn FROM {people}")


@pytest.mark.parametrize("form", ["parquet", "csv", "orc"])
def test_files_without_a_table(spark: SparkSession, people: str, tmp_path: Path, form: str) -> None:
    values = spark.table(people).select("id", "ssn")
    with session_choice(spark, "refuse"), pytest.raises(Exception, match=r"out.* gets values .*ssn of"):
        values.write.format(form).save(str(tmp_path / "out"))
    with pytest.warns(PlaintextWarning, match="write them to a table with 'orc.encrypt'"):
        values.write.format(form).mode("overwrite").save(str(tmp_path / "out"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values.select("id").write.format(form).mode("overwrite").save(str(tmp_path / "out"))


def test_files_that_are_encrypted(spark: SparkSession, people: str, key_file: Path, tmp_path: Path) -> None:
    scope = dispatcher().scopes.register(dispatcher().scopes.of_spec(f"file:{key_file}"))
    keys = {"orc.key.provider": f"lockgate:{scope}", "orc.encrypt": "pii:ssn"}
    writer = spark.table(people).selectExpr("id", "upper(ssn) AS ssn").write.options(**keys)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer.orc(str(tmp_path / "out"))
    assert found_in(str(tmp_path / "out"), SECRET) == {}


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


def test_added_again_after_a_drop(lake: Lake, spark: SparkSession, people: str) -> None:
    spark.sql(f"ALTER TABLE {people} DROP COLUMN ssn")
    add = f"ALTER TABLE {people} ADD COLUMN ssn STRING"
    with session_choice(spark, "refuse"), pytest.raises(Exception, match="once had a column 'ssn'"):
        spark.sql(add)
    with pytest.warns(PlaintextWarning, match="the new one of that name is in the clear"):
        spark.sql(add)
    spark.sql(f"ALTER TABLE {people} DROP COLUMN ssn")
    with session_choice(spark, "inherit"):
        # The last one of that name was in the clear, and that was said.
        spark.sql(add)


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
def test_lookups(
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


def test_other_databases(spark: SparkSession, people: str) -> None:
    values = (
        spark.table(people)
        .selectExpr("id", "upper(ssn) AS ssn")
        .write.format("jdbc")
        .options(url="jdbc:derby:memory:follows;create=true", driver="org.apache.derby.jdbc.EmbeddedDriver")
    )
    with session_choice(spark, "refuse"), pytest.raises(Exception, match=r"Jdbc.* gets values .*ssn of"):
        values.option("dbtable", "people").save()
    with pytest.warns(PlaintextWarning, match="Jdbc"):
        values.option("dbtable", "people").save()


def test_masks_flow(lake: Lake, blind: Lake, spark: SparkSession, people: str, table: Named) -> None:
    name, copy = people.removeprefix("lake."), table("copy")
    with pytest.warns(MaskedDataWarning):
        blind.table(name).select("id", "ssn").writeTo(copy).create()
    assert "orc.encrypt" not in lake.catalog.load_table(copy.removeprefix("lake.")).schema.options
    assert found_in(location(lake, copy), SECRET) == {}
