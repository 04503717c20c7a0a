"""Spark's queries of tables with bounds of whole manifests open only those that may list a match."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from lockgate.framework.store.manifests import manifest_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
COMMITS = 6


def opened(lake: Lake, query: str) -> str:
    """The line of the report about manifests."""
    lines = str(lake.explain_pushdown(query)).splitlines()
    return next((line for line in lines if line.strip().startswith("manifests")), "")


def test_ranges_and_points(
    spark: SparkSession, lake: Lake, table: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, at TIMESTAMP, day INT) PARTITIONED BY (day) "
        "TBLPROPERTIES ('index.bounds.columns' = 'auto')"
    )
    for number in range(COMMITS):
        spark.sql(
            f"INSERT INTO {name} SELECT id, timestamp_seconds(id * 3600), CAST(id div 20 AS INT) "
            f"FROM range({number * 10}, {number * 10 + 10})"
        )
    parsed: list[str] = []
    parse = manifest_files.ManifestFiles._parsed

    def spied(self: Any, file: str, *more: Any) -> Any:
        parsed.append(file)
        return parse(self, file, *more)

    monkeypatch.setattr(manifest_files.ManifestFiles, "_parsed", spied)
    for cache in ("_manifests", "_snapshots"):
        monkeypatch.setattr(manifest_files, cache, manifest_files.ParsedCache(0))
    for condition, manifests, ids in (
        ("id BETWEEN 31 AND 33", 1, [31, 32, 33]),
        ("id IN (5, 15)", 2, [5, 15]),
        ("at = timestamp_seconds(42 * 3600)", 1, [42]),
        ("day = 1 AND id < 30", 1, [*range(20, 30)]),
        ("day = 2", 2, [*range(40, 60)]),
        ("id = 7 OR at > timestamp_seconds(57 * 3600)", 2, [7, 58, 59]),
        ("id > 1000", 0, []),
        ("id % 30 = 7", COMMITS, [7, 37]),
    ):
        query = f"SELECT id FROM {name} WHERE {condition}"
        parsed.clear()
        assert sorted(row.id for row in spark.sql(query).collect()) == ids
        read = {file for file in parsed if file.startswith("manifest-") and "list" not in file}
        assert len(read) == manifests, condition
        if manifests < COMMITS:
            assert f"({manifests} of {COMMITS} opened)" in opened(lake, query)


def test_writes_of_a_stream_and_deletes(spark: SparkSession, lake: Lake, table: Named) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING) TBLPROPERTIES "
        "('index.bounds.columns' = 'id,name', 'deletion-vectors.enabled' = 'true')"
    )
    for number in range(3):
        spark.range(number * 10, number * 10 + 10).selectExpr("id", "concat('n', id) name").writeTo(
            name
        ).append()
    spark.sql(f"DELETE FROM {name} WHERE id = 14")
    spark.sql(f"UPDATE {name} SET name = 'x' WHERE id = 5")
    assert spark.sql(f"SELECT name FROM {name} WHERE id IN (5, 14, 15) ORDER BY id").collect() == [
        ("x",),
        ("n15",),
    ]
    assert "manifests" in opened(lake, f"SELECT * FROM {name} WHERE id = 25")
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE name >= 'n2' AND name < 'n3'").collect() == [(11,)]
