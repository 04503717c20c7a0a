"""The choice of the state for batches: the newest target snapshot that every host has.

Nothing here has a lock of its own: `service.Lookup` calls it under its condition.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.lookup.cache.builder import fingerprint

if TYPE_CHECKING:
    from lockgate.framework.store import Snapshot
    from lockgate.lookup.cache.version_info import CacheVersionInfo
    from lockgate.lookup.driver.hosts import Hosts

# Targets that may still become the state that is served.
_KEPT_TARGETS = 16
# Moments remembered at which newer snapshots came; of more, every second is forgotten.
_MOST_WAITING = 64


@dataclass(frozen=True)
class _Target:
    """A snapshot that was to be served from a moment on."""

    snapshot_id: int
    fingerprint: str
    asked_at: float


class ServedState:
    """The targets of a lookup and the state that is served; `fresh_at` is when that was last the newest."""

    def __init__(self) -> None:
        self._targets: list[_Target] = []
        # When newer snapshots than the one served were seen, the oldest first.
        self._waiting: list[float] = []
        self.info: CacheVersionInfo | None = None
        self.fresh_at = time.monotonic()

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that batches get now; None before the first."""
        return None if self.info is None else self.info.snapshot_id

    def is_at(self, snapshot: Snapshot) -> bool:
        """Say whether exactly this snapshot is served, and not another of its number."""
        return self.info is not None and self.info.fingerprint == fingerprint(snapshot)

    def notice(self, snapshot: Snapshot, *, new: bool, seen_at: float) -> None:
        """Note the newest snapshot, `new` if it was not seen before."""
        if self.is_at(snapshot):
            self.fresh_at = seen_at
            self._waiting.clear()
        elif new or not self._waiting:
            self._waiting.append(seen_at)
            if len(self._waiting) > _MOST_WAITING:
                del self._waiting[1::2]

    def behind_seconds(self) -> float:
        """Return seconds since the first snapshot newer than the served one appeared."""
        return time.monotonic() - self._waiting[0] if self._waiting else 0.0

    def aim(self, snapshot: Snapshot, *, again: bool) -> None:
        """Note a snapshot that is built to be served; the newest is noted once more only if `again`."""
        mark = fingerprint(snapshot)
        if again or not self._targets or self._targets[-1].fingerprint != mark:
            self._targets.append(_Target(snapshot.id, mark, time.monotonic()))
            del self._targets[:-_KEPT_TARGETS]

    def aims_at(self, snapshot_id: int) -> bool:
        """Say whether a snapshot is the newest target."""
        return bool(self._targets) and self._targets[-1].snapshot_id == snapshot_id

    def advance(self, hosts: Hosts) -> bool:
        """Serve the newest target that every host has, never an older one than before; whether it moved."""
        for target in reversed(self._targets):
            if self.info is not None and self.info.fingerprint == target.fingerprint:
                return False
            if hosts.have(target.snapshot_id, target.fingerprint):
                self.info = hosts.deciding()[0].built[target.snapshot_id]
                self.fresh_at = max(self.fresh_at, target.asked_at)
                self._waiting = [seen_at for seen_at in self._waiting if seen_at > target.asked_at]
                return True
        return False
