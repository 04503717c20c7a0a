"""`merge_into`: its arguments write the MERGE that a user would write, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


@pytest.fixture(scope="module")
def tables(lake: Lake) -> str:
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.merging")
    return "merging"


def make(lake: Lake, name: str, properties: str) -> None:
    lake.sql(f"DROP TABLE IF EXISTS lake.{name}")
    lake.sql(f"CREATE TABLE lake.{name} (id BIGINT NOT NULL, price INT, name STRING) {properties}")
    lake.sql(f"INSERT INTO lake.{name} SELECT id, CAST(id AS INT), 'old' FROM range(10)")


def content(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.table(f"lake.{name}").orderBy("id").collect()]


KEYED = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
MARKED = "TBLPROPERTIES ('deletion-vectors.enabled' = 'true')"


@pytest.mark.parametrize("properties", [KEYED, "", MARKED])
def test_all_clauses_do_what_the_statement_does(
    lake: Lake, spark: SparkSession, tables: str, properties: str
) -> None:
    make(lake, f"{tables}.t", properties)
    make(lake, f"{tables}.u", properties)
    given = {
        "target_table": f"{tables}.t",
        "target_alias": "T",
        "source_sqls": "CREATE OR REPLACE TEMPORARY VIEW S AS "
        "SELECT id + 5 AS order_id, 'a;b' AS name FROM range(10); ",
        "source_table": "S",
        "merge_condition": "T.id = S.order_id -- by number",
        "matched_upsert_condition": "T.id < 9",
        "matched_upsert_setting": "price = T.price + 20, name = S.name",
        "not_matched_insert_condition": "order_id > 10",
        "not_matched_insert_values": "order_id, 0, S.name",
        "matched_delete_condition": "T.id = 6",
        "not_matched_by_source_upsert_condition": "T.id > 2",
        "not_matched_by_source_upsert_setting": "name = 'left'",
        "not_matched_by_source_delete_condition": "T.id = 0",
    }
    (dry,) = lake.call("merge_into", **given, dry_run=True)
    assert len(content(spark, f"{tables}.t")) == 10
    (row,) = lake.call("merge_into", **given)
    assert tuple(row) == tuple(dry) == (4, 5, 2)
    lake.sql(
        f"MERGE INTO lake.{tables}.u AS T USING S ON T.id = S.order_id "
        "WHEN MATCHED AND T.id = 6 THEN DELETE "
        "WHEN MATCHED AND T.id < 9 THEN UPDATE SET price = T.price + 20, name = S.name "
        "WHEN NOT MATCHED AND order_id > 10 THEN INSERT (id, price, name) VALUES (order_id, 0, S.name) "
        "WHEN NOT MATCHED BY SOURCE AND T.id = 0 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND T.id > 2 THEN UPDATE SET name = 'left'"
    )
    assert content(spark, f"{tables}.t") == content(spark, f"{tables}.u")


def test_flinks_positions_and_inserts_alone(lake: Lake, spark: SparkSession, tables: str) -> None:
    make(lake, f"{tables}.t", KEYED)
    make(lake, f"{tables}.s", "")
    lake.sql(f"INSERT INTO lake.{tables}.s VALUES (100, 1, 'new'), (101, 2, 'new')")
    before = f"CALL lake.sys.merge_into('{tables}.t', '', '', '{tables}.s', 't.id = s.id', '', "
    (row,) = lake.sql(f"{before} '', '', '*', '')").collect()
    assert tuple(row) == (2, 0, 0)
    (row,) = lake.sql(f"{before} 'price = t.price + 20', '', '*', 't.id = 1')").collect()
    assert tuple(row) == (0, 11, 1)
    assert content(spark, f"{tables}.t")[:2] == [(0, 20, "old"), (2, 22, "old")]


ENOUGH = {"source_table": "merging.s", "merge_condition": "t.id = s.id", "matched_delete_condition": "true"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"source_table": " "}, "needs the argument 'source_table'"),
        ({"merge_condition": ""}, "needs the argument 'merge_condition'"),
        ({"matched_delete_condition": ""}, "has nothing to do"),
        ({"merge_condition": "true) WHEN MATCHED THEN DELETE --"}, "merge_condition is not a condition"),
        ({"matched_delete_condition": "id = 1 THEN DELETE"}, "matched_delete_condition is not a condition"),
        ({"matched_upsert_setting": "price = 1 WHEN NOT MATCHED BY SOURCE THEN DELETE"}, "make no MERGE"),
        (
            {"not_matched_insert_values": "1, 2, 3) WHEN NOT MATCHED BY SOURCE THEN DELETE --"},
            "make no MERGE",
        ),
        ({"source_table": "(SELECT 1 AS id)"}, "is not a name"),
        ({"source_sqls": "DROP TABLE lake.merging.t"}, "can only CREATE TEMPORARY VIEW"),
        (
            {"source_sqls": "CREATE TEMPORARY VIEW v AS SELECT 1; DELETE FROM lake.merging.t"},
            "can only CREATE",
        ),
    ],
)
def test_other_arguments_are_refused(
    lake: Lake, spark: SparkSession, tables: str, change: dict[str, str], complaint: str
) -> None:
    if not lake.catalog.table_exists(f"{tables}.s"):
        make(lake, f"{tables}.s", "")
    make(lake, f"{tables}.t", KEYED)
    with pytest.raises(AnalysisException, match=complaint):
        lake.call("merge_into", target_table=f"{tables}.t", **{**ENOUGH, **change})
    assert len(content(spark, f"{tables}.t")) == 10
