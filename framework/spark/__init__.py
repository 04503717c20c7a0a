"""The Spark side: a session with the connector, and the side of the driver that answers it.

Nothing here imports pyspark until a session is made or attached to.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockgate.framework.spark.attachment import attach
    from lockgate.framework.spark.inspect import Statement, inspect_sql
    from lockgate.framework.spark.lake import Lake
    from lockgate.framework.spark.session import configure, connect

__all__ = ["Lake", "Statement", "attach", "configure", "connect", "inspect_sql"]

_HOMES = {
    "Lake": "lake",
    "Statement": "inspect",
    "attach": "attachment",
    "configure": "session",
    "connect": "session",
    "inspect_sql": "inspect",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
