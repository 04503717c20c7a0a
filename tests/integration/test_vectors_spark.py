"""Tables with deletion vectors in Spark: counts, limits, positions, damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from exact_rows import exact_rows, in_order
from zoo import expected, unpack

from lockgate.pushdown import col

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

VECTORS = sorted(name for name in expected() if name.startswith("dv_"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("zoo"))


@pytest.fixture(scope="module")
def zoo(spark: SparkSession, folder: Path) -> str:
    import lockgate

    lockgate.connect(str(folder), spark=spark, catalog="vector_lake")
    return "vector_lake.zoo"


@pytest.mark.parametrize("name", VECTORS)
def test_each_snapshot_is_read_counted_and_limited(spark: SparkSession, zoo: str, name: str) -> None:
    for number, snapshot in expected()[name]["snapshots"].items():
        table = f"{zoo}.{name} VERSION AS OF {int(number)}"
        there = len(snapshot["rows"])
        rows = exact_rows(spark.sql(f"SELECT * FROM {table}").toArrow())
        assert in_order(rows) == in_order(snapshot["rows"]), number
        assert spark.sql(f"SELECT count(*), count(k), sum(k % 1) FROM {table}").collect()[0][:2] == (
            there,
            there,
        )
        assert spark.sql(f"SELECT * FROM {table} LIMIT {there}").count() == there


def test_row_numbers_are_those_of_the_file(spark: SparkSession, zoo: str) -> None:
    found = spark.sql(f"SELECT k, _ROW_INDEX FROM {zoo}.dv_append_64 VERSION AS OF 4 WHERE k < 20").collect()
    assert sorted(map(tuple, found)) == [(k, k) for k in (0, 1, 3, 4, 6, 8, 9)]


def test_the_largest_value_is_read(spark: SparkSession, zoo: str) -> None:
    for at, largest in ((2, 21), (3, 21), (4, 21)):
        query = f"SELECT max(k), min(k) FROM {zoo}.dv_append_32 VERSION AS OF {at}"
        assert spark.sql(query).collect() == [(largest, 0)]
    query = f"SELECT k FROM {zoo}.dv_append_32 VERSION AS OF 4 ORDER BY k DESC LIMIT 3"
    assert [row.k for row in spark.sql(query).collect()] == [21, 9, 8]


def test_a_damaged_vector_is_an_error(spark: SparkSession, zoo: str, folder: Path) -> None:
    file = next(
        path for path in (folder / "zoo.db" / "dv_append_32" / "index").iterdir() if path.stat().st_size == 65
    )
    whole = file.read_bytes()
    query = f"SELECT * FROM {zoo}.dv_append_32 VERSION AS OF 4"
    for place in (3, 7, 20, 40, 64):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(Exception, match="deletion vector at byte"):
            spark.sql(query).collect()
    file.write_bytes(whole[:30])
    with pytest.raises(Exception, match="deletion vector at byte"):
        spark.sql(query).collect()
    file.write_bytes(whole)
    assert spark.sql(query).count() == 8


# --- DELETE, UPDATE and MERGE ----------------------------------------------------------------------

Named = Callable[[str], str]
LAYOUTS = {
    "plain": "TBLPROPERTIES ({0})",
    "partitioned": "PARTITIONED BY (p) TBLPROPERTIES ({0})",
    "buckets": "TBLPROPERTIES ({0}, 'bucket' = '3', 'bucket-key' = 'id')",
    "64 bits": "TBLPROPERTIES ({0}, 'deletion-vectors.bitmap64' = 'true')",
}


def made(spark: SparkSession, name: str, layout: str = "plain", rows: int = 100) -> None:
    properties = LAYOUTS[layout].format("'deletion-vectors.enabled' = 'true'")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, p INT, v STRING) {properties}")
    for first in (0, rows // 2):
        spark.sql(
            f"INSERT INTO {name} SELECT id, int(id % 3), concat('v', id) "
            f"FROM range({first}, {first + rows // 2}, 1, 1)"
        )


def table_of(lake: Lake, name: str) -> Table:
    return lake.catalog.load_table(name.removeprefix("lake."))


def found(spark: SparkSession, name: str) -> dict[int, tuple[int, str]]:
    rows = spark.table(name).collect()
    assert len({row.id for row in rows}) == len(rows)
    assert spark.sql(f"SELECT count(*) FROM {name}").collect()[0][0] == len(rows)
    return {row.id: (row.p, row.v) for row in rows}


def live(table: Table) -> dict[str, int]:
    return {
        each.file.file_name: each.file.row_count
        for each in table.manifests.live_files(table.latest_snapshot())
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_statements_write_no_untouched_row(
    spark: SparkSession, lake: Lake, table: Named, layout: str
) -> None:
    name = table("t")
    made(spark, name, layout)
    before = live(table_of(lake, name))
    model = {number: (number % 3, f"v{number}") for number in range(100)}
    spark.sql(f"DELETE FROM {name} WHERE id IN (3, 50, 51) OR v = 'v7'")
    model = {key: value for key, value in model.items() if key not in (3, 7, 50, 51)}
    assert found(spark, name) == model
    assert live(table_of(lake, name)) == before
    spark.sql(f"UPDATE {name} SET v = concat('new ', v), p = 1 WHERE id < 10")
    model |= {key: (1, f"new v{key}") for key in model if key < 10}
    assert found(spark, name) == model
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT id FROM range(90, 110)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 0, 'inserted') "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 20 THEN DELETE"
    )
    for key in range(90, 110):
        if key >= 100:
            model[key] = (0, "inserted")
        elif key % 2:
            model[key] = (model[key][0], "merged")
        else:
            del model[key]
    del model[20]
    assert found(spark, name) == model
    after = live(table_of(lake, name))
    assert before.items() <= after.items()
    assert sum(after.values()) - sum(before.values()) == 8 + 5 + 10, "rows updated, and inserted"
    spark.sql(f"DELETE FROM {name} WHERE id IN (SELECT id FROM {name} WHERE v = 'inserted')")
    model = {key: value for key, value in model.items() if value[1] != "inserted"}
    assert found(spark, name) == model
    assert sorted(table_of(lake, name).read()["id"].to_pylist()) == sorted(model)
    lake.call("compact", table=name.removeprefix("lake."))
    assert found(spark, name) == model
    assert table_of(lake, name).latest_snapshot().index_manifest is None


def test_two_deletions_at_once(spark: SparkSession, lake: Lake, table: Named) -> None:
    """Both are kept, since they delete other rows of the same file."""
    name = table("t")
    made(spark, name)
    frame = spark.sql(f"SELECT id FROM {name} WHERE id = 1")
    table_of(lake, name).delete(col("id") == 2)
    assert frame.count() == 1
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    assert set(found(spark, name)) == set(range(100)) - {1, 2}


EVERY_TYPE = """
    id,
    CAST(id * 1.5 AS DECIMAL(30, 5)) AS large,
    CAST(id / 7 AS DECIMAL(9, 2)) AS small,
    id / 3D AS ratio,
    CAST(id AS FLOAT) AS size,
    IF(id % 2 = 0, 0D, -0D) AS zero,
    IF(id % 5 = 0, NULL, concat('name ', id)) AS name,
    concat('kind ', id % 4) AS kind,
    'same' AS same,
    CAST(NULL AS INT) AS nothing,
    CAST(concat('b', id) AS BINARY) AS raw,
    id % 3 = 0 AS flag,
    date_add(DATE '1960-01-01', CAST(id AS INT)) AS day,
    timestamp_micros(id * 1000003) AS moment,
    CAST(timestamp_micros(id * 17) AS TIMESTAMP_NTZ) AS wall,
    IF(id % 7 = 0, NULL, array(id, NULL, id + 1)) AS list,
    map(concat('k', id), id) AS pairs,
    IF(id % 11 = 0, NULL, struct(id AS x, IF(id % 2 = 0, 0D, -0D) AS zero, array('a', NULL) AS y)) AS part
"""


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_values_of_every_type_stay_with_their_rows(
    spark: SparkSession, table: Named, file_format: str
) -> None:
    name, whole = table("t"), table("whole")
    made = spark.range(10_000).selectExpr(*_columns(EVERY_TYPE))
    columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in made.schema)
    for each, vectors in ((name, "true"), (whole, "false")):
        spark.sql(
            f"CREATE TABLE {each} ({columns}) "
            f"TBLPROPERTIES ('deletion-vectors.enabled' = '{vectors}', 'file.format' = '{file_format}')"
        )
        made.coalesce(1).writeTo(each).append()
    gone = "(id % 10 = 3 OR id BETWEEN 4096 AND 8191 AND id % 100 <> 0)"
    spark.sql(f"DELETE FROM {name} WHERE {gone}")
    left = spark.table(whole).where(f"NOT {gone}")
    expected_rows = _texts(left)
    assert _texts(spark.table(name)) == expected_rows
    numbered = spark.sql(f"SELECT *, _ROW_INDEX FROM {name}")
    assert _texts(numbered.drop("_ROW_INDEX")) == expected_rows
    assert numbered.where("_ROW_INDEX <> id").count() == 0


def _texts(rows: DataFrame) -> list[str]:
    """Return rows as texts, which tell -0.0 from 0.0."""
    return [json.dumps(row) for row in in_order(exact_rows(rows.toArrow()))]


def _columns(text: str) -> list[str]:
    return [line.strip().rstrip(",") for line in text.strip().splitlines()]
