"""Plugins: the hook marker, the types of hooks, and test suites for plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.access import (
        ALLOWED,
        AccessRequest,
        Action,
        Caller,
        Decision,
        Mask,
        Principal,
        SqlDecision,
        Target,
    )
    from lockgate.framework.options import Option
    from lockgate.framework.plugins import (
        AskedKeys,
        AuditSink,
        BridgeContext,
        BridgeOperation,
        CandidateFile,
        CommandMaker,
        CommitParticipant,
        Denied,
        Event,
        EventCounts,
        FileCollection,
        FileCollector,
        FilePruner,
        FileSet,
        IndexFileChanges,
        IndexKind,
        IndexParticipant,
        JoinedColumn,
        JoinPruner,
        KeyProviderFactory,
        KeyUnwrapped,
        LakeMethod,
        LineageSink,
        ListedManifest,
        ManifestParticipant,
        ManifestPruner,
        MaskFactory,
        MaskFunction,
        NewIndexFile,
        PlannedChange,
        PluginManager,
        ProcedureCalled,
        RowPruner,
        RowsCommitted,
        ScanPlanned,
        SetPruner,
        SkippedManifests,
        SnapshotSource,
        StreamProgressed,
        SystemTable,
        TableChanged,
        WarehouseTable,
        acting_as,
        authorize,
        current_principal,
        hookimpl,
        plugins,
        publish,
        register,
        session_conf,
        session_option,
    )
    from lockgate.framework.testing import (
        AuthorizerConformance,
        CommitParticipantConformance,
        FileCollectorConformance,
        IndexKindConformance,
        KeyProviderConformance,
        MaskConformance,
        PrincipalConformance,
        ProcedureConformance,
        PrunerConformance,
        PushDownConformance,
        shows,
    )
    from lockgate.procedures import (
        REQUIRED,
        DryRun,
        Int,
        Parameter,
        Procedure,
        ProcedureContext,
        ProcedureResult,
        TableName,
        TypedProcedure,
    )

__all__ = [
    "ALLOWED",
    "REQUIRED",
    "AccessRequest",
    "Action",
    "AskedKeys",
    "AuditSink",
    "AuthorizerConformance",
    "BridgeContext",
    "BridgeOperation",
    "Caller",
    "CandidateFile",
    "CommandMaker",
    "CommitParticipant",
    "CommitParticipantConformance",
    "Decision",
    "Denied",
    "DryRun",
    "Event",
    "EventCounts",
    "FileCollection",
    "FileCollector",
    "FileCollectorConformance",
    "FilePruner",
    "FileSet",
    "IndexFileChanges",
    "IndexKind",
    "IndexKindConformance",
    "IndexParticipant",
    "Int",
    "JoinPruner",
    "JoinedColumn",
    "KeyProviderConformance",
    "KeyProviderFactory",
    "KeyUnwrapped",
    "LakeMethod",
    "LineageSink",
    "ListedManifest",
    "ManifestParticipant",
    "ManifestPruner",
    "Mask",
    "MaskConformance",
    "MaskFactory",
    "MaskFunction",
    "NewIndexFile",
    "Option",
    "Parameter",
    "PlannedChange",
    "PluginManager",
    "Principal",
    "PrincipalConformance",
    "Procedure",
    "ProcedureCalled",
    "ProcedureConformance",
    "ProcedureContext",
    "ProcedureResult",
    "PrunerConformance",
    "PushDownConformance",
    "RowPruner",
    "RowsCommitted",
    "ScanPlanned",
    "SetPruner",
    "SkippedManifests",
    "SnapshotSource",
    "SqlDecision",
    "StreamProgressed",
    "SystemTable",
    "TableChanged",
    "TableName",
    "Target",
    "TypedProcedure",
    "WarehouseTable",
    "acting_as",
    "authorize",
    "current_principal",
    "hookimpl",
    "plugins",
    "publish",
    "register",
    "session_conf",
    "session_option",
    "shows",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        "lockgate.framework.access": (
            "ALLOWED AccessRequest Action Caller Decision Mask Principal SqlDecision Target"
        ),
        "lockgate.framework.options.option": "Option",
        "lockgate.framework.plugins": (
            "AskedKeys AuditSink BridgeContext BridgeOperation CandidateFile CommandMaker CommitParticipant "
            "Denied Event EventCounts FileCollection FileCollector FilePruner FileSet IndexFileChanges "
            "IndexKind IndexParticipant JoinPruner JoinedColumn KeyProviderFactory KeyUnwrapped LakeMethod "
            "LineageSink ListedManifest ManifestParticipant ManifestPruner MaskFactory MaskFunction "
            "NewIndexFile PlannedChange PluginManager ProcedureCalled RowPruner RowsCommitted ScanPlanned "
            "SetPruner SkippedManifests SnapshotSource StreamProgressed SystemTable TableChanged "
            "WarehouseTable acting_as authorize current_principal hookimpl plugins publish register "
            "session_conf session_option"
        ),
        "lockgate.framework.testing": (
            "AuthorizerConformance CommitParticipantConformance FileCollectorConformance "
            "IndexKindConformance KeyProviderConformance MaskConformance PrincipalConformance "
            "ProcedureConformance PrunerConformance PushDownConformance shows"
        ),
        "lockgate.procedures": (
            "DryRun Int Parameter Procedure ProcedureContext ProcedureResult REQUIRED TableName "
            "TypedProcedure"
        ),
    },
)
