"""Plugins: the mark of a hook, the types that hooks take and give, and suites that check them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazily

if TYPE_CHECKING:
    from lockgate.framework.keys.conformance import KeyProviderConformance, shows
    from lockgate.framework.orc.masks.conformance import MaskConformance
    from lockgate.framework.plugins import (
        BridgeContext,
        BridgeOperation,
        Event,
        EventCounts,
        KeyProviderFactory,
        KeyUnwrapped,
        LakeMethod,
        MaskFactory,
        MaskFunction,
        PluginManager,
        ProcedureCalled,
        RowsCommitted,
        ScanPlanned,
        SystemTable,
        TableChanged,
        hookimpl,
        plugins,
        publish,
        register,
    )
    from lockgate.procedures import REQUIRED, Parameter, Procedure, ProcedureContext, ProcedureResult
    from lockgate.procedures.conformance import ProcedureConformance

__all__ = [
    "REQUIRED",
    "BridgeContext",
    "BridgeOperation",
    "Event",
    "EventCounts",
    "KeyProviderConformance",
    "KeyProviderFactory",
    "KeyUnwrapped",
    "LakeMethod",
    "MaskConformance",
    "MaskFactory",
    "MaskFunction",
    "Parameter",
    "PluginManager",
    "Procedure",
    "ProcedureCalled",
    "ProcedureConformance",
    "ProcedureContext",
    "ProcedureResult",
    "RowsCommitted",
    "ScanPlanned",
    "SystemTable",
    "TableChanged",
    "hookimpl",
    "plugins",
    "publish",
    "register",
    "shows",
]

__getattr__ = lazily(
    __name__,
    {
        "BridgeContext": "lockgate.framework.plugins",
        "BridgeOperation": "lockgate.framework.plugins",
        "Event": "lockgate.framework.plugins",
        "EventCounts": "lockgate.framework.plugins",
        "KeyProviderConformance": "lockgate.framework.keys.conformance",
        "KeyProviderFactory": "lockgate.framework.plugins",
        "KeyUnwrapped": "lockgate.framework.plugins",
        "LakeMethod": "lockgate.framework.plugins",
        "MaskConformance": "lockgate.framework.orc.masks.conformance",
        "MaskFactory": "lockgate.framework.plugins",
        "MaskFunction": "lockgate.framework.plugins",
        "Parameter": "lockgate.procedures",
        "PluginManager": "lockgate.framework.plugins",
        "Procedure": "lockgate.procedures",
        "ProcedureCalled": "lockgate.framework.plugins",
        "ProcedureConformance": "lockgate.procedures.conformance",
        "ProcedureContext": "lockgate.procedures",
        "ProcedureResult": "lockgate.procedures",
        "REQUIRED": "lockgate.procedures",
        "RowsCommitted": "lockgate.framework.plugins",
        "ScanPlanned": "lockgate.framework.plugins",
        "SystemTable": "lockgate.framework.plugins",
        "TableChanged": "lockgate.framework.plugins",
        "hookimpl": "lockgate.framework.plugins",
        "plugins": "lockgate.framework.plugins",
        "publish": "lockgate.framework.plugins",
        "register": "lockgate.framework.plugins",
        "shows": "lockgate.framework.keys.conformance",
    },
)
