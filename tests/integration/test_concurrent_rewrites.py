"""What a statement computes from a table is not stored over what others committed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.functions import udf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Row = tuple[int, str]


def rows(spark: SparkSession, name: str) -> list[Row]:
    return sorted(tuple(row) for row in spark.table(name).collect())


@pytest.fixture
def meanwhile(spark: SparkSession, lake: Lake, database: str, tmp_path) -> Callable[[str, int, str], None]:
    """Register the SQL function `meanwhile(x)`, which returns x after another writer has put in a row."""

    def register(name: str, key: int, value: str) -> None:
        warehouse, folder = lake.catalog.warehouse, str(tmp_path)

        def commit_once(text: str) -> str:
            import os

            from lockgate.framework.store import Catalog

            try:
                os.close(os.open(f"{folder}/{name}-{key}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return text
            table = Catalog(warehouse).load_table(f"{database}.{name}")
            table.append(pa.table({"id": [key], "v": [value]}, table.schema.arrow_schema))
            return text

        spark.udf.register("meanwhile", udf(commit_once, useArrow=False))

    return register


@pytest.fixture
def keyed(spark: SparkSession, table: Callable[[str], str]) -> str:
    name = table("keyed")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return name


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET v = meanwhile(concat(v, '!'))",
        "DELETE FROM {t} WHERE meanwhile(v) = 'b'",
        "MERGE INTO {t} t USING (SELECT 2 AS id, 'z' AS v) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = meanwhile(concat(t.v, s.v))",
        "INSERT INTO {t} SELECT id, meanwhile(concat(v, '!')) FROM {t}",
        "INSERT OVERWRITE {t} SELECT id, meanwhile(upper(v)) FROM {t}",
    ],
)
def test_a_change_of_the_same_keys_is_refused(
    spark: SparkSession, keyed: str, meanwhile: Callable[[str, int, str], None], statement: str
) -> None:
    meanwhile("keyed", 2, "theirs")
    with pytest.raises(Exception, match=r"changed partition .* repeat the statement"):
        spark.sql(statement.format(t=keyed))
    assert rows(spark, keyed) == [(1, "a"), (2, "theirs"), (3, "c")]
    spark.sql(statement.format(t=keyed).replace("= 'b'", "= 'theirs'"))
    assert rows(spark, keyed) != [(1, "a"), (2, "theirs"), (3, "c")]


def test_a_change_of_other_keys_is_kept_beside(
    spark: SparkSession, keyed: str, meanwhile: Callable[[str, int, str], None]
) -> None:
    meanwhile("keyed", 9, "theirs")
    spark.sql(f"UPDATE {keyed} SET v = meanwhile('x') WHERE id = 1")
    assert rows(spark, keyed) == [(1, "x"), (2, "b"), (3, "c"), (9, "theirs")]


def test_rows_that_do_not_depend_on_the_table_replace_whatever_is_there(
    spark: SparkSession, keyed: str, meanwhile: Callable[[str, int, str], None]
) -> None:
    meanwhile("keyed", 2, "theirs")
    spark.sql(f"INSERT OVERWRITE {keyed} SELECT 7, meanwhile('new')")
    assert rows(spark, keyed) == [(7, "new")]


def test_an_older_state_can_be_put_back(spark: SparkSession, keyed: str) -> None:
    spark.sql(f"INSERT INTO {keyed} VALUES (1, 'wrong')")
    spark.sql(f"INSERT OVERWRITE {keyed} SELECT * FROM {keyed} VERSION AS OF 1")
    assert rows(spark, keyed) == [(1, "a"), (2, "b"), (3, "c")]


def test_rows_added_to_an_append_table_from_itself_need_no_check(
    spark: SparkSession, table: Callable[[str], str], meanwhile: Callable[[str, int, str], None]
) -> None:
    name = table("plain")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    meanwhile("plain", 2, "theirs")
    spark.sql(f"INSERT INTO {name} SELECT id + 10, meanwhile(v) FROM {name}")
    assert rows(spark, name) == [(1, "a"), (2, "theirs"), (11, "a")]


def test_partitions_overwritten_from_themselves(
    spark: SparkSession, table: Callable[[str], str], meanwhile: Callable[[str, int, str], None]
) -> None:
    name = table("parted")
    spark.sql(f"CREATE TABLE {name} (v STRING, id INT) PARTITIONED BY (id)")
    spark.sql(f"INSERT INTO {name} VALUES ('a', 1), ('b', 2)")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        overwrite = f"INSERT OVERWRITE {name} SELECT meanwhile(concat(v, '!')), id FROM {name} WHERE id = 1"
        meanwhile("parted", 2, "theirs")
        spark.sql(overwrite)
        assert sorted(map(tuple, spark.table(name).collect())) == [("a!", 1), ("b", 2), ("theirs", 2)]
        meanwhile("parted", 1, "theirs")
        with pytest.raises(Exception, match="repeat the statement"):
            spark.sql(overwrite)
        expected = [("a!", 1), ("b", 2), ("theirs", 1), ("theirs", 2)]
        assert sorted(map(tuple, spark.table(name).collect())) == expected
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
