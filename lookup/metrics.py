"""What a streaming query's progress says of its lookups, as observed metrics.

In `StreamingQueryProgress.observedMetrics`, under the lookup's name, for each batch: `rows`, `matched`,
`hit_rate`, `snapshot`, `lag_millis`, `cache_rows`, `cache_bytes`, `build_millis`,
`failures` (refreshes that failed in a row), `warning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions

from lockgate.lookup.strategy import SPARK_FROM

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockgate.lookup.spec import LookupSpec

TOO_LARGE = "the batch is about as large as the table: lookup.strategy=spark would be faster"
TOO_SMALL = "the batch is small beside the table: lookup.strategy=lookup would be faster"


def observed(
    stream: DataFrame,
    rows: DataFrame,
    spec: LookupSpec,
    found: Column,
    snapshot: Column,
    prefix: str,
    state: Sequence[str],
    *,
    by_spark: bool = False,
) -> DataFrame:
    """Observe `rows`, which hold for each row of the stream whether it was `found`, and the pin's columns."""
    count, matched = functions.count(functions.lit(1)), functions.count_if(found)
    cached = functions.max(f"{prefix}_cache_rows")
    large = count >= cached * SPARK_FROM
    if by_spark:
        warning = functions.when((count > 0) & ~large, TOO_SMALL)
    else:
        warning = functions.when((count > 0) & large, TOO_LARGE)
    return rows.observe(
        _name(stream, spec),
        count.alias("rows"),
        matched.alias("matched"),
        functions.try_divide(matched, count).alias("hit_rate"),
        functions.max(snapshot).alias("snapshot"),
        *(functions.max(f"{prefix}_{column}").alias(column) for column in state),
        warning.alias("warning"),
    )


def _name(stream: DataFrame, spec: LookupSpec) -> str:
    # Two lookups of one query on one table need two names, the same ones at its next start.
    name = f"lookup {spec.identifier}"
    plan = stream._jdf.queryExecution().logical().toString()
    taken = plan.count(f"CollectMetrics {name}")
    return f"{name} {taken + 1}" if taken else name
