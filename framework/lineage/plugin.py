"""The lineage plugin: its hooks for commands, procedures, tables, options and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.framework.plugins import (
    BridgeOperation,
    CommandMaker,
    Event,
    LakeMethod,
    PlannedChange,
    ProcedureCalled,
    WarehouseTable,
    hookimpl,
)

if TYPE_CHECKING:
    from lockgate.framework.options import Option
    from lockgate.procedures import Procedure


@hookimpl
def lockgate_bridge_operations() -> Mapping[str, BridgeOperation]:
    """Answer `lineage.record` about ended statements, and `lineage.flow` about statements
    before they write.
    """
    from lockgate.framework.lineage.capture import record
    from lockgate.framework.lineage.checks.on_plaintext import check_flow, check_flow_to_files

    flows: Mapping[str, BridgeOperation] = {
        "lineage.flow": check_flow,
        "lineage.flow_to_files": check_flow_to_files,
    }
    return {"lineage.record": record, **flows}


@hookimpl
def lockgate_lake_methods() -> Mapping[str, LakeMethod]:
    """Offer `lake.lineage` and `lake.lineage_status`."""
    from lockgate.framework.lineage import lake_methods

    return {"lineage": lake_methods.lineage, "lineage_status": lake_methods.lineage_status}


@hookimpl
def lockgate_procedures() -> Sequence[Procedure]:
    """Offer `lineage`, `impact`, `plaintext` and `compact_lineage`."""
    from lockgate.framework.lineage.lineage_procedures import PROCEDURES

    return PROCEDURES


@hookimpl
def lockgate_warehouse_tables() -> Mapping[str, WarehouseTable]:
    """Offer `lake.sys.lineage_edges`, `lineage_processes` and `lineage_runs`."""
    from lockgate.framework.lineage.warehouse_tables import TABLES

    return TABLES


@hookimpl
def lockgate_cli_commands() -> Mapping[str, CommandMaker]:
    """Offer `lockgate lineage`."""
    from lockgate.framework.lineage.cli import add_lineage

    return {"lineage": add_lineage}


@hookimpl
def lockgate_options() -> Mapping[str, Sequence[Option[Any]]]:
    """Declare `lineage.on-drop` and `lineage.on-plaintext`, for tables and warehouses."""
    from lockgate.framework.lineage.lineage_options import DECLARED

    return {"table": DECLARED, "catalog": DECLARED}


@hookimpl
def lockgate_before_change(change: PlannedChange) -> None:
    """Check the readers of tables and columns before these are dropped or renamed."""
    from lockgate.framework.lineage.checks.on_drop import judge

    judge(change)


@hookimpl
def lockgate_event(event: Event) -> None:
    """Record calls of procedures."""
    if isinstance(event, ProcedureCalled) and event.catalog is not None:
        from lockgate.framework.lineage.calls import note_call

        note_call(event, event.catalog)
