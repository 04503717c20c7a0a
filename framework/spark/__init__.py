"""The Spark side: a session with the connector, and the side of the driver that answers it.

Nothing here imports pyspark until a session is made or attached to.
"""

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.spark.attachment import attach
    from lockgate.framework.spark.inspect import Statement, inspect_sql
    from lockgate.framework.spark.lake import Lake
    from lockgate.framework.spark.session import configure, connect

__all__ = ["Lake", "Statement", "attach", "configure", "connect", "inspect_sql"]

_HOMES = {
    "Lake": ".lake",
    "Statement": ".inspect",
    "attach": ".attachment",
    "configure": ".session",
    "connect": ".session",
    "inspect_sql": ".inspect",
}

__getattr__ = lazy_attributes(__name__, _HOMES)
