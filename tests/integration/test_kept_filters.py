"""`explain_pushdown` names every filter of a query, those too that Spark offers to no source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import udf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

# Conditions, and a part of the text by which the explanation names each.
KEPT = {
    "s RLIKE 'ab+c'": "RLIKE",
    "s LIKE 'a%b%c'": "LIKE",
    "s NOT LIKE 'a%b%c'": "NOT",
    "LOWER(s) LIKE 'a%b%c'": "lower",
    "array_contains(tags, 'x')": "array_contains",
    "id > rand()": "rand",
    "id > (SELECT max(id) - 1 FROM {t})": "scalarsubquery",
    "id IN (SELECT id + 1 FROM {t})": "id",
    "NOT EXISTS (SELECT 1 FROM {t} o WHERE o.id = t.id + 7)": "id",
    "shout(s) = 'AB'": "shout",
    "length(s) > 1 AND s RLIKE 'b' AND id = 1": "RLIKE",
}


@pytest.fixture(scope="module")
def texts(spark: SparkSession, shared_table: Named) -> str:
    spark.udf.register("shout", udf(lambda text: text.upper(), "string", useArrow=False))
    name = shared_table("texts")
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING, tags ARRAY<STRING>)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'abc', array('x')), (2, 'b', array('y'))")
    return name


@pytest.mark.parametrize("condition", KEPT)
def test_what_spark_keeps_remains(lake: Lake, texts: str, condition: str) -> None:
    sql = f"SELECT id FROM {texts} t WHERE {condition.format(t=texts)}"
    explained = lake.explain_pushdown(sql)
    remaining = [text for scan in explained for text, _ in scan.remaining]
    assert any(KEPT[condition].lower() in text.lower() for text in remaining), str(explained)


def test_a_filter_that_was_offered_is_named_once(lake: Lake, texts: str) -> None:
    sql = f"SELECT id FROM {texts} WHERE id > 0 AND s LIKE 'a%' AND upper(s) = 'AB' AND s RLIKE 'x'"
    (scan,) = lake.explain_pushdown(sql)
    named = [text for text, _ in scan.remaining]
    assert len(named) == len(set(named))
    assert sum("id" in text and "0" in text for text in named) == 1
    assert sum("RLIKE" in text for text in named) == 1
    assert sum("upper" in text.lower() for text in named) == 1
    # A filter above a grouping is one of its groups, not of the rows of the scan.
    (scan,) = lake.explain_pushdown(f"SELECT s, count(*) FROM {texts} GROUP BY s HAVING count(*) > 5")
    assert scan.remaining == ()
