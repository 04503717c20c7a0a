"""Options of tables, as Spark sets and obeys them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.stripe import read_stripe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


@pytest.mark.parametrize("hide", [False, True])
def test_dictionaries_are_left_out_to_hide_how_many_values_there_are(
    lake: Lake, spark: SparkSession, table: Named, hide: bool
) -> None:
    name = table("hidden")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, city STRING) TBLPROPERTIES "
        f"('orc.encrypt' = 'pii:city', 'orc.encrypt.hide-cardinality' = '{str(hide).lower()}')"
    )
    spark.range(0, 500, 1, 1).selectExpr("id", "'Paris' AS city").writeTo(name).append()
    (path,) = Path(lake.catalog.load_table(name.removeprefix("lake.")).location).rglob("*.orc")
    with EncryptedOrcFile(path) as file:
        footer = read_stripe(file._source, file._tail, 0).footer
    (variant,) = footer.encryption
    assert [each.dictionary_size for each in variant.encoding] == ([0] if hide else [1])
    assert spark.sql(f"SELECT DISTINCT city FROM {name}").collect() == [("Paris",)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE {other} (id INT) TBLPROPERTIES ('orc.encrpyt' = 'pii:id')",
        "CREATE TABLE {other} TBLPROPERTIES ('orc.encrpyt' = 'pii:id') AS SELECT 1 AS id",
        "ALTER TABLE {known} SET TBLPROPERTIES ('orc.encrpyt' = 'pii:id')",
    ],
)
def test_an_unknown_option_is_an_error_with_the_nearest_name(
    spark: SparkSession, table: Named, statement: str
) -> None:
    known, other = table("known"), table("other")
    spark.sql(f"CREATE TABLE {known} (id INT)")
    with pytest.raises(AnalysisException, match=r"orc\.encrypt"):
        spark.sql(statement.format(known=known, other=other))
    assert spark.sql(f"SHOW TABLES IN {known.rpartition('.')[0]}").count() == 1


@pytest.mark.parametrize(
    "value", [("bucket", "none"), ("target-file-size", "big"), ("orc.integrity", "often")]
)
def test_a_malformed_option_is_an_error(spark: SparkSession, table: Named, value: tuple[str, str]) -> None:
    with pytest.raises(AnalysisException, match=value[0]):
        spark.sql(f"CREATE TABLE {table('t')} (id INT) TBLPROPERTIES ('{value[0]}' = '{value[1]}')")
