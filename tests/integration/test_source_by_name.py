"""`format("lockgate")`: tables by their names and folders, as other sources of Spark are read and written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from governed_world import SEEN, World
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.functions import col, lit

if TYPE_CHECKING:
    from lockgate import Lake


def test_a_table_is_read_and_written_by_name_and_folder(lake: Lake, table: Callable[[str], str]) -> None:
    name, spark = table("t"), lake.spark
    _, database, _ = name.split(".")
    frame = spark.range(3).select("id", lit("new").alias("v"))
    frame.write.format("lockgate").saveAsTable(name)
    folder = lake.catalog.load_table(f"{database}.t").location
    for target in (name, folder, f"file:{folder}"):
        frame.write.format("lockgate").mode("append").save(target)
        found = spark.read.format("lockgate").load(target).where("id = 2")
        assert {tuple(row) for row in found.collect()} == {(2, "new")}
    assert spark.table(name).count() == 12
    old = spark.read.format("lockgate").option("versionAsOf", "1").load(name)
    assert old.count() == 3
    with pytest.raises(PySparkException, match="has no snapshot from that time"):
        spark.read.format("lockgate").option("timestampAsOf", "2001-01-01").load(name).collect()
    frame.where("id = 0").write.format("lockgate").mode("overwrite").save(name)
    assert [row.id for row in spark.read.format("lockgate").load(name).collect()] == [0]
    files = spark.read.format("lockgate").load(f"lake.{database}.`t$files`")
    assert [row.record_count for row in files.select("record_count").collect()] == [1]


def test_a_name_without_a_catalog_is_of_the_current_one(lake: Lake, table: Callable[[str], str]) -> None:
    name, catalog = table("t"), lake.spark.catalog.currentCatalog()
    lake.spark.range(2).writeTo(name).create()
    try:
        lake.spark.catalog.setCurrentCatalog("lake")
        assert lake.spark.read.format("lockgate").load(name.removeprefix("lake.")).count() == 2
    finally:
        lake.spark.catalog.setCurrentCatalog(catalog)


def test_a_table_is_made_unless_it_is_there(lake: Lake, table: Callable[[str], str]) -> None:
    name, frame = table("made"), lake.spark.range(2).withColumn("v", lit("x"))
    frame.write.format("lockgate").partitionBy("id").save(name)
    assert lake.catalog.load_table(name.removeprefix("lake.")).schema.partition_keys == ("id",)
    with pytest.raises(AnalysisException, match="already exists"):
        frame.write.format("lockgate").save(name)
    frame.write.format("lockgate").mode("ignore").save(name)
    assert lake.spark.table(name).count() == 2


def test_streams_read_and_write_it(lake: Lake, table: Callable[[str], str], tmp_path: Path) -> None:
    source, target, spark = table("source"), table("target"), lake.spark
    spark.range(4).writeTo(source).create()
    spark.range(0).writeTo(target).create()
    stream = spark.readStream.format("lockgate").load(source).where(col("id") > 1)
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    writer.format("lockgate").toTable(target).awaitTermination()
    assert sorted(row.id for row in spark.table(target).collect()) == [2, 3]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("t", "names no table of Lockgate's catalogs"),
        ("spark_catalog.default.t", "names no table of Lockgate's catalogs"),
        ("lake.db.", "is no name of a table"),
        ("/elsewhere/db.db/t", "is no folder of a table"),
        ("lake.nowhere.t", "there is no"),
    ],
)
def test_what_names_no_table_is_refused(lake: Lake, name: str, said: str) -> None:
    with pytest.raises(PySparkException, match=said):
        lake.spark.read.format("lockgate").load(name)


def test_a_path_says_nothing_of_another_table(lake: Lake, table: Callable[[str], str]) -> None:
    name, other = table("one"), table("other")
    for each in (name, other):
        lake.spark.range(1).writeTo(each).create()
    with pytest.raises(PySparkException, match="unknown read option 'path'"):
        lake.spark.read.option("path", other).table(name).collect()


def test_policies_hold(limited: World, people: str) -> None:
    session = limited.session("ann")
    found = session.read.format("lockgate").load(people).select("id", "ssn")
    assert sorted(map(tuple, found.collect())) == SEEN
    with pytest.raises(PySparkException, match=r"INSERT on table .* is denied"):
        session.range(1).write.format("lockgate").mode("append").save(people)
    stream = session.readStream.format("lockgate").load(people).writeStream.format("noop")
    query = stream.trigger(availableNow=True).start()
    with pytest.raises(PySparkException, match=r"SELECT on table .* is denied"):
        query.awaitTermination()
