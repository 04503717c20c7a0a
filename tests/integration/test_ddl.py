"""Statements that make, describe, rename and replace tables and databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import lockgate
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc.encryption.decrypted_columns import MARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


def described(spark: SparkSession, name: str) -> dict[str, str]:
    return {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}


def tables(lake: Lake, database: str) -> list[str]:
    """The folders of a database, those that no listing shows too."""
    return sorted(
        info.name
        for info in lake.catalog.file_system.list(lake.catalog.namespace_location(database))
        if info.is_directory
    )


@pytest.fixture
def sales(spark: SparkSession, table: Named) -> str:
    """A partitioned table with comments, of four rows."""
    name = table("sales")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL COMMENT 'its number', "
        "part STRUCT<a: INT, b: ARRAY<STRING>>, day DATE, shop STRING) PARTITIONED BY (day, shop) "
        "COMMENT 'what was sold' TBLPROPERTIES ('target-file-size' = '32 mb')"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (1, NULL, DATE'2024-01-01', 'a'), (2, NULL, DATE'2024-01-01', 'b'), "
        "(3, NULL, DATE'2024-01-02', 'a'), (4, NULL, NULL, 'a')"
    )
    return name


# --- tables: rename, describe, copy --------------------------------------------------------------


def test_a_renamed_table_keeps_its_rows_and_frees_its_name(
    lake: Lake, spark: SparkSession, database: str, sales: str, table: Named
) -> None:
    spark.sql(f"ALTER TABLE {sales} RENAME TO {database}.sold")
    assert [row.tableName for row in spark.sql(f"SHOW TABLES IN lake.{database}").collect()] == ["sold"]
    assert spark.table(table("sold")).count() == 4
    with pytest.raises(AnalysisException, match="sold"):
        spark.sql(f"SELECT * FROM {sales}")
    spark.sql(f"CREATE TABLE {sales} (id INT)")
    with pytest.raises(AnalysisException, match="exists"):
        spark.sql(f"ALTER TABLE {sales} RENAME TO {database}.sold")
    with pytest.raises(AnalysisException, match="nowhere"):
        spark.sql(f"ALTER TABLE {sales} RENAME TO nowhere.sold")
    with pytest.raises(AnalysisException, match="sales"):
        spark.sql(f"ALTER TABLE lake.{database}.sails RENAME TO {database}.t")
    lake.catalog.create_namespace(f"{database}_two")
    try:
        spark.sql(f"ALTER TABLE {table('sold')} RENAME TO lake.{database}_two.moved")
        spark.sql(f"INSERT INTO lake.{database}_two.moved SELECT * FROM lake.{database}_two.moved")
        assert spark.table(f"lake.{database}_two.moved").count() == 8
    finally:
        lake.catalog.drop_namespace(f"{database}_two", cascade=True)


def columns(spark: SparkSession, name: str) -> list[dict[str, Any]]:
    """A table's columns, but for the marks of encrypted ones, which name the table."""
    fields = [field.jsonValue() for field in spark.table(name).schema]
    for field in fields:
        field["metadata"].pop(MARK, None)
    return fields


def test_show_create_table_makes_the_same_table(spark: SparkSession, sales: str, table: Named) -> None:
    keyed = table("keyed")
    spark.sql(
        f"CREATE TABLE {keyed} (id INT, region STRING, ssn STRING COMMENT 'it''s secret') "
        "PARTITIONED BY (region) TBLPROPERTIES ('primary-key' = 'region,id', 'bucket' = '3', "
        "'orc.encrypt' = 'pii:ssn', 'orc.mask' = 'sha256:ssn')"
    )
    for name in (sales, keyed):
        text = spark.sql(f"SHOW CREATE TABLE {name}").collect()[0][0]
        assert "LOCATION" not in text
        spark.sql(text.replace(name, f"{name}_again"))
        assert columns(spark, f"{name}_again") == columns(spark, name)
        first, again = described(spark, name), described(spark, f"{name}_again")
        for different in ("Name", "Table", "Location", "Statistics", "Created Time"):
            first.pop(different, None), again.pop(different, None)
        assert first == again


def test_describe_extended_and_properties(spark: SparkSession, sales: str) -> None:
    found = described(spark, sales)
    assert found["Comment"] == "what was sold"
    assert found["Provider"] == "lockgate"
    assert "target-file-size=32 mb" in found["Table Properties"]
    [row] = spark.sql(f"SHOW TBLPROPERTIES {sales} ('target-file-size')").collect()
    assert row.value == "32 mb"


def test_create_table_like(lake: Lake, spark: SparkSession, sales: str, table: Named) -> None:
    like = table("like_it")
    spark.sql(f"CREATE TABLE {like} LIKE {sales} TBLPROPERTIES ('target-file-size' = '16 mb')")
    assert spark.table(like).schema == spark.table(sales).schema
    assert spark.table(like).count() == 0
    schema = lake.catalog.load_table(like.removeprefix("lake.")).schema
    assert schema.partition_keys == ("day", "shop")
    assert schema.options["target-file-size"] == "16 mb"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {like} LIKE {sales}")
    with pytest.raises(AnalysisException, match="exists"):
        spark.sql(f"CREATE TABLE {like} LIKE {sales}")


def test_unknown_tables(spark: SparkSession, database: str, sales: str) -> None:
    spark.sql(f"DROP TABLE IF EXISTS lake.{database}.nothing")
    for statement in ("DROP TABLE {}", "DESCRIBE TABLE {}", "SHOW CREATE TABLE {}", "SHOW PARTITIONS {}"):
        with pytest.raises(AnalysisException, match="sale"):
            spark.sql(statement.format(f"lake.{database}.sale"))
    with pytest.raises(AnalysisException, match="nowhere"):
        spark.sql("SHOW TABLES IN lake.nowhere")


# --- partitions ----------------------------------------------------------------------------------


def test_partitions_are_shown_dropped_and_truncated(spark: SparkSession, sales: str, table: Named) -> None:
    def partitions(rest: str = "") -> list[str]:
        return [row[0] for row in spark.sql(f"SHOW PARTITIONS {sales} {rest}").collect()]

    assert partitions() == [
        "day=2024-01-01/shop=a", "day=2024-01-01/shop=b", "day=2024-01-02/shop=a", "day=null/shop=a"
    ]  # fmt: skip
    assert partitions("PARTITION (shop = 'b')") == ["day=2024-01-01/shop=b"]
    spark.sql(
        f"ALTER TABLE {sales} DROP PARTITION (day = DATE'2024-01-01', shop = 'a'), "
        "PARTITION (day = DATE'2024-01-01', shop = 'b')"
    )
    assert sorted(row.id for row in spark.table(sales).collect()) == [3, 4]
    spark.sql(f"TRUNCATE TABLE {sales} PARTITION (day = DATE'2024-01-02', shop = 'a')")
    assert partitions() == ["day=null/shop=a"]
    with pytest.raises(AnalysisException, match=r"(?i)partition"):
        spark.sql(f"ALTER TABLE {sales} DROP PARTITION (day = DATE'2030-01-01', shop = 'a')")
    with pytest.raises(AnalysisException, match="INSERT"):
        spark.sql(f"ALTER TABLE {sales} ADD PARTITION (day = DATE'2030-01-01', shop = 'a')")
    spark.sql(f"CREATE TABLE {table('plain')} (id INT)")
    with pytest.raises(AnalysisException, match=r"(?i)partition"):
        spark.sql(f"SHOW PARTITIONS {table('plain')}")


# --- databases -----------------------------------------------------------------------------------


@pytest.fixture
def shop(lake: Lake, database: str) -> Iterator[str]:
    name = f"{database}_shop"
    yield name
    if lake.catalog.namespace_exists(name):
        lake.catalog.drop_namespace(name, cascade=True)


def test_databases_with_properties(lake: Lake, spark: SparkSession, shop: str) -> None:
    def description() -> dict[str, str]:
        return {row[0]: row[1] for row in spark.sql(f"DESCRIBE DATABASE EXTENDED lake.{shop}").collect()}

    spark.sql(
        f"CREATE DATABASE lake.{shop} COMMENT 'of shops' WITH DBPROPERTIES ('team' = 'x', 'cost' = '1')"
    )
    assert description()["Comment"] == "of shops"
    assert description()["Properties"] == "((cost,1), (team,x))"
    spark.sql(f"ALTER DATABASE lake.{shop} SET DBPROPERTIES ('team' = 'y')")
    spark.sql(f"COMMENT ON DATABASE lake.{shop} IS 'another'")
    assert description()["Comment"] == "another"
    assert description()["Properties"] == "((cost,1), (team,y))"
    spark.sql(f"ALTER DATABASE lake.{shop} UNSET DBPROPERTIES ('team')")
    assert description()["Properties"] == "((cost,1))"
    assert lake.catalog.list_tables(shop) == []
    with pytest.raises(AnalysisException, match="location"):
        spark.sql(f"ALTER DATABASE lake.{shop} SET LOCATION '/elsewhere'")
    with pytest.raises(AnalysisException, match="location"):
        spark.sql(f"CREATE DATABASE lake.{shop}_two LOCATION '/elsewhere'")
    assert not lake.catalog.namespace_exists(f"{shop}_two")
    spark.sql(f"DROP DATABASE lake.{shop}")
    assert not lake.catalog.namespace_exists(shop)


# --- replacing -----------------------------------------------------------------------------------


def test_a_replaced_table_has_new_columns_and_rows(
    lake: Lake, spark: SparkSession, database: str, sales: str
) -> None:
    spark.sql(f"CREATE OR REPLACE TABLE {sales} AS SELECT id, shop FROM {sales} WHERE id < 3")
    assert sorted(map(tuple, spark.table(sales).collect())) == [(1, "a"), (2, "b")]
    assert tables(lake, database) == ["sales"]
    spark.sql(f"REPLACE TABLE {sales} (only INT) TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'only')")
    assert spark.table(sales).columns == ["only"]
    assert spark.table(sales).count() == 0
    spark.range(3).selectExpr("id", "id % 2 AS odd").writeTo(sales).partitionedBy("odd").createOrReplace()
    assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {sales}").collect()] == ["odd=0", "odd=1"]
    spark.range(2).write.mode("overwrite").saveAsTable(sales)
    assert sorted(row.id for row in spark.table(sales).collect()) == [0, 1]
    with pytest.raises(AnalysisException, match=r"(?i)sails|not found"):
        spark.sql(f"REPLACE TABLE lake.{database}.sails AS SELECT 1 AS id")
    spark.sql(f"CREATE OR REPLACE TABLE lake.{database}.fresh AS SELECT 1 AS id")
    assert spark.table(f"lake.{database}.fresh").count() == 1
    assert tables(lake, database) == ["fresh", "sales"]


@pytest.mark.parametrize(
    "statement", ["CREATE OR REPLACE TABLE {0} AS", "REPLACE TABLE {0} AS", "CREATE TABLE {0}_new AS"]
)
def test_a_failed_query_leaves_everything_as_it_was(
    lake: Lake, spark: SparkSession, database: str, sales: str, statement: str
) -> None:
    before = sorted(map(tuple, spark.table(sales).collect()), key=repr)
    with pytest.raises(Exception, match="broken"):
        spark.sql(
            statement.format(sales) + f" SELECT id, if(id = 3, raise_error('broken'), 1) AS b FROM {sales}"
        )
    assert sorted(map(tuple, spark.table(sales).collect()), key=repr) == before
    assert tables(lake, database) == ["sales"]


@pytest.mark.filterwarnings("ignore::lockgate.errors.MaskedDataWarning")
def test_replacing_a_table_by_its_own_rows_needs_its_keys(
    lake: Lake, lake_folder: Any, spark: SparkSession, database: str
) -> None:
    warehouse = str(lake_folder / "warehouse")
    keys = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    lockgate.connect(warehouse, spark=spark, catalog="ddl_with", keys=keys)
    lockgate.connect(warehouse, spark=spark, catalog="ddl_without", keys=None)
    name = f"{database}.people"
    spark.sql(f"CREATE TABLE ddl_with.{name} (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    spark.sql(f"INSERT INTO ddl_with.{name} VALUES (1, 'one')")
    with pytest.raises(AnalysisException, match="pii"):
        spark.sql(f"CREATE OR REPLACE TABLE ddl_without.{name} AS SELECT * FROM ddl_without.{name}")
    assert spark.table(f"ddl_with.{name}").collect() == [(1, "one")]
    assert tables(lake, database) == ["people"]


def test_a_concurrent_change_of_the_table_is_a_conflict(
    lake: Lake, spark: SparkSession, database: str, sales: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.framework.spark.bridge import dispatcher
    from lockgate.framework.spark.operations import replacements as replace_operations

    def late(context: Any, request: dict[str, Any]) -> Any:
        monkeypatch.undo()
        spark.sql(f"DELETE FROM {sales} WHERE shop = 'b'")
        return replace_operations.commit_staged(context, request)

    monkeypatch.setitem(dispatcher._OWN, "table.commit_staged", late)
    with pytest.raises(AnalysisException, match="repeat the statement"):
        spark.sql(f"CREATE OR REPLACE TABLE {sales} AS SELECT id FROM {sales}")
    assert sorted(row.id for row in spark.table(sales).collect()) == [1, 3, 4]
    assert tables(lake, database) == ["sales"]
