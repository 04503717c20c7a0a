"""The lookup plugin: its options, and the table `t$pin` that gives a batch its snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockgate.framework.options import Option
from lockgate.framework.plugins import BridgeOperation, LakeMethod, SystemTable, hookimpl
from lockgate.procedures import Procedure


@hookimpl
def lockgate_options() -> Mapping[str, Sequence[Option[Any]]]:
    """Declare `lookup.*`: tables carry defaults, and a join's reads say what they are for."""
    from lockgate.lookup.join.pin_table import READ_OPTIONS
    from lockgate.lookup.spec.lookup_options import ALL

    return {"table": ALL, "read": (*ALL, *READ_OPTIONS)}


@hookimpl
def lockgate_system_tables() -> Mapping[str, SystemTable]:
    """Offer `lake.db.t$pin`."""
    from lockgate.lookup.join.pin_table import PinTable

    return {"pin": PinTable()}


@hookimpl
def lockgate_procedures() -> Sequence[Procedure]:
    """Offer `query_service` and `stop_query_service`."""
    from lockgate.lookup.driver.query_services import QueryServiceProcedure, StopQueryServiceProcedure

    return (QueryServiceProcedure(), StopQueryServiceProcedure())


@hookimpl
def lockgate_bridge_operations() -> Mapping[str, BridgeOperation]:
    """Answer `lookup.event`: messages of cache owners on executors; `lookup.poll`: commands for executors;
    `lookup.join`: joins of statements.
    """
    from lockgate.lookup.driver.cluster import cache_server_event, commands_of
    from lockgate.lookup.join.sql_join import join_of_statement

    return {"lookup.event": cache_server_event, "lookup.poll": commands_of, "lookup.join": join_of_statement}


@hookimpl
def lockgate_lake_methods() -> Mapping[str, LakeMethod]:
    """Offer `lake.lookup_join`."""
    return {"lookup_join": _lookup_join}


def _lookup_join(lake: Any, stream: Any, table: str, **arguments: Any) -> Any:
    """Join the rows of a stream or batch with a table of this lake; see `lockgate.lookup.lookup_join`."""
    from lockgate.lookup import lookup_join

    full = table if table.startswith(f"{lake.name}.") else f"{lake.name}.{table}"
    return lookup_join(stream, full, **arguments)
