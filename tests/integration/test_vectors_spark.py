"""Tables with deletion vectors in Spark: counts, limits, positions, damage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from exact_rows import exact_rows, in_order
from zoo import expected, unpack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
