"""The snapshot files of a table and the hints about the first and the last of them.

Changelogs that outlive their snapshots are files of the same content in a folder of their own.
Source: Paimon's `SnapshotManager` and `ChangelogManager`.
"""

from __future__ import annotations

import re
from contextlib import suppress

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.io import FileSystem
from lockgate.framework.store.metadata.clock import store_now
from lockgate.framework.store.metadata.snapshot import FIRST_SNAPSHOT_ID, Snapshot

SNAPSHOT, CHANGELOG = "snapshot", "changelog"
LATEST = "LATEST"
EARLIEST = "EARLIEST"


class SnapshotFiles:
    """Reads and creates the snapshots of the table at `location`, or the changelogs that outlive theirs.

    Hints save a listing where they are right. They may be behind, ahead or unreadable, because writing them
    is not part of a commit, so each is checked before it is believed.
    """

    def __init__(self, file_system: FileSystem, location: str, kind: str = SNAPSHOT) -> None:
        self._file_system = file_system
        self._kind = kind
        self._folder = f"{location.rstrip('/')}/{kind}"
        self._name = re.compile(rf"{kind}-(\d+)")

    def path(self, snapshot_id: int) -> str:
        """Return the path of a snapshot file."""
        return f"{self._folder}/{self._kind}-{snapshot_id}"

    def exists(self, snapshot_id: int) -> bool:
        """Say whether a snapshot exists."""
        return self._file_system.exists(self.path(snapshot_id))

    def ids(self) -> list[int]:
        """Return the ids of all snapshots in order."""
        names = (self._name.fullmatch(info.name) for info in self._file_system.list(self._folder))
        return sorted(int(match[1]) for match in names if match)

    def modified_millis(self) -> dict[int, int]:
        """Return when each snapshot was stored, by the store's clock, in milliseconds since the epoch."""
        infos = self._file_system.list(self._folder)
        found = ((self._name.fullmatch(info.name), info.modified_millis) for info in infos)
        return {int(match[1]): millis for match, millis in found if match}

    def now_millis(self) -> int:
        """Return the time by which snapshots are old; see `clock.store_now`."""
        return store_now(self._file_system, self._folder)

    def latest_id(self) -> int | None:
        """Return the id of the newest snapshot; None if there is none."""
        hint = self._hint(LATEST)
        if hint is not None and not self.exists(hint + 1) and self.exists(hint):
            return hint
        ids = self.ids()
        return ids[-1] if ids else None

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot; None if there is none."""
        while True:
            latest_id = self.latest_id()
            if latest_id is None:
                return None
            with suppress(SnapshotNotFoundError):  # it expired just now, so there is a newer one
                return self.load(latest_id)

    def load(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot.

        Raises SnapshotNotFoundError if it does not exist and CorruptFileError if its file is damaged.
        """
        path = self.path(snapshot_id)
        try:
            data = self._file_system.read_bytes(path)
        except FileNotFoundError:
            raise SnapshotNotFoundError(f"there is no {self._kind} {snapshot_id}{self._range()}") from None
        return Snapshot.from_bytes(data, path)

    def _range(self) -> str:
        ids = self.ids()
        return f"; existing: {ids[0]} to {ids[-1]}" if ids else "; the table has none yet"

    def load_all(self) -> list[Snapshot]:
        """Return all snapshots in order, without those that expire during this."""
        snapshots = []
        for snapshot_id in self.ids():
            with suppress(SnapshotNotFoundError):
                snapshots.append(self.load(snapshot_id))
        return snapshots

    def create(self, snapshot: Snapshot) -> bool:
        """Make a snapshot visible; False if another one has its id."""
        try:
            self._file_system.write_new(self.path(snapshot.id), snapshot.to_bytes())
        except FileExistsError:
            return False
        return True

    def store(self, snapshot: Snapshot) -> None:
        """Make a snapshot visible, in the place of one that has its id."""
        self._file_system.write_atomic(self.path(snapshot.id), snapshot.to_bytes())

    def delete(self, snapshot_id: int) -> bool:
        """Delete a snapshot file; False if it did not exist."""
        return self._file_system.delete(self.path(snapshot_id))

    def hint_latest(self, snapshot_id: int) -> None:
        """Note the newest snapshot; a failure does not matter."""
        self._write_hint(LATEST, snapshot_id)
        if snapshot_id == FIRST_SNAPSHOT_ID:
            self._write_hint(EARLIEST, snapshot_id)

    def hint_earliest(self, snapshot_id: int) -> None:
        """Note the oldest snapshot; a failure does not matter."""
        self._write_hint(EARLIEST, snapshot_id)

    def delete_hints(self) -> None:
        """Forget both hints, where nothing is left that they could name."""
        for name in (LATEST, EARLIEST):
            self._file_system.delete(f"{self._folder}/{name}")

    def _write_hint(self, name: str, snapshot_id: int) -> None:
        with suppress(OSError):
            self._file_system.write_atomic(f"{self._folder}/{name}", str(snapshot_id).encode())

    def _hint(self, name: str) -> int | None:
        try:
            return int(self._file_system.read_bytes(f"{self._folder}/{name}"))
        except (OSError, ValueError):
            return None
