"""Consumers: registered readers of a table, and the snapshot that each needs next.

Source: Paimon's `ConsumerManager`; `consumer/consumer-<id>` holds `{"nextSnapshot": n}`.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from lockgate.errors import CorruptFileError, InputError
from lockgate.framework.io import FileSystem
from lockgate.framework.store.schema.schema import load_json

_PREFIX = "consumer-"
_ID = re.compile(r"[\w.-]+")


class Consumers:
    """Reads and writes the consumers of the table at `location`."""

    def __init__(self, file_system: FileSystem, location: str) -> None:
        self._file_system = file_system
        self._folder = f"{location.rstrip('/')}/consumer"

    def path(self, consumer_id: str) -> str:
        """Return the path of a consumer's file; InputError if the id cannot be part of a file name."""
        if not _ID.fullmatch(consumer_id):
            raise InputError(
                f"{consumer_id!r} cannot be a consumer id: use letters, digits, '_', '-' and '.'"
            )
        return f"{self._folder}/{_PREFIX}{consumer_id}"

    def record(self, consumer_id: str, next_snapshot: int) -> None:
        """Note the next snapshot a consumer needs."""
        if next_snapshot < 1:
            raise InputError(
                f"consumer {consumer_id!r} cannot need snapshot {next_snapshot}: they count from 1"
            )
        content = json.dumps({"nextSnapshot": next_snapshot}).encode()
        self._file_system.write_atomic(self.path(consumer_id), content)

    def load_all(self) -> dict[str, int]:
        """Return the next snapshot of each consumer; CorruptFileError names a file that cannot be read."""
        found = {}
        for info in self._file_system.list(self._folder):
            if info.name.startswith(_PREFIX):
                # A consumer may be deleted between the listing and the reading.
                with suppress(FileNotFoundError):
                    found[info.name.removeprefix(_PREFIX)] = self._next_snapshot(info.path)
        return found

    def _next_snapshot(self, path: str) -> int:
        value = load_json(self._file_system.read_bytes(path), path).get("nextSnapshot")
        if not isinstance(value, int):
            raise CorruptFileError(f"{path}: nextSnapshot cannot be {value!r}")
        return value

    def modified_millis(self) -> dict[str, int]:
        """Return when each consumer was last noted, in milliseconds since the epoch."""
        infos = self._file_system.list(self._folder)
        return {
            info.name.removeprefix(_PREFIX): info.modified_millis
            for info in infos
            if info.name.startswith(_PREFIX)
        }

    def delete(self, consumer_id: str) -> bool:
        """Forget a consumer; False if it is not known."""
        return self._file_system.delete(self.path(consumer_id))
