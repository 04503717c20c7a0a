"""The Spark session that benchmarks run in."""

from __future__ import annotations

from pathlib import Path

import lockgate
from lockgate import Lake


def open_lake(folder: Path, memory: str = "2g") -> Lake:
    """A quiet session on two cores, with the warehouse `folder/lake` and a database `b`."""
    conf = {
        "spark.driver.memory": memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Queries that wait for their turn do not look for work all the time.
        "spark.sql.streaming.pollingDelay": "100ms",
    }
    lake = lockgate.connect(folder / "lake", master="local[2]", conf=conf, app_name="bench")
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.b")
    return lake
