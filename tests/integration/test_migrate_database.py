"""`migrate_database` and `migrate_file` of tables of Spark's catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lockgate import Lake


@pytest.fixture
def origin(spark: SparkSession, database: str, tmp_path: Path) -> Iterator[str]:
    """A database of Spark's catalog with tables in three formats, one that is damaged, and a view."""
    name = f"{database}_origin"
    spark.sql(f"CREATE DATABASE spark_catalog.{name}")
    at = "TIMESTAMP'2024-03-01 12:30:00.5' AS at"
    for table, sql in {
        "orc_t": f"USING ORC AS SELECT id, {at} FROM range(0, 10, 1, 2)",
        "parquet_t": "USING PARQUET PARTITIONED BY (p) AS SELECT id, CAST(id % 2 AS INT) p FROM range(10)",
        "csv_t": "USING CSV AS SELECT id FROM range(3)",
        "broken": "USING PARQUET AS SELECT id FROM range(0, 10, 1, 1)",
    }.items():
        location = tmp_path / table
        using, _, rest = sql.partition(" PARTITIONED" if "PARTITIONED" in sql else " AS ")
        rest = f"PARTITIONED{rest}" if "PARTITIONED" in sql else f"AS {rest}"
        spark.sql(f"CREATE TABLE spark_catalog.{name}.{table} {using} LOCATION '{location}' {rest}")
    file = next((tmp_path / "broken").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-20])
    (tmp_path / "broken" / f".{file.name}.crc").unlink(missing_ok=True)
    spark.sql(f"CREATE VIEW spark_catalog.{name}.seen AS SELECT id FROM spark_catalog.{name}.orc_t")
    yield name
    spark.sql(f"DROP DATABASE spark_catalog.{name} CASCADE")


def migrate(lake: Lake, origin: str, **more: Any) -> Any:
    (row,) = lake.call("migrate_database", source_type="hive", database=origin, **more)
    return row


def test_a_database_is_migrated_as_far_as_it_can_be(
    lake: Lake, spark: SparkSession, database: str, origin: str
) -> None:
    dry = migrate(lake, origin, target_database=database, dry_run=True)
    assert spark.sql(f"SHOW TABLES IN lake.{database}").count() == 0
    rows = lake.sql(
        f"CALL lake.sys.migrate_database(sourceType => 'hive', database => '{origin}', "
        f"targetDatabase => '{database}', options => 'snapshot.num-retained.min=3', "
        "optionsMap => map('file.format', 'parquet'))"
    ).collect()
    (row,) = rows
    assert row == dry
    assert (row.tables, row.migrated_tables, row.failed_tables) == (4, 2, 2)
    assert (row.files_adopted, row.files_rewritten, row.rows) == (4, 2, 20)
    assert f"{origin}.csv_t: " in row.failures
    assert "broken" in row.failures
    assert (
        spark.table(f"lake.{database}.orc_t").count()
        == spark.table(f"lake.{database}.parquet_t").count()
        == 10
    )
    options = lake.catalog.load_table(f"{database}.orc_t").schema.options
    assert (options["snapshot.num-retained.min"], options["file.format"]) == ("3", "parquet")
    again = migrate(lake, origin, target_database=database, excluding_tables="csv.*|broken")
    assert (again.tables, again.migrated_tables, again.failed_tables) == (2, 0, 2)
    assert again.failures.count("exists: give another target_table") == 2
    with pytest.raises(AnalysisException, match=r"option 'file\.format' is given twice"):
        migrate(lake, origin, options="file.format=orc", options_map={"file.format": "orc"})
    with pytest.raises(AnalysisException, match="no database 'nowhere'"):
        migrate(lake, "nowhere")
    with pytest.raises(AnalysisException, match="folders become tables by migrate_table"):
        lake.call("migrate_database", source_type="parquet", database="/data")


@pytest.mark.parametrize("properties", ["", "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"])
def test_a_table_of_spark_is_added_to_one_that_exists(
    lake: Lake, spark: SparkSession, database: str, origin: str, properties: str
) -> None:
    """Times need Spark to be read, and rows of a key table are its newest."""
    name = f"lake.{database}.t"
    lake.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, at TIMESTAMP) {properties}")
    lake.sql(f"INSERT INTO {name} SELECT id, TIMESTAMP'1999-01-01 00:00:00' FROM range(8, 12)")
    (row,) = lake.call(
        "migrate_file", source_type="spark", source_table=f"{origin}.orc_t", target_table=f"{database}.t",
        delete_origin=True,
    )  # fmt: skip
    assert (row.files_adopted, row.files_rewritten, row.rows, row.snapshot_id) == (0, 2, 10, 2)
    found = spark.sql(f"SELECT year(at) AS y, count(*) AS n FROM {name} GROUP BY y ORDER BY y").collect()
    assert [tuple(each) for each in found] == [(1999, 2 if properties else 4), (2024, 10)]
    assert not spark.catalog.tableExists(f"spark_catalog.{origin}.orc_t")
    assert spark.sql(f"SHOW TABLES IN lake.{database}").count() == 1
