"""What a statement declares of a table is done or refused, never passed over."""

from __future__ import annotations

import logging
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lockgate
from lockgate.errors import MaskedDataWarning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("CREATE TABLE {t} (id INT) USING parquet", "USING parquet is not possible in catalog 'lake'"),
        ("CREATE TABLE {t} USING orc AS SELECT 1 AS id", "USING orc is not possible"),
        ("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id", "USING delta is not possible"),
        ("CREATE EXTERNAL TABLE {t} (id INT)", "EXTERNAL"),
        ("CREATE TABLE {t} (id INT) LOCATION '/elsewhere'", "LOCATION is not possible"),
        ("CREATE TABLE {t} (id INT) OPTIONS ('path' = '/elsewhere')", "LOCATION is not possible"),
        (
            "CREATE TABLE {t} (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pi:ssn')",
            "names a key that does not exist.*did you mean 'pii'.*the keys there are: other, pii",
        ),
        (
            "CREATE TABLE {t} TBLPROPERTIES ('orc.encrypt' = 'hr:ssn') AS SELECT 'x' AS ssn",
            "names a key that does not exist",
        ),
    ],
)
def test_a_declaration_that_is_not_done_is_refused(
    lake: Lake, spark: SparkSession, table: Named, statement: str, complaint: str
) -> None:
    name = table("declared")
    with pytest.raises(Exception, match=f"(?s){complaint}"):
        spark.sql(statement.format(t=name))
    assert not lake.catalog.table_exists(name.removeprefix("lake."))


def test_writers_name_a_format_or_none(lake: Lake, spark: SparkSession, table: Named) -> None:
    rows = spark.range(2)
    for number, provider in enumerate(("lockgate", "paimon")):
        rows.writeTo(table(f"by_{number}")).using(provider).create()
        spark.sql(f"CREATE TABLE {table(f'sql_{number}')} (id INT) USING {provider}")
    rows.write.saveAsTable(table("default"))
    rows.write.mode("overwrite").saveAsTable(table("default"))
    assert spark.table(table("default")).count() == 2
    for refused in (
        lambda: rows.writeTo(table("x")).using("parquet").create(),
        lambda: rows.writeTo(table("x")).using("orc").createOrReplace(),
        lambda: rows.write.format("orc").saveAsTable(table("x")),
    ):
        with pytest.raises(Exception, match="is not possible in catalog 'lake'"):
            refused()
    assert not lake.catalog.table_exists(table("x").removeprefix("lake."))


def test_a_stream_that_makes_its_table_names_no_format(
    spark: SparkSession, table: Named, tmp_path: Path
) -> None:
    stream = spark.readStream.format("rate").load().limit(1)
    query = stream.writeStream.option("checkpointLocation", str(tmp_path)).toTable(table("streamed"))
    query.stop()
    assert spark.table(table("streamed")).columns == ["timestamp", "value"]


def test_a_key_that_does_not_exist_is_refused_by_alter(spark: SparkSession, table: Named) -> None:
    name = table("altered")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING)")
    with pytest.raises(Exception, match=r"(?s)names a key that does not exist.*known: other, pii"):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('orc.encrypt' = 'hr:ssn')")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")


def test_a_warehouse_that_is_not_there_is_made_and_said(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warehouse = tmp_path / "nope" / "lake"
    with caplog.at_level(logging.WARNING, "lockgate"):
        lake = lockgate.connect(warehouse, spark=spark, catalog=f"c{uuid.uuid4().hex}")
    assert f"there was no warehouse at {warehouse}: created an empty one" in caplog.messages
    assert warehouse.is_dir()
    assert [row[0] for row in lake.sql(f"SHOW DATABASES IN {lake.name}").collect()] == ["sys"]


def test_a_warning_points_at_the_line_of_the_query(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("masked")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    spark.sql(f"INSERT INTO {name} VALUES (1, '1')")
    warehouse = Path(lake.catalog.warehouse)
    public = lockgate.connect(warehouse, spark=spark, catalog=f"p{uuid.uuid4().hex}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        public.table(name.removeprefix("lake.")).collect()
    masks = [each for each in caught if each.category is MaskedDataWarning]
    assert {each.filename for each in masks} == {__file__}
    lines = Path(__file__).read_text().splitlines()
    assert {lines[each.lineno - 1].strip() for each in masks} == {
        'public.table(name.removeprefix("lake.")).collect()'
    }
