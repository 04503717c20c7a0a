"""A dimension of planes and a stream of flights, for lookup joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def planes(spark: SparkSession, name: str) -> None:
    spark.sql(
        f"CREATE TABLE {name} (tailnum STRING, year INT, model STRING, seats BIGINT, speed DOUBLE) "
        "TBLPROPERTIES ('primary-key'='tailnum', 'bucket'='2')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT concat('N', id), if(id % 7 = 0, null, 1990 + id % 20), "
        "concat('model ', id % 13), id * 3, id / 7 FROM range(300)"
    )


def flights(spark: SparkSession) -> DataFrame:
    return spark.sql(
        "SELECT id AS flight, if(id % 11 = 0, null, concat('N', (id * 37) % 350)) AS tailnum, "
        "cast(id % 5 AS SMALLINT) AS gate FROM range(1000)"
    )
