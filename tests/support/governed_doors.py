"""Ways to run a query of a user, which all return its rows: statements and DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

Door = Callable[["SparkSession", str], Sequence["Row"]]


def _plain(session: SparkSession, query: str) -> Sequence[Row]:
    return session.sql(query).collect()


def _quoted(session: SparkSession, query: str) -> Sequence[Row]:
    text = query.replace("'", "\\'")
    return session.sql(f"EXECUTE IMMEDIATE '{text}'").collect()


def _view(session: SparkSession, query: str) -> Sequence[Row]:
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen AS {query}")
    return session.sql("SELECT * FROM seen").collect()


def _shared_view(session: SparkSession, query: str) -> Sequence[Row]:
    session.sql(query).createOrReplaceGlobalTempView("seen_by_all")
    return session.sql("SELECT * FROM global_temp.seen_by_all").collect()


def _cached(session: SparkSession, query: str) -> Sequence[Row]:
    frame = session.sql(query).cache()
    try:
        return frame.collect()
    finally:
        frame.unpersist()


def _cached_table(session: SparkSession, query: str) -> Sequence[Row]:
    session.sql(f"CACHE TABLE kept AS {query}")
    try:
        return session.table("kept").collect()
    finally:
        session.sql("UNCACHE TABLE kept")
        session.sql("DROP VIEW kept")


def _common(session: SparkSession, query: str) -> Sequence[Row]:
    return session.sql(f"WITH q AS ({query}) SELECT * FROM q").collect()


def _sampled(session: SparkSession, query: str) -> Sequence[Row]:
    return session.sql(f"SELECT * FROM ({query}) TABLESAMPLE (100 PERCENT)").collect()


def _observed(session: SparkSession, query: str) -> Sequence[Row]:
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    return session.sql(query).observe(Observation(), count(lit(1)).alias("rows")).collect()


def _described(session: SparkSession, query: str) -> Sequence[Row]:
    session.sql(f"DESCRIBE QUERY {query}").collect()
    session.sql(f"EXPLAIN FORMATTED {query}").collect()
    return _plain(session, query)


def _of_driver(session: SparkSession, query: str) -> Sequence[Any]:
    return list(session.sql(query).toLocalIterator())


def _checkpoint(session: SparkSession, query: str) -> Sequence[Row]:
    return session.sql(query).localCheckpoint().collect()


DOORS: dict[str, Door] = {
    "plain": _plain,
    "quoted": _quoted,
    "view": _view,
    "shared view": _shared_view,
    "cached": _cached,
    "cached table": _cached_table,
    "common": _common,
    "sampled": _sampled,
    "observed": _observed,
    "described": _described,
    "of the driver": _of_driver,
    "checkpoint": _checkpoint,
}
