"""The Spark side: a session with the connector, and the side of the driver that answers it.

Nothing here imports pyspark until a session is made or attached to.
"""

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.spark.context.sql_inspection import Statement, inspect_sql
    from lockgate.framework.spark.session.attachment import attach
    from lockgate.framework.spark.session.lake import Lake
    from lockgate.framework.spark.session.session import configure, connect

__all__ = ["Lake", "Statement", "attach", "configure", "connect", "inspect_sql"]

_HOMES = {
    "Lake": ".session.lake",
    "Statement": ".context.sql_inspection",
    "attach": ".session.attachment",
    "configure": ".session.session",
    "connect": ".session.session",
    "inspect_sql": ".context.sql_inspection",
}

__getattr__ = lazy_attributes(__name__, _HOMES)
