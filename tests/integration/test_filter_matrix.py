"""A condition keeps the same rows, pushed down or not: every type, comparison, and shape of data."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import filter_matrix as matrix
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

# Properties of the tables, and whether Python rewrites their files once they are there.
KEY = "'primary-key' = 'id', 'bucket' = '1'"
BLOOM = (
    "'orc.bloom.filter.columns' = '"
    + ",".join(name for name, kind in matrix.COLUMNS.items() if kind not in ("BINARY", "BOOLEAN", "TINYINT"))
    + "'"
)
TABLES = {
    "append": "'source.split.driver-max-size' = '0'",
    "python": "'source.split.driver-max-size' = '0'",
    "on the driver": "'source.split.driver-max-size' = '100 mb'",
    "bloom": f"{BLOOM}, 'source.split.driver-max-size' = '0'",
    "python bloom": f"{BLOOM}, 'source.split.driver-max-size' = '0'",
    "key": f"{KEY}, 'source.split.driver-max-size' = '0'",
    "python key": f"{KEY}, 'source.split.driver-max-size' = '0'",
    "encrypted": f"'orc.encrypt' = 'pii:{','.join(matrix.COLUMNS)}'",
}
IN_A_QUERY = 50


@pytest.fixture(scope="module")
def rows(lake: Lake) -> Iterator[str]:
    """The database of the tables."""
    lake.catalog.create_namespace("matrix")
    yield "lake.matrix"
    lake.catalog.drop_namespace("matrix", cascade=True)


def make(lake: Lake, name: str, kind: str) -> str:
    """Make the table of a kind: one commit a file, in a key table two files for every row of the first."""
    short = name.removeprefix("lake.")
    if lake.catalog.table_exists(short):
        return name
    lake.sql(f"CREATE TABLE {name} ({matrix.definition()}) TBLPROPERTIES ({TABLES[kind]})")
    for query in matrix.queries():
        if kind.startswith("python"):
            lake.catalog.load_table(short).append(lake.sql(query).toArrow())
        else:
            lake.sql(f"INSERT INTO {name} {query}")
    if kind == "key":  # older versions of these rows, in a file that lies under newer ones, must not pass
        lake.sql(f"INSERT INTO {name} {next(matrix.queries())}")
    return name


def wrong(spark: SparkSession, table: str, asked: list[str]) -> list[str]:
    """Return the conditions that keep other rows as filters than as columns."""
    found = []
    for part in matrix.parts(asked, IN_A_QUERY):
        numbers = spark.sql(matrix.as_columns(table, part)).collect()[0]
        wanted = {i: (numbers[2 * i], numbers[2 * i + 1]) for i in range(len(part)) if numbers[2 * i]}
        kept = {row[0]: (row[1], row[2]) for row in spark.sql(matrix.as_filters(table, part)).collect()}
        found += [text for i, text in enumerate(part) if wanted.get(i) != kept.get(i)]
    return found


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.long)])
def test_some_of_the_matrix(lake: Lake, rows: str, count: int) -> None:
    """Other conditions, of another table, each day; `--slow` asks all of all."""
    today = datetime.datetime.now(datetime.UTC).date()
    kind = list(TABLES)[today.toordinal() % len(TABLES)]
    asked = random.Random(today.toordinal()).sample(matrix.conditions(), count)
    assert wrong(lake.spark, make(lake, f"{rows}.some_{count}", kind), asked) == [], (kind, today)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kind", ["append", pytest.param("python key", marks=pytest.mark.long)])
def test_rows_are_deleted_by_some_of_it(lake: Lake, rows: str, kind: str) -> None:
    today = datetime.datetime.now(datetime.UTC).date()
    name = make(lake, f"{rows}.deleted_{kind.replace(' ', '_')}", kind)
    left = {row.id for row in lake.spark.table(name).select("id").collect()}
    for number, text in enumerate(random.Random(today.toordinal()).sample(matrix.conditions(), 4)):
        few = f"({text}) AND id % 5 = {number}"
        gone = {row.id for row in lake.sql(f"SELECT id, ({few}) AS c FROM {name}").collect() if row.c}
        lake.sql(f"DELETE FROM {name} WHERE {few}")
        left -= gone
        assert {row.id for row in lake.spark.table(name).select("id").collect()} == left, (text, today)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kind", TABLES)
def test_all_of_the_matrix(lake: Lake, rows: str, kind: str) -> None:
    name = make(lake, f"{rows}.{kind.replace(' ', '_')}", kind)
    assert wrong(lake.spark, name, matrix.conditions()) == []
