"""The plugin manager of this process, created on first use."""

from __future__ import annotations

import threading

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import PluginError
from lockgate.framework.options import declare_by
from lockgate.framework.plugins.events import Event
from lockgate.framework.plugins.manager import PluginManager

_process_lock = threading.Lock()
_process_manager: PluginManager | None = None


def plugins() -> PluginManager:
    """Return the process's plugin manager; the first call loads the installed entry points.

    Raises `PluginError`, which names the plugin that cannot be loaded; the next call tries again.
    """
    global _process_manager
    with _process_lock:
        if _process_manager is None:
            manager = PluginManager()
            manager.load_entry_points()
            _process_manager = manager
        return _process_manager


declare_by(lambda: plugins().options("table"))


def publish(event: Event) -> None:
    """Let the plugins of this process observe `event`; never waits and never raises.

    It does not report plugins that cannot be loaded: code that needs them raises the error.
    """
    try:
        manager = plugins()
    except PluginError:
        return
    manager.event(event)


@checked_arguments
def register(plugin: object, name: str) -> None:
    """Add a plugin to the process's manager without installing it."""
    plugins().register(plugin, name)
