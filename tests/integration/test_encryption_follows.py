"""Values of encrypted columns on their way elsewhere: warned of, refused, or encrypted there alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from encrypted_people import SECRET, location, make_people, session_choice
from plain_search import found_in

import lockgate
from lockgate.errors import MaskedDataWarning, PlaintextWarning
from lockgate.framework.spark.bridge.dispatcher import dispatcher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake


Named = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("interpreted")
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
    return make_people(spark, table("people"))


@pytest.fixture
def plain(spark: SparkSession, table: Named) -> str:
    name = table("plain")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING)")
    return name


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


REPLACERS: dict[str, Callable[[SparkSession, str], None]] = {
    "RTAS": lambda spark, name: sql(
        spark, f"CREATE OR REPLACE TABLE {name} AS SELECT 1 AS id, '{SECRET}9' AS ssn"
    ),
    "REPLACE": lambda spark, name: sql(
        spark,
        f"REPLACE TABLE {name} (id INT, ssn STRING)",
        f"INSERT INTO {name} VALUES (1, '{SECRET}9')",
    ),
    "createOrReplace": lambda spark, name: fresh(spark).writeTo(name).createOrReplace(),
    "saveAsTable": lambda spark, name: fresh(spark).write.mode("overwrite").saveAsTable(name),
}


def fresh(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, f"{SECRET}9")], "id INT, ssn STRING")


@pytest.mark.parametrize("road", REPLACERS)
def test_a_replaced_table_encrypts_its_columns_as_before(
    lake: Lake, spark: SparkSession, table: Named, road: str
) -> None:
    """Also values that come from no encrypted column."""
    name = table("reloaded")
    spark.sql(
        f"CREATE TABLE {name} (id INT, ssn STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2', "
        "'orc.encrypt' = 'pii:ssn', 'orc.mask' = 'sha256:ssn', 'file.compression' = 'none')"
    )
    REPLACERS[road](spark, name)
    schema = lake.catalog.load_table(name.removeprefix("lake.")).schema
    assert (schema.options["orc.encrypt"], schema.options["orc.mask"]) == ("pii:ssn", "sha256:ssn")
    keeps = road == "saveAsTable"
    assert (schema.primary_keys, schema.bucket_count) == ((("id",), 2) if keeps else ((), -1))
    assert found_in(location(lake, name), SECRET) == {}
    assert [row.ssn for row in spark.table(name).collect()] == [f"{SECRET}9"]


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
