"""The commands that wait for executors to ask: a driver cannot call an executor."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockgate.lookup.server.server_messages import Command


class WaitingCommands:
    """Commands by the executor that they are for; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Command]] = {}

    def add(self, executor: str, command: Command) -> None:
        """Let a command wait."""
        with self._lock:
            self._waiting.setdefault(executor, []).append(command)

    def take(self, executor: str) -> list[Command]:
        """Return those of an executor, oldest first; they wait no longer."""
        with self._lock:
            return self._waiting.pop(executor, [])

    def forget(self, executor: str, name: str) -> None:
        """Drop the commands of a lookup for a lost executor: the next application reuses its name."""
        with self._lock:
            left = [each for each in self._waiting.pop(executor, []) if each["name"] != name]
            if left:
                self._waiting[executor] = left
