"""The SDK for plugins: the hooks, the types they use, and the manager that finds and checks plugins."""

from lockgate.framework.plugins.contracts import (
    BridgeContext,
    BridgeOperation,
    KeyProviderFactory,
    LakeMethod,
    MaskFactory,
    MaskFunction,
    SystemTable,
)
from lockgate.framework.plugins.hookspecs import hookimpl
from lockgate.framework.plugins.manager import PluginManager, plugins, register

__all__ = [
    "BridgeContext",
    "BridgeOperation",
    "KeyProviderFactory",
    "LakeMethod",
    "MaskFactory",
    "MaskFunction",
    "PluginManager",
    "SystemTable",
    "hookimpl",
    "plugins",
    "register",
]
