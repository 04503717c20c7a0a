"""Lockgate's rules in Spark's planner: a session without them, and conditions that Spark cannot translate."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockgate.framework.spark.bridge.connector_jars import jar
from lockgate.framework.spark.session.session import (
    CATALOG_CLASS,
    EXTENSIONS_CLASS,
    EXTENSIONS_CONF,
    PLUGIN_CLASS,
)

if TYPE_CHECKING:
    from lockgate import Lake

Named = Callable[[str], str]

ROWS = """
SELECT * FROM VALUES
  (1L, 1, true, DATE'2024-01-01', 'true', 1), (2L, 2, false, DATE'9999-12-31', 'false', 1),
  (3L, NULL, NULL, NULL, NULL, 2),
  (NULL, 4, true, DATE'2020-02-02', 'true', 2), (7L, 1, false, NULL, 'false', NULL)
AS t(id, n, b, c1, s, p)
"""
# Without the extension each of these ends in `assertion failed`, in Spark's V2ExpressionBuilder.
FAILING = [
    "(id = 1.5BD) IS NOT TRUE",
    "coalesce(id = 1.5BD, FALSE)",
    "coalesce(id <> 1.5BD, FALSE)",
    "coalesce(id IN (1.5BD, 2.5BD), TRUE)",
    "(id < 99999999999999) IS NOT TRUE",
    "DATE'9999-12-31' <> c1 OR (((id IN (2L, 2L, 7L)) IS NULL) OR NOT ((id = -0.5) IS NOT TRUE))",
    "((n = 1.5D) IS NOT TRUE) IS NULL",
    "(id > 2 AND n > 1) <=> (n < 3 OR (id NOT IN (1, 2)) IS NOT TRUE)",
    "(id > 2 AND n = 1.5BD) <=> (n < 3 OR id = 2.5BD)",
    "CASE WHEN id = 1.5BD THEN n > 1 ELSE id > 3 END IS NOT FALSE",
    "if(id = 1.5BD, 1, 2) = 2 AND n > 1",
    "(b AND id = 1.5BD) IS NULL",
    "(b OR id = 1.5BD) IS NOT NULL",
    "NOT coalesce(NOT (id = 1.5BD), b)",
    "coalesce(id = 1.5BD OR CAST(s AS BOOLEAN), FALSE)",
    "coalesce(CAST(s AS BOOLEAN) AND b, TRUE)",
    "(p = 1.5BD) IS NOT TRUE AND p = 1",
]
# Rarer, and long.
LONG = ("subquery", "aggregate")
SHAPES = {
    "WHERE": "SELECT id, n FROM {t} WHERE {c}",
    "subquery": "SELECT id FROM range(9) WHERE id IN (SELECT id FROM {t} WHERE {c})",
    "ORDER BY": "SELECT id, n FROM {t} ORDER BY {c}, id LIMIT 3",
    "alias": "SELECT id, {c} AS x FROM {t} ORDER BY x DESC, id LIMIT 3",
    "aggregate": "SELECT max({c}) AS m, count_if({c}) AS n FROM {t} GROUP BY {c}",
}


@pytest.fixture(scope="module")
def pair(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The same rows as a table and as parquet files."""
    spark, folder = lake.spark, str(tmp_path_factory.mktemp("extensions") / "rows")
    rows = spark.sql(ROWS)
    rows.coalesce(1).write.parquet(folder)
    lake.catalog.create_namespace("extensions")
    rows.writeTo("lake.extensions.rows").partitionedBy(rows.p).create()
    spark.read.parquet(folder).createOrReplaceTempView("extensions_rows")
    return "lake.extensions.rows", "extensions_rows"


@pytest.mark.parametrize(
    "shape", [pytest.param(each, marks=[pytest.mark.slow] if each in LONG else []) for each in SHAPES]
)
def test_conditions_that_spark_cannot_translate(lake: Lake, pair: tuple[str, str], shape: str) -> None:
    def answers(table: str) -> list[str]:
        queries = (SHAPES[shape].format(t=table, c=each) for each in FAILING)
        return sorted(map(str, lake.sql(" UNION ALL ".join(numbered(queries))).collect()))

    ours, theirs = map(answers, pair)
    assert ours == theirs
    assert len(theirs) > len(FAILING)


def numbered(queries: Iterable[str]) -> Iterator[str]:
    return (f"SELECT {number} AS asked, * FROM ({query})" for number, query in enumerate(queries))


@pytest.mark.parametrize("condition", FAILING[::4])
def test_rows_are_changed_by_such_conditions(
    lake: Lake, pair: tuple[str, str], table: Named, condition: str
) -> None:
    name = table("rows")
    lake.sql(f"CREATE TABLE {name} AS SELECT * FROM {pair[1]}")
    lake.sql(f"UPDATE {name} SET n = -1 WHERE {condition}")
    changed = f"SELECT id, if({condition}, -1, n) AS n, b, c1, s, p FROM {pair[1]}"
    assert rows_of(lake, f"SELECT * FROM {name}") == rows_of(lake, changed)
    lake.sql(f"DELETE FROM {name} WHERE {condition}")
    left = f"SELECT * FROM ({changed}) WHERE ({condition}) IS NOT TRUE"
    assert rows_of(lake, f"SELECT * FROM {name}") == rows_of(lake, left)


def rows_of(lake: Lake, query: str) -> list[str]:
    return sorted(map(str, lake.sql(query).collect()))


def test_the_rest_of_a_filter_is_pushed(lake: Lake, pair: tuple[str, str]) -> None:
    query = f"SELECT id FROM {pair[0]} WHERE p = 1 AND coalesce(id = 1.5BD, FALSE)"
    text = str(lake.explain_pushdown(query))
    assert "accepted     p = 1  (guaranteed)" in text
    assert "remaining    coalesce(" in text


def test_rules_are_there_once_in_every_session(lake: Lake) -> None:
    lake.sql("SELECT 1").collect()
    for session in (lake.spark, lake.spark.newSession()):
        session.sql("SELECT 1").collect()
        session.sql("SELECT 2").collect()
        rules = session._jsparkSession.experimental().extraOptimizations()
        names = [rules.apply(at).ruleName().rpartition(".")[2] for at in range(rules.size())]
        # Policies of an earlier test leave a rule that does nothing without them.
        assert sorted(set(names) - {"SealedBarrier$Seal"}) == [
            "ChangingSides",
            "LargeSides",
            "RemainingConditions",
            "ResultCacheRule",
            "Rewrites",
            "RuntimeBlooms",
            "SmallSides",
            "Untranslatable$Unwrapping",
        ]
        assert len(names) == len(set(names))


@pytest.mark.cluster
def test_a_session_that_started_without_the_rules(tmp_path: Path) -> None:
    """Plain confs as of a session that somebody else has made; what is not there is said at `attach`."""
    code = """
        import sys, json, lockgate
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        for key, value in json.loads(sys.argv[1]).items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        for use in (lockgate.attach, lambda spark: spark.sql("SHOW NAMESPACES IN lake")):
            try:
                use(spark)
            except Exception as error:
                print(type(error).__name__, error)
        spark.stop()
        """
    plain = {
        "spark.jars": str(jar()),
        "spark.plugins": PLUGIN_CLASS,
        "spark.sql.catalog.lake": CATALOG_CLASS,
        "spark.sql.catalog.lake.warehouse": str(tmp_path / "warehouse"),
        EXTENSIONS_CONF: "org.else.None",
        "spark.log.level": "OFF",
    }
    command = [
        sys.executable,
        "-W",
        "ignore::ResourceWarning",
        "-c",
        textwrap.dedent(code),
        json.dumps(plain),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.startswith("BridgeError")
    assert (
        f"start it with {EXTENSIONS_CONF}=org.else.None,{EXTENSIONS_CLASS} (lockgate.configure" in done.stdout
    )
    assert "this Spark session runs without Lockgate's rules: start it with" in done.stdout
