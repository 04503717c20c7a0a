"""Tables with names, keys and partitions that are legal and rare."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Named = Callable[[str], str]


def _rows(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(query).collect()]


@pytest.mark.parametrize("column", ["日本", "a b", "x.y", "back`tick", "select", "1"])
def test_partition_columns_of_any_name(spark: SparkSession, table: Named, column: str) -> None:
    name, quoted = table("t"), "`" + column.replace("`", "``") + "`"
    spark.sql(f"CREATE TABLE {name} (id INT, {quoted} STRING) PARTITIONED BY ({quoted})")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a/b=c %'), (2, NULL), (3, '😀')")
    spark.sql(f"DELETE FROM {name} WHERE {quoted} = '😀'")
    assert _rows(spark, f"SELECT id FROM {name} WHERE {quoted} = 'a/b=c %'") == [(1,)]
    assert _rows(spark, f"SELECT id FROM {name} ORDER BY id") == [(1,), (2,)]
    created = _rows(spark, f"SHOW CREATE TABLE {name}")[0][0]
    spark.sql(created.replace(name, f"{name}_again"))
    assert spark.table(f"{name}_again").columns == ["id", column]


def test_a_partition_of_nan(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, f DOUBLE) PARTITIONED BY (f)")
    spark.sql(
        f"INSERT INTO {name} VALUES (1, double('NaN')), (2, 1D), (3, double('NaN')), (4, double('NaN'))"
    )
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    spark.sql(f"UPDATE {name} SET id = 5 WHERE id = 3")
    assert _rows(spark, f"SELECT id FROM {name} ORDER BY id") == [(2,), (4,), (5,)]
    spark.createDataFrame([(6, float("nan"))], "id INT, f DOUBLE").writeTo(name).overwritePartitions()
    assert _rows(spark, f"SELECT id FROM {name} ORDER BY id") == [(2,), (6,)]
    spark.sql(f"DELETE FROM {name} WHERE f = double('NaN')")
    assert _rows(spark, f"SELECT id FROM {name}") == [(2,)]


def test_rows_with_keys_of_bytes_are_changed(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BINARY, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (X'01', 'a'), (X'02', 'b'), (X'0300', 'c')")
    spark.sql(f"UPDATE {name} SET v = 'u' WHERE id = X'01'")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT X'02' id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm'"
    )
    spark.sql(f"DELETE FROM {name} WHERE id = X'0300'")
    assert _rows(spark, f"SELECT hex(id), v FROM {name} ORDER BY id") == [("01", "u"), ("02", "m")]
    with pytest.raises(Exception, match="UPDATE must not change column 'id' of the primary key"):
        spark.sql(f"UPDATE {name} SET id = X'09' WHERE id = X'01'")
