"""The commands that wait for executors to ask: a driver cannot call an executor."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockgate.lookup.owner.messages import Command


class WaitingCommands:
    """Commands by the executor that they are for; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Command]] = {}

    def add(self, executor: str, command: Command) -> None:
        """Let a command wait; one to stop takes the place of what waits for the same lookup."""
        with self._lock:
            before = self._waiting.get(executor, [])
            if command["do"] == "stop":
                before = [each for each in before if each["name"] != command["name"]]
            self._waiting[executor] = [*before, command]

    def take(self, executor: str) -> list[Command]:
        """Return those of an executor, oldest first; they wait no longer."""
        with self._lock:
            return self._waiting.pop(executor, [])
