"""Tables with `sequence.field` through Spark, and the same tables read in Python."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


def create(spark: SparkSession, column: str = "at BIGINT", **options: str) -> str:
    name = f"lake.seq.t{uuid.uuid4().hex[:8]}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.seq")
    properties = {"primary-key": "id", "sequence.field": "at", **options}
    text = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING, {column}) TBLPROPERTIES ({text})")
    return name


def state(lake: Lake, name: str, columns: str = "id, v") -> list[tuple[Any, ...]]:
    """The rows, as Spark and as Python read them."""
    found = [tuple(row) for row in lake.spark.sql(f"SELECT {columns} FROM {name} ORDER BY id").collect()]
    rows = lake.catalog.load_table(name.removeprefix("lake.")).read(columns=columns.split(", ")).sort_by("id")
    assert [tuple(row.values()) for row in rows.to_pylist()] == found
    return found


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_insert_and_read(lake: Lake, order: str) -> None:
    name = create(lake.spark, **{"sequence.field.sort-order": order})
    sign = 1 if order == "ascending" else -1
    values = [(1, "late", 4), (1, "new", 5), (1, "older", 3), (2, "null", None), (3, "a", 1), (3, "b", 1)]
    text = ", ".join(f"({i}, '{v}', {'NULL' if at is None else sign * at})" for i, v, at in values)
    lake.spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {text}")
    assert state(lake, name) == [(1, "new"), (2, "null"), (3, "b")]
    lake.spark.sql(f"INSERT INTO {name} VALUES (1, 'late', {sign * 4}), (2, 'value', {sign * -9})")
    assert state(lake, name) == [(1, "new"), (2, "value"), (3, "b")]
    assert state(lake, name, "id, at, v")[0] == (1, sign * 5, "new")  # the column read, in another place
    assert state(lake, name, "id") == [(1,), (2,), (3,)]
    lake.call("compact", table=name.removeprefix("lake."))
    lake.spark.sql(f"INSERT INTO {name} VALUES (3, 'late', {sign * -1})")
    assert state(lake, name) == [(1, "new"), (2, "value"), (3, "b")]


@pytest.mark.parametrize("column", ["at BIGINT", "at BIGINT NOT NULL"])
def test_delete_and_update(lake: Lake, column: str) -> None:
    name = create(lake.spark, column)
    lake.spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 5), (2, 'b', 5), (3, 'c', 5), (4, 'd', 5)")
    lake.spark.sql(f"DELETE FROM {name} WHERE id = 1")
    lake.spark.sql(f"UPDATE {name} SET v = 'B' WHERE id = 2")
    lake.spark.sql(f"UPDATE {name} SET v = 'late', at = 4 WHERE id = 3")
    lake.spark.sql(f"UPDATE {name} SET v = 'D', at = 6 WHERE id = 4")
    assert state(lake, name) == [(2, "B"), (3, "c"), (4, "D")]
    lake.spark.sql(f"INSERT INTO {name} VALUES (1, 'late', 4)")
    assert state(lake, name) == [(2, "B"), (3, "c"), (4, "D")]


def test_a_deletion_of_a_row_without_age(lake: Lake) -> None:
    name = create(lake.spark)
    lake.spark.sql(f"INSERT INTO {name} VALUES (1, 'a', NULL), (2, 'b', NULL)")
    lake.spark.sql(f"DELETE FROM {name} WHERE v = 'a'")
    assert state(lake, name) == [(2, "b")]


def test_a_merge_keeps_the_row_with_the_newest_sequence_field(lake: Lake) -> None:
    name = create(lake.spark, "at BIGINT NOT NULL")
    lake.spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 5), (2, 'b', 5), (3, 'c', 5)")
    merge = (
        f"MERGE INTO {name} t USING (SELECT * FROM VALUES (1, 'x', 9L), (2, 'y', 6L), (3, 'z', 1L), "
        "(4, 'n', 1L) AS s(id, v, at)) s ON t.id = s.id WHEN MATCHED AND s.v = 'x' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = s.v, at = s.at WHEN NOT MATCHED THEN INSERT *"
    )
    lake.spark.sql(merge)
    assert state(lake, name) == [(2, "y"), (3, "c"), (4, "n")]


def test_a_merge_that_cannot_delete(lake: Lake) -> None:
    name = create(lake.spark)
    lake.spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 5)")
    with pytest.raises(
        Exception, match=r"MERGE cannot delete rows of this table.*declare the column NOT NULL"
    ):
        lake.spark.sql(
            f"MERGE INTO {name} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        )
    assert state(lake, name) == [(1, "a")]


def test_several_columns_of_other_types(lake: Lake) -> None:
    name = create(lake.spark, "day DATE, rank STRING, at TIMESTAMP", **{"sequence.field": "day,rank,at"})
    lake.spark.sql(
        f"INSERT INTO {name} VALUES (1, 'new', DATE '2024-01-02', 'a', NULL), "
        f"(2, 'new', DATE '2024-01-02', 'b', NULL), (3, 'new', NULL, 'z', TIMESTAMP '2024-01-01 00:00:01')"
    )
    lake.spark.sql(
        f"INSERT INTO {name} VALUES (1, 'late', DATE '2024-01-01', 'z', NULL), "
        f"(2, 'late', DATE '2024-01-02', 'Z', NULL), (3, 'late', NULL, 'z', TIMESTAMP '2024-01-01 00:00:00')"
    )
    assert state(lake, name) == [(1, "new"), (2, "new"), (3, "new")]
