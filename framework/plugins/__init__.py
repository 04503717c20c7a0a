"""The SDK for plugins: the hooks, the types they use, and the manager that finds and checks plugins."""

from lockgate.framework.plugins.authorization import acting_as, authorize, current_principal
from lockgate.framework.plugins.checks import STEPS
from lockgate.framework.plugins.contracts import (
    BridgeContext,
    BridgeOperation,
    CandidateFile,
    CommandMaker,
    CommitParticipant,
    FileCollection,
    FileCollector,
    FilePruner,
    KeyProviderFactory,
    LakeMethod,
    LineageSink,
    MaskFactory,
    MaskFunction,
    PlannedChange,
    RowPruner,
    SnapshotSource,
    SystemTable,
    WarehouseTable,
)
from lockgate.framework.plugins.events import (
    Denied,
    Event,
    KeyUnwrapped,
    ProcedureCalled,
    RowsCommitted,
    ScanPlanned,
    TableChanged,
)
from lockgate.framework.plugins.hookspecs import hookimpl
from lockgate.framework.plugins.manager import PluginManager
from lockgate.framework.plugins.observers import EventCounts
from lockgate.framework.plugins.process import plugins, publish, register
from lockgate.framework.plugins.session_confs import answering_session, session_conf
from lockgate.framework.plugins.session_options import check_session_options, session_option

__all__ = [
    "STEPS",
    "BridgeContext",
    "BridgeOperation",
    "CandidateFile",
    "CommandMaker",
    "CommitParticipant",
    "Denied",
    "Event",
    "EventCounts",
    "FileCollection",
    "FileCollector",
    "FilePruner",
    "KeyProviderFactory",
    "KeyUnwrapped",
    "LakeMethod",
    "LineageSink",
    "MaskFactory",
    "MaskFunction",
    "PlannedChange",
    "PluginManager",
    "ProcedureCalled",
    "RowPruner",
    "RowsCommitted",
    "ScanPlanned",
    "SnapshotSource",
    "SystemTable",
    "TableChanged",
    "WarehouseTable",
    "acting_as",
    "answering_session",
    "authorize",
    "check_session_options",
    "current_principal",
    "hookimpl",
    "plugins",
    "publish",
    "register",
    "session_conf",
    "session_option",
]
