"""A table with encrypted values, and the choice of a session for values that leave it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.framework.spark.context.operation_context import SESSION_CONF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


SECRET = "777-88-"


def make_people(spark: SparkSession, name: str) -> str:
    """Make a table of two people with encrypted values."""
    spark.sql(
        f"CREATE TABLE {name} (id INT, ssn STRING, address STRUCT<zip: STRING, city: STRING>) TBLPROPERTIES "
        "('orc.encrypt' = 'pii:ssn,address.zip', 'orc.mask' = 'sha256:ssn', 'file.compression' = 'none')"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (1, '{SECRET}1', named_struct('zip', '{SECRET}z', 'city', 'Riga')), "
        f"(2, '{SECRET}2', NULL)"
    )
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
