"""A join that is not broadcast: what Spark's runtime Bloom filter saves."""

from __future__ import annotations

from harness import emit, interleaved, ratio

from lockgate import Lake

ROWS, FILES = 4_000_000, 40
_CONFS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
}
_QUERY = "SELECT sum(f.v), max(f.text) FROM lake.b.joined f JOIN lake.b.few d ON f.id = d.k WHERE d.kind = 0"
_SWITCH = "spark.sql.optimizer.runtime.bloomFilter.enabled"


def bloom_ratio(lake: Lake, repetitions: int) -> None:
    """Time the join with its Bloom filter and without; AssertionError if the plans are not so."""
    spark = lake.spark
    lake.sql("CREATE TABLE lake.b.joined (id BIGINT, v BIGINT, text STRING)")
    rows = f"SELECT id, id % 1000 AS v, repeat(CAST(id AS STRING), 10) AS text FROM range({ROWS})"
    lake.sql(rows).repartitionByRange(FILES, "id").writeTo("lake.b.joined").append()
    lake.sql(f"CREATE TABLE lake.b.few AS SELECT id * {ROWS // 100} AS k, id % 5 AS kind FROM range(100)")
    for key, value in _CONFS.items():
        spark.conf.set(key, value)

    def run(switch: str) -> None:
        spark.conf.set(_SWITCH, switch)
        frame = spark.sql(_QUERY)
        frame.collect()
        if ("might_contain" in frame._jdf.queryExecution().executedPlan().toString()) is not (
            switch == "true"
        ):
            raise AssertionError("the runtime Bloom filter is not where it should be")

    times = interleaved({"with": lambda: run("true"), "without": lambda: run("false")}, repetitions)
    emit(
        "store", "shuffle_join_bloom_ratio", ratio(times["with"], times["without"]), "x", "without the filter"
    )
