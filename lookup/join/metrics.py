"""Observed metrics of lookups in a streaming query's progress.

In `StreamingQueryProgress.observedMetrics`, under the lookup's name, for each batch: `rows`, `matched`,
`hit_rate`, `snapshot`, `lag_millis`, `cache_rows`, `cache_bytes`, `build_millis`,
`failures` (refreshes that failed in a row), `warning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions

from lockgate.lookup.join.pin_table import STATE_MEMBERS
from lockgate.lookup.join.strategy import spark_from

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockgate.lookup.join.plan import Join

TOO_LARGE = "the batch is about as large as the table: lookup.strategy=spark would be faster"
TOO_SMALL = "the batch is small compared with the table: lookup.strategy=lookup would be faster"


def observed(
    join: Join,
    rows: DataFrame,
    matched: Column,
    snapshot: Column,
    state: Mapping[str, Column],
    *,
    by_spark: bool = False,
) -> DataFrame:
    """Observe `rows`, of which the aggregate `matched` counts those with a match; `snapshot` is one value.

    `state` has the figures of the batch's pin, by member. A batch without rows may have none.
    """
    count = functions.count(functions.lit(1))
    # Spark computes each aggregate as often as it is named, for every row.
    large = state["cache_rows"] * spark_from(join.dimension, join.spec)
    if by_spark:
        warning = functions.when((count > 0) & (count < large), TOO_SMALL)
    else:
        warning = functions.when(count >= functions.greatest(large, functions.lit(1.0)), TOO_LARGE)
    return rows.observe(
        f"lookup {join.spec.identifier}",  # the connector numbers equal names of a query
        count.alias("rows"),
        matched.alias("matched"),
        functions.try_divide(matched, count).alias("hit_rate"),
        snapshot.alias("snapshot"),
        *(state[member].alias(member) for member in STATE_MEMBERS),
        warning.alias("warning"),
    )
