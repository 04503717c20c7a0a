"""The plugin contract: every hook that Lockgate calls, one sentence each.

A plugin is a module (or object) named by an entry point of group `lockgate`; it implements any of these
functions and marks each with `hookimpl`. Lockgate's own procedures and lookup joins are such plugins.

docs/plugins.md shows each hook with an example.
"""


# Hooks have no bodies, because pluggy reads only their signatures.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from lockgate.framework.access import AccessRequest, Caller, Decision, Principal, SqlDecision
    from lockgate.framework.options import Option
    from lockgate.framework.plugins.contracts import (
        AuditSink,
        BridgeOperation,
        CommandMaker,
        CommitParticipant,
        FileCollector,
        FilePruner,
        IndexKind,
        KeyProviderFactory,
        LakeMethod,
        LineageSink,
        MaskFactory,
        PlannedChange,
        SystemTable,
        WarehouseTable,
    )
    from lockgate.framework.plugins.events import Event
    from lockgate.framework.store import TableHandle
    from lockgate.procedures import Procedure

PROJECT = "lockgate"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def lockgate_procedures() -> Sequence[Procedure]:
    """Return the procedures that this plugin adds to `CALL`, to `lake.call` and to `lockgate call`."""


@hookspec
def lockgate_bridge_operations() -> Mapping[str, BridgeOperation]:
    """Return, by name, the operations of the connector that this plugin answers in the driver's Python."""


@hookspec
def lockgate_system_tables() -> Mapping[str, SystemTable]:
    """Return, by suffix, the system tables that this plugin adds (`pin` makes `lake.db.t$pin`)."""


@hookspec
def lockgate_warehouse_tables() -> Mapping[str, WarehouseTable]:
    """Return, by name, the tables about whole warehouses that this plugin adds (`runs`: `lake.sys.runs`)."""


@hookspec
def lockgate_key_providers() -> Mapping[str, KeyProviderFactory]:
    """Return, by scheme, the factories that turn a key specification `scheme:rest` into a key provider."""


@hookspec
def lockgate_masks() -> Mapping[str, MaskFactory]:
    """Return, by name, the masks that this plugin adds to `orc.mask` for files that Python writes."""


@hookspec
def lockgate_lake_methods() -> Mapping[str, LakeMethod]:
    """Return, by name, the functions that this plugin adds to every `Lake` as methods."""


@hookspec(firstresult=True)
def lockgate_principal(caller: Caller) -> Principal | None:
    """Return the identity of a caller with its groups and roles, or None to defer to other plugins."""


@hookspec
def lockgate_authorize(request: AccessRequest) -> Decision | None:
    """Return whether an action is allowed and which rows and values are hidden, or None for no opinion."""


@hookspec
def lockgate_authorize_sql(
    request: AccessRequest, types: Mapping[str, str], records: bool
) -> SqlDecision | None:
    """Return the part of a relation that a query of Spark sees, in SQL, or None for no opinion."""


@hookspec
def lockgate_options() -> Mapping[str, Sequence[Option[Any]]]:
    """Return, by scope (`table`, `catalog`, `read` or `session`), the options that this plugin declares."""


@hookspec
def lockgate_before_attach(confs: Mapping[str, str]) -> None:
    """Prepare for a Spark application with these start confs; an error prevents its use."""


@hookspec
def lockgate_pruners(table: TableHandle) -> Sequence[FilePruner]:
    """Return the steps that this plugin adds to the pruning of a table's files."""


@hookspec
def lockgate_index_kinds() -> Mapping[str, IndexKind]:
    """Return, by name, the kinds that this plugin adds to the index database (`index.<name>.columns`)."""


@hookspec
def lockgate_file_collectors(table: TableHandle) -> Sequence[FileCollector]:
    """Return the collectors that see the rows of each new data file of a table, for use by participants."""


@hookspec
def lockgate_commit_participants(table: TableHandle) -> Sequence[CommitParticipant]:
    """Return the participants of a commit to a table: called before it, and afterwards with its outcome."""


@hookspec
def lockgate_before_change(change: PlannedChange) -> None:
    """Check a planned change of a table that may break its readers; an error prevents the change."""


@hookspec
def lockgate_cli_commands() -> Mapping[str, CommandMaker]:
    """Return, by name, the commands that this plugin adds to `lockgate` in the shell."""


@hookspec
def lockgate_audit_sinks() -> Mapping[str, AuditSink]:
    """Return, by name, the destinations that this plugin adds to audit."""


@hookspec
def lockgate_lineage_sinks() -> Mapping[str, LineageSink]:
    """Return, by name, the receivers of the lineage that this process has recorded and stored."""


@hookspec
def lockgate_event(event: Event) -> None:
    """Observe past scans, commits, changes of tables, procedures, uses of keys and refusals."""
