"""Options of tables, as Spark sets and obeys them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.format.stripe import read_stripe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


def test_a_write_has_no_option_that_nobody_reads(spark: SparkSession, table: Named, tmp_path: Path) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, p INT) PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    one = spark.sql("SELECT 3L AS id, 1 AS p")
    for key in ("path", "checkpointLocation", "queryName", "mergeSchema"):
        with pytest.raises(AnalysisException, match=f"a write has no option '{key}'"):
            one.write.option(key, "x").insertInto(name)
    for key, mode in (("static", "append"), ("dynamic", "append"), ("dynamic", "overwrite")):
        with pytest.raises(AnalysisException, match=r"spark\.sql\.sources\.partitionOverwriteMode"):
            one.write.option("partitionOverwriteMode", key).mode(mode).insertInto(name)
    with pytest.raises(AnalysisException, match="but this write is dynamic"):
        one.writeTo(name).option("partitionOverwriteMode", "static").overwritePartitions()
    # A batch that the function of a stream writes is a batch.
    refused: list[str] = []

    def write(rows: DataFrame, _: int) -> None:
        for key in ("mergeSchema", "write.merge-schema"):
            with pytest.raises(AnalysisException, match=f"a write has no option '{key}'") as found:
                rows.writeTo(name).option(key, "true").append()
            refused.append(str(found.value))

    stream = spark.readStream.table(name).writeStream.option("checkpointLocation", str(tmp_path))
    stream.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()
    assert len(refused) == 2
    assert spark.table(name).count() == 2
    one.writeTo(name).option("partitionOverwriteMode", "dynamic").overwritePartitions()
    assert sorted(spark.table(name).collect()) == [(2, 2), (3, 1)]
    one.write.option("partitionOverwriteMode", "STATIC").mode("overwrite").insertInto(name)
    assert spark.table(name).collect() == [(3, 1)]


def test_a_partition_of_a_key_table_is_listed_until_a_compaction(spark: SparkSession, table: Named) -> None:
    name = table("k")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, p INT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '1')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {name}").collect()] == ["p=1", "p=2"]
    spark.sql(f"CALL lake.sys.compact('{name.removeprefix('lake.')}')")
    assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {name}").collect()] == ["p=2"]


def _foreign(lake: Lake, name: str, key: str, value: str) -> None:
    """Give a table an option in its schema's file, as another engine does."""
    table = lake.catalog.load_table(name.removeprefix("lake."))
    path = Path(table.location) / "schema" / f"schema-{table.schema.id}"
    schema = json.loads(path.read_text())
    schema["options"][key] = value
    path.write_text(json.dumps(schema))


@pytest.mark.parametrize("rows", [0, 3])
def test_an_option_that_changes_rows_is_refused_by_its_name(
    lake: Lake, spark: SparkSession, table: Named, rows: int
) -> None:
    name = table("branched")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
    if rows:
        spark.sql(f"INSERT INTO {name} SELECT id, 'a' FROM range({rows})")
    _foreign(lake, name, "query-auth.enabled", "true")
    statements = [
        f"SELECT * FROM {name}",
        f"SELECT count(*) FROM {name}",
        f"INSERT INTO {name} VALUES (9, 'z')",
        f"DELETE FROM {name} WHERE id = 1",
        f"UPDATE {name} SET v = 'b' WHERE id = 1",
    ]
    if rows:
        statements.append(f"SELECT * FROM {name} VERSION AS OF 1")
    for statement in statements:
        with pytest.raises(Exception, match=r"option 'query-auth\.enabled'"):
            spark.sql(statement).collect()
    assert "id" in spark.table(name).columns  # what is there can be looked at
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('query-auth.enabled')")
    assert spark.table(name).count() == rows


def test_an_option_that_selects_is_honoured_where_nothing_is_written(
    lake: Lake, spark: SparkSession, table: Named
) -> None:
    name = table("selecting")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
    for number in range(2):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, 'a')")
    _foreign(lake, name, "scan.snapshot-id", "1")
    for statement in (
        f"DELETE FROM {name} WHERE id = 1",
        f"MERGE INTO {name} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'b'",
    ):
        with pytest.raises(Exception, match=r"option 'scan\.snapshot-id' = '1' cannot be read as they stand"):
            spark.sql(statement).collect()
    assert spark.sql(f"SELECT * FROM {name}").collect() == [(0, "a")]
    assert spark.sql(f"SELECT count(*), max(id) FROM {name}").collect() == [(1, 0)]
    assert spark.sql(f"SELECT id FROM {name} VERSION AS OF 2 ORDER BY id").collect() == [(0,), (1,)]
    assert spark.read.option("scan.snapshot-id", "2").table(name).count() == 2
    assert spark.read.option("incremental-between", "1,2").table(name).select("id").collect() == [(1,)]
    spark.sql(f"INSERT INTO {name} VALUES (5, 'c')")
    assert spark.sql(f"SELECT count(*) FROM {name} VERSION AS OF 3").collect() == [(3,)]
