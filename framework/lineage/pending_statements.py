"""Ended statements of Spark that are not in the journal yet."""

from __future__ import annotations

import sys
from typing import Any

from lockgate.framework.spark import java_class

_WAIT_MILLIS = 30_000


def wait_for_records(spark: Any, millis: int = _WAIT_MILLIS) -> None:
    """Wait until all ended statements are recorded, by default at most half a minute."""
    java_class(spark, "io.lockgate.spark.lineage.LineageListener").drain(millis)


def wait_for_this_process(millis: int = _WAIT_MILLIS) -> None:
    """Wait as `wait_for_records` for the session of this process, if it has one."""
    if "pyspark" not in sys.modules:
        return
    from lockgate.framework.spark import dispatcher

    session = dispatcher().sessions.attached
    if session is not None:
        wait_for_records(session, millis)
