"""Policies from files: exports of Ranger's admin, as JSON in a folder, read again when they change.

`policies.json` is a download of policies (ServicePolicies); `roles.json` (RangerRoles), `tags.json`
(ServiceTags) and `users.json` (RangerUserStore) may be with it. A single file has policies alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import PolicyError
from lockgate.framework.governance.ranger.engine.engine import Engine, Settings
from lockgate.framework.governance.ranger.policies.grant_changes import GrantChange, granted, revoked
from lockgate.framework.io import named_errors

POLICIES, ROLES, TAGS, USERS = "policies.json", "roles.json", "tags.json", "users.json"
Stamp = tuple[tuple[int, int] | None, ...]


def engine_of(
    document: Mapping[str, Any], settings: Settings | None = None, *, strict: bool = True
) -> Engine:
    """Return the engine of what a folder says, by the names of its files."""
    return Engine(
        document[POLICIES],
        roles=(document.get(ROLES) or {}).get("rangerRoles") or (),
        tags=document.get(TAGS),
        users=document.get(USERS),
        settings=settings,
        strict=strict,
    )


@checked_arguments
class PolicyFiles:
    """The policies of a file or a folder; it checks for changes at most every `seconds`."""

    @named_errors
    def __init__(
        self, path: str | Path, *, settings: Settings | None = None, strict: bool = True, seconds: float = 5.0
    ) -> None:
        """Read them now; raises PolicyError if they cannot be read or used."""
        self._path, self._settings, self._strict, self._seconds = Path(path), settings, strict, seconds
        self._lock = threading.Lock()
        self._stamp: Stamp = ()
        self._looked = 0.0
        self._engine = self._load()

    def engine(self) -> Engine:
        """Return the engine of the newest policies.

        Raises PolicyError if the files can no longer be used: old policies do not take their place.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= self._seconds and self._stamps() != self._stamp:
                self._engine = self._load()
            self._looked = now if now - self._looked >= self._seconds else self._looked
            return self._engine

    def grant(self, change: GrantChange) -> None:
        """Put a grant among the policies of the file; PolicyError if these cannot be read or used then."""
        self._change(granted, change)

    def revoke(self, change: GrantChange) -> None:
        """Take a grant out of the policies of the file; raises as `grant`."""
        self._change(revoked, change)

    def _change(self, by: Callable[..., dict[str, Any]], change: GrantChange) -> None:
        with self._lock, _alone(self._files()[POLICIES]) as path:
            document = by(_read(path), change)
            # Policies that could not be used would allow nothing to anybody.
            others = {
                name: _read(each)
                for name, each in self._files().items()
                if name != POLICIES and each.exists()
            }
            engine_of({POLICIES: document, **others}, self._settings, strict=self._strict)
            _replace(path, json.dumps(document, indent=1))
            self._engine = self._load()

    def _files(self) -> dict[str, Path]:
        if not self._path.is_dir():
            return {POLICIES: self._path}
        return {name: self._path / name for name in (POLICIES, ROLES, TAGS, USERS)}

    def _stamps(self) -> Stamp:
        return tuple(_stamp(path) for path in self._files().values())

    def _load(self) -> Engine:
        stamp = self._stamps()
        document = {
            name: _read(path) for name, path in self._files().items() if name == POLICIES or path.exists()
        }
        engine = engine_of(document, self._settings, strict=self._strict)
        self._stamp, self._looked = stamp, time.monotonic()
        return engine


@contextmanager
def _alone(path: Path) -> Iterator[Path]:
    """Keep other processes from changing a file at the same time."""
    real = path.resolve()
    with real.with_name(f".{real.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield real


def _replace(path: Path, text: str) -> None:
    """Put a text in the place of a file, as a whole or not at all, with the same permissions."""
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("w") as file:
        os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise PolicyError(f"policies cannot be read from {path}: {type(error).__name__}") from error
