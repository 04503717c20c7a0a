"""Merge engines in Spark: the connector's merge as Python's, and tables written, read and changed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from merge_histories import COLUMNS, PLANS, expected, history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

FIXTURES = Path(__file__).parents[1] / "fixtures" / "merge"


@pytest.mark.parametrize("name", PLANS)
def test_engines_merge_as_in_python(spark: SparkSession, name: str) -> None:
    plan, kinds = PLANS[name]
    conformance = spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance
    for seed in range(25):
        inputs = history(Random(f"{name} {seed}"), kinds)
        case = {
            "plan": plan.to_json(),
            "columns": [{"name": column, "type": kind} for column, kind in COLUMNS.items()],
            "inputs": [[list(row.values()) for row in rows] for rows in inputs],
        }
        merged = json.loads(conformance.merge(json.dumps(case), 1 + seed % 3, 1 + seed % 5))
        assert [row[3:] for row in merged] == expected(plan, inputs), seed


def test_damaged_sketches_are_named(spark: SparkSession) -> None:
    case = json.loads((FIXTURES / "engine_sketches.json").read_text())
    names = [column["name"] for column in case["columns"]]
    conformance = spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance
    for name, what in (("t", "a theta sketch"), ("h", "an HLL sketch")):
        at = names.index(name)
        run = next(run for run in case["inputs"] if run[0][at])
        row = [None if column in "th" else value for column, value in zip(names, run[0], strict=True)]
        row[at] = run[0][at]
        whole = base64.b64decode(row[at])
        for length in (0, 1, 7, 8, 12, 15, len(whole) - 8):
            damaged = list(row)
            damaged[at], damaged[1] = base64.b64encode(whole[:length]).decode(), row[1] + 1
            given = json.dumps(case | {"inputs": [[row], [damaged]]})
            with pytest.raises(Exception, match=f"column '{name}': a value of {length} bytes is not {what}"):
                conformance.merge(given, 1, 1)


@pytest.fixture(scope="module", autouse=True)
def namespace(lake: Lake) -> Iterator[None]:
    lake.sql("CREATE NAMESPACE lake.engines")
    yield
    lake.sql("DROP NAMESPACE lake.engines CASCADE")


def create(lake: Lake, name: str, columns: str, **options: str) -> str:
    properties = {"primary-key": "k", **options}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    lake.sql(f"CREATE TABLE lake.engines.{name} (k INT NOT NULL, {columns}) TBLPROPERTIES ({listed})")
    return f"lake.engines.{name}"


def rows(lake: Lake, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    """Read in Spark and in Python; both are the same."""
    found = sorted(map(tuple, lake.sql(f"SELECT {columns} FROM {table}").collect()), key=repr)
    if columns == "*":
        loaded = lake.catalog.load_table(table.removeprefix("lake."))
        assert sorted((tuple(row.values()) for row in loaded.read().to_pylist()), key=repr) == found
    return found


def test_partial_updates(lake: Lake) -> None:
    table = create(lake, "partial", "a INT, b STRING", **{"merge-engine": "partial-update"})
    lake.sql(f"INSERT INTO {table} VALUES (1, 10, NULL), (1, NULL, 'w'), (2, 20, 'y')")
    lake.sql(f"INSERT INTO {table} VALUES (1, NULL, 'x'), (3, NULL, NULL)")
    wanted = [(1, 10, "x"), (2, 20, "y"), (3, None, None)]
    assert rows(lake, table) == wanted
    assert rows(lake, table, "b") == [("x",), ("y",), (None,)]
    # No file holds both values of the row.
    assert [row.k for row in lake.sql(f"SELECT k FROM {table} WHERE a = 10 AND b = 'x'").collect()] == [1]
    lake.sql(f"CALL lake.sys.compact(table => '{table.removeprefix('lake.')}')")
    assert rows(lake, table) == wanted
    with pytest.raises(Exception, match="UPDATE is not supported"):
        lake.sql(f"UPDATE {table} SET a = NULL")
    with pytest.raises(Exception, match="DELETE is not supported"):
        lake.sql(f"DELETE FROM {table} WHERE k = 1")


def test_groups_with_functions(lake: Lake) -> None:
    options = {
        "merge-engine": "partial-update",
        "fields.g.sequence-group": "s",
        "fields.h.sequence-group": "t",
        "fields.s.aggregate-function": "sum",
        "fields.t.aggregate-function": "listagg",
    }
    table = create(lake, "groups", "s INT, g INT, t STRING, h INT", **options)
    lake.sql(f"INSERT INTO {table} VALUES (1, 1, 2, 'b', 2), (1, 10, 1, 'a', 1)")
    lake.sql(f"INSERT INTO {table} VALUES (1, 100, 3, 'c', NULL), (1, 1000, NULL, 'd', 3)")
    assert rows(lake, table) == [(1, 111, 3, "a,b,d", 3)]
    assert rows(lake, table, "t, s") == [("a,b,d", 111)]


def test_aggregation_by_kinds_of_rows(lake: Lake) -> None:
    options = {
        "merge-engine": "aggregation",
        "fields.total.aggregate-function": "sum",
        "fields.tags.aggregate-function": "collect",
        "rowkind.field": "op",
    }
    table = create(lake, "sums", "total BIGINT, tags ARRAY<STRING>, op STRING", **options)
    lake.sql(f"INSERT INTO {table} VALUES (1, 5, array('a'), '+I'), (1, 7, array('b', 'c'), '+I')")
    lake.sql(f"INSERT INTO {table} VALUES (1, 5, array('b'), '-D'), (2, 1, NULL, '-D')")
    assert rows(lake, table, "k, total, tags") == [(1, 7, ["a", "c"])]
    lake.sql(f"INSERT INTO {table} VALUES (2, 4, NULL, '+I')")
    assert rows(lake, table, "k, total") == [(1, 7), (2, 3)]
    # Neither file holds the sum, and a limit or an order must not be fooled by what they hold.
    assert [row.k for row in lake.sql(f"SELECT k FROM {table} WHERE total = 7").collect()] == [1]
    assert lake.sql(f"SELECT k FROM {table} ORDER BY total DESC LIMIT 1").collect()[0].k == 1
    assert lake.sql(f"SELECT max(total) AS m, count(*) AS n FROM {table}").collect()[0] == (7, 2)
    with pytest.raises(Exception, match="as \\+I, -U, \\+U or -D"):
        lake.sql(f"INSERT INTO {table} VALUES (3, 1, NULL, 'I')")


def test_retracts_that_cannot_be_taken_are_refused_at_write(lake: Lake) -> None:
    options = {"merge-engine": "aggregation", "fields.a.aggregate-function": "max", "rowkind.field": "op"}
    table = create(lake, "maxima", "a INT, op STRING", **options)
    lake.sql(f"INSERT INTO {table} VALUES (1, 5, '+I')")
    with pytest.raises(Exception, match="cannot be taken back from columns a \\(max\\)"):
        lake.sql(f"INSERT INTO {table} VALUES (1, 5, '-D')")
    assert rows(lake, table, "k, a") == [(1, 5)]


def test_deletions_that_remove(lake: Lake) -> None:
    options = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
    table = create(lake, "removing", "a INT, b STRING", **options)
    lake.sql(f"INSERT INTO {table} VALUES (1, 10, 'x'), (2, 20, 'y')")
    lake.sql(f"DELETE FROM {table} WHERE k = 1")
    assert rows(lake, table) == [(2, 20, "y")]


def test_first_row_after_a_compaction(lake: Lake) -> None:
    table = create(lake, "first", "v STRING", **{"merge-engine": "first-row"})
    lake.sql(f"INSERT INTO {table} VALUES (1, 'a'), (1, 'b')")
    assert rows(lake, table) == []
    lake.sql(f"INSERT INTO {table} VALUES (1, 'c'), (2, 'd')")
    lake.sql(f"CALL lake.sys.compact(table => '{table.removeprefix('lake.')}')")
    assert rows(lake, table) == [(1, "a"), (2, "d")]
    lake.sql(f"INSERT INTO {table} VALUES (2, 'e'), (3, 'f')")
    assert rows(lake, table) == [(1, "a"), (2, "d")]


def test_deletions_that_are_passed_over(lake: Lake) -> None:
    table = create(
        lake, "ignoring", "v STRING, op STRING", **{"ignore-delete": "true", "rowkind.field": "op"}
    )
    lake.sql(f"INSERT INTO {table} VALUES (1, 'a', '+I')")
    lake.sql(f"INSERT INTO {table} VALUES (1, 'b', '-D'), (2, 'c', '+U')")
    assert rows(lake, table, "k, v") == [(1, "a"), (2, "c")]
    with pytest.raises(Exception, match="passes over deletions"):
        lake.sql(f"DELETE FROM {table} WHERE k = 1")
