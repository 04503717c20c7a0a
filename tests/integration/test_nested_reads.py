"""Fields inside columns: the ones that are asked for are read, and no others; filters on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.sources.file_source import open_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
SCHEMA = (
    "id INT, place STRUCT<zip: INT, town: STRUCT<name: STRING, size: BIGINT>>, "
    "orders ARRAY<STRUCT<item: STRING, many: INT>>, tags MAP<STRING, STRUCT<at: INT, by: STRING>>"
)
# Columns of the file by number, the root being 0: 5 is place.town.name, 9 orders.item, 15 tags.by.
HIDDEN = {"place.town.name": 5, "orders.item": 9, "tags.by": 15}


@pytest.fixture(params=["append", "key"])
def people(request: pytest.FixtureRequest, spark: SparkSession, table: Named) -> str:
    """Three files of 1000 rows each; `place.zip` grows from row to row, every 100th place is null."""
    name = table("people")
    key = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')" if request.param == "key" else ""
    spark.sql(f"CREATE TABLE {name} ({SCHEMA}) {key}")
    for start in (0, 1000, 2000):
        spark.sql(f"""
            INSERT INTO {name} SELECT CAST(id AS INT),
                IF(id % 100 = 0, NULL, named_struct('zip', id, 'town',
                    named_struct('name', concat('town', id), 'size', id * 10))),
                array(named_struct('item', concat('item', id), 'many', id)),
                map(concat('k', id), named_struct('at', id, 'by', concat('by', id)))
            FROM range({start}, {start + 1000}, 1, 1)""")
    return name


def scan_of(frame: DataFrame) -> Any:
    plan: Any = frame._jdf.queryExecution().executedPlan()
    return plan.collectLeaves().head()


def columns_read(frame: DataFrame) -> str:
    return str(scan_of(frame).scan().readSchema().simpleString())


def test_only_wanted_fields_are_read(spark: SparkSession, people: str) -> None:
    for select, columns in [
        ("place.zip", "struct<place:struct<zip:int>>"),
        ("place.town.size, id", "struct<id:int,place:struct<town:struct<size:bigint>>>"),
        ("place.town", "struct<place:struct<town:struct<name:string,size:bigint>>>"),
        ("orders.many", "struct<orders:array<struct<many:int>>>"),
        ("map_values(tags).at", "struct<tags:map<string,struct<at:int>>>"),
        ("1 AS one", "struct<>"),
    ]:
        assert columns_read(spark.sql(f"SELECT {select} FROM {people} WHERE true")) == columns
    frame = spark.sql(f"SELECT place.town.name FROM {people} WHERE place.zip = 1017")
    assert columns_read(frame) == "struct<place:struct<zip:int,town:struct<name:string>>>"
    assert frame.collect() == [("town1017",)]


def spoil(path: Path, column: int) -> None:
    """Overwrite what a file holds of a column."""
    source = open_source(str(path), None)
    tail = read_tail(source)
    streams = [
        stream
        for index in range(len(tail.footer.stripes))
        for stream in read_stripe(source, tail, index).streams
        if stream.column == column
    ]
    source.close()
    data = bytearray(path.read_bytes())
    for stream in streams:
        data[stream.offset : stream.offset + stream.length] = b"\xff" * stream.length
    path.write_bytes(data)
    assert sum(stream.length for stream in streams) > 100


def test_what_is_pruned_is_not_read_from_files(spark: SparkSession, lake: Lake, people: str) -> None:
    wanted = spark.sql(
        f"SELECT id, place.zip, place.town.size, orders.many, map_values(tags).at FROM {people}"
    )
    before = sorted(map(repr, wanted.collect()))
    # A file of a key table begins with the key, the number of the row and its kind.
    shift = 3 if lake.catalog.load_table(people.removeprefix("lake.")).schema.has_primary_key else 0
    for split in lake.catalog.load_table(people.removeprefix("lake.")).scan().splits:
        for path in split.paths:
            for column in HIDDEN.values():
                spoil(Path(path), column + shift)
    assert sorted(map(repr, wanted.collect())) == before
    for name in HIDDEN:
        with pytest.raises(Exception, match=r"(?i)orc|chunk|compress|buffer|corrupt|malformed"):
            spark.sql(f"SELECT {name.replace('tags.', 'map_values(tags).')} FROM {people}").collect()


def test_filters_on_fields(spark: SparkSession, lake: Lake, people: str) -> None:
    for condition, expected in [
        ("place.zip = 1017", [1017]),
        ("place.zip BETWEEN 2997 AND 3500", [2997, 2998, 2999]),
        ("place.town.size < 30", [1, 2]),
        ("place.town.name IN ('town5', 'town2005')", [5, 2005]),
        ("place.town.name LIKE 'town199%' AND place.zip <> 1999", [199, *range(1990, 1999)]),
        ("place.zip IS NULL AND id < 250", [0, 100, 200]),
        ("place IS NULL AND id > 2750", [2800, 2900]),
        ("NOT (place.zip <= 2997)", [2998, 2999]),
        ("orders[0].many = 7", [7]),
        ("tags['k9'].at = 9", [9]),
    ]:
        frame = spark.sql(f"SELECT id FROM {people} WHERE {condition}")
        assert sorted(row.id for row in frame.collect()) == expected, condition
    (report,) = lake.explain_pushdown(
        f"SELECT id FROM {people} WHERE place.zip = 1017 AND orders[0].many > 1"
    )
    assert "place.zip = 1017" in report.skipping
    assert any("orders" in text for text, _ in report.remaining)
    assert any(text == "place.zip = 1017" for text, _ in report.remaining)
