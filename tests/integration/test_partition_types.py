"""Each type as partition column, under both styles of folder names: write, read, prune, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

# Two values of each type that Spark can write.
VALUES = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("-128Y", "5Y"),
    "SMALLINT": ("-32768S", "5S"),
    "INT": ("-5", "2147483647"),
    "BIGINT": ("-9223372036854775808", "5L"),
    "FLOAT": ("1.5F", "float('NaN')"),
    "DOUBLE": ("1e10D", "double('-Infinity')"),
    "DECIMAL(9, 2)": ("1.50", "-0.01"),
    "DECIMAL(30, 10)": ("12345678901234567890.5", "0"),
    "STRING": ("'a/b=%'", "' '"),
    "CHAR(3)": ("'a'", "'abc'"),
    "VARCHAR(5)": ("'ä'", "'b'"),
    "DATE": ("DATE '1500-02-28'", "DATE '2024-02-29'"),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ '1969-12-31 23:59:50.12'", "TIMESTAMP_NTZ '2024-02-29 12:30:00'"),
    "TIMESTAMP": ("TIMESTAMP '1969-12-31 23:59:50.000001'", "TIMESTAMP '2024-02-29 12:30:00'"),
}


def ids(spark: SparkSession, query: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(query).collect())


@pytest.mark.parametrize("legacy", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_every_type(spark: SparkSession, lake: Lake, table: Named, legacy: str) -> None:
    kinds = [kind for kind in VALUES if legacy == "true" or kind != "TIMESTAMP"]
    names = [f"p{i}" for i in range(len(kinds))]
    name = table("t")
    columns = ", ".join(f"{column} {kind}" for column, kind in zip(names, kinds, strict=True))
    spark.sql(
        f"CREATE TABLE {name} (id INT, {columns}) PARTITIONED BY ({', '.join(names)}) "
        f"TBLPROPERTIES ('partition.legacy-name' = '{legacy}', 'source.split.driver-max-size' = '0')"
    )
    rows = [[str(place), *(VALUES[kind][place] for kind in kinds)] for place in (0, 1)]
    rows.append(["2", *("NULL" for _ in kinds)])
    spark.sql(f"INSERT INTO {name} VALUES {', '.join('(' + ', '.join(row) + ')' for row in rows)}")
    # Python writes into the very folders that Spark has written.
    stored = lake.catalog.load_table(name.removeprefix("lake."))
    before = stored.read()
    assert sorted(before["id"].to_pylist()) == [0, 1, 2]
    stored.append(before)
    folders = {path.rpartition("/")[0] for split in stored.scan().splits for path in split.paths}
    assert len(folders) == 3

    queries, wanted = [], set()
    for i, (column, kind) in enumerate(zip(names, kinds, strict=True)):
        for place, condition in (
            (0, f"{column} = {VALUES[kind][0]}"),
            (1, f"{column} IN ({VALUES[kind][1]})"),
            (2, f"{column} IS NULL"),
        ):
            queries.append(f"SELECT {i * 3 + place} AS asked, id FROM {name} WHERE {condition}")
            wanted.add((i * 3 + place, place))
    found = [(row.asked, row.id) for row in spark.sql(" UNION ALL ".join(queries)).collect()]
    assert set(found) == wanted
    assert len(found) == 2 * len(wanted)
    explained = lake.explain_pushdown("SELECT " + queries[3].partition("AS asked,")[2])
    assert "2 of 6 files" in str(explained)

    everything = " AND ".join(
        f"{column} <=> {VALUES[kind][0]}" for column, kind in zip(names, kinds, strict=True)
    )
    spark.sql(f"DELETE FROM {name} WHERE {everything}")
    assert ids(spark, f"SELECT id FROM {name}") == [1, 1, 2, 2]
    stored = lake.catalog.load_table(name.removeprefix("lake."))
    assert sorted(stored.read()["id"].to_pylist()) == [1, 1, 2, 2]
    spark.sql(f"UPDATE {name} SET id = 7 WHERE {names[0]} IS NULL")
    assert ids(spark, f"SELECT id FROM {name}") == [1, 1, 7, 7]


def test_an_instant_is_refused_in_the_newer_style(spark: SparkSession, table: Named) -> None:
    create = f"CREATE TABLE {table('t')} (id INT, p TIMESTAMP) PARTITIONED BY (p)"
    with pytest.raises(Exception, match="time zone of the writer"):
        spark.sql(f"{create} TBLPROPERTIES ('partition.legacy-name' = 'false')")
    spark.sql(create)
    with pytest.raises(Exception, match="time zone of the writer"):
        spark.sql(f"ALTER TABLE {table('t')} SET TBLPROPERTIES ('partition.legacy-name' = 'false')")
