"""The caches in a folder of this host, for the shell."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import LockgateError, LookupCacheError, VersionMismatchError
from lockgate.lookup.cache.directory import CacheDirectory, disk_usage

if TYPE_CHECKING:
    from lockgate.lookup.spec.status import LookupStatus


@dataclass(frozen=True)
class RunningLookup:
    """A lookup that uses a cache, as its driver noted it `seconds_since_report`.

    The other fields mean what those of `status.LookupStatus` do.
    """

    seconds_since_report: float
    table: str
    keys: tuple[str, ...]
    target_snapshot: int | None
    served_snapshot: int | None
    lag_millis: int
    asked_rows: int
    hit_rows: int
    failures: int
    last_error: str | None

    @property
    def hit_rate(self) -> float | None:
        """The part of the rows looked up that found a match, 0 to 1; None of none."""
        return self.hit_rows / self.asked_rows if self.asked_rows else None

    def __str__(self) -> str:
        parts = [f"{self.table} by {', '.join(self.keys)}: snapshot {self.served_snapshot}"]
        parts.append(f"{self.lag_millis} ms behind {self.target_snapshot}")
        rate = "" if self.hit_rate is None else f", {self.hit_rate:.1%} of them found"
        parts.append(f"{self.asked_rows} rows asked for{rate}")
        if self.last_error is not None:
            parts.append(f"refresh failed {self.failures}x: {self.last_error}")
        return f"{', '.join(parts)} ({self.seconds_since_report:.0f} s ago)"


def note_status(directory: CacheDirectory, name: str, status: Mapping[str, Any]) -> None:
    """Record the status of a driver's lookup for `find_caches`; `status` comes from `report_of`."""
    directory.report(name, dict(status))


def report_of(status: LookupStatus) -> dict[str, Any]:
    """Return the record that a driver keeps of a lookup."""
    noted = [field.name for field in fields(RunningLookup) if field.name != "seconds_since_report"]
    return {name: getattr(status, name) for name in noted}


@dataclass(frozen=True)
class CacheStatus:
    """The contents of one cache's folder; nothing in it needs a key.

    `rows` and `current` are those of the state that is served, None before the first, `build_seconds` and
    `built_millis` (since the epoch) say how long building it took and when; `bytes` are all files',
    `snapshots` the states held. `encrypted_under` names the keys of an encrypted cache, as they were then.
    `lookups` are those that use it. `problem` says why nothing else is known.
    """

    directory: str
    kind: str
    columns: tuple[str, ...]
    current: int | None
    rows: int | None
    build_seconds: float | None
    built_millis: int | None
    snapshots: tuple[int, ...]
    bytes: int
    cache_server_runs: bool
    encrypted_under: tuple[str, ...]
    lookups: tuple[RunningLookup, ...] = ()
    problem: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values."""
        lookups = [{**asdict(each), "hit_rate": each.hit_rate} for each in self.lookups]
        return {**asdict(self), "lookups": lookups}

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{self.directory}: {self.problem}; {self.bytes} bytes"
        state = "nothing built"
        if self.current is not None:
            state = f"snapshot {self.current}, {self.rows} rows, built in {self.build_seconds or 0:.3f} s"
        parts = [f"{self.directory}: {self.kind}, {', '.join(self.columns)}", state, f"{self.bytes} bytes"]
        if self.encrypted_under:
            parts.append(f"encrypted under {', '.join(self.encrypted_under)}")
        parts.append("owner running" if self.cache_server_runs else "no owner")
        return "\n    ".join(["; ".join(parts), *map(str, self.lookups)])


@checked_arguments
def find_caches(path: Path) -> list[CacheStatus]:
    """Describe the cache in a folder, or all caches below a folder of caches, by name.

    A cache of another version, or a damaged one, is described by what is wrong with it.
    """
    if (path / "LAYOUT.json").is_file():
        return [_status(path)]
    folders = sorted(path.iterdir()) if path.is_dir() else []
    found = [folder for folder in folders if (folder / "LAYOUT.json").is_file()]
    return [_status(folder) for folder in found if not folder.name.startswith(".")]


def _status(path: Path) -> CacheStatus:
    try:
        return _whole_status(path)
    except (LookupCacheError, VersionMismatchError, KeyError, TypeError) as error:
        what = str(error) if isinstance(error, LockgateError) else f"{path} is damaged: {error!r}"
        runs = CacheDirectory(path).has_cache_server()
        return CacheStatus(
            str(path), "unreadable", (), None, None, None, None, (), disk_usage(path), runs, (), problem=what
        )


def _whole_status(path: Path) -> CacheStatus:
    directory = CacheDirectory(path)
    layout = directory.layout()
    current = directory.current()
    info = None if current is None else directory.version(current)
    key = directory.key() or {"wrapped": []}
    return CacheStatus(
        str(path),
        str(layout.kind),
        layout.columns,
        current,
        None if info is None else info.rows,
        None if info is None else info.build_seconds,
        None if info is None else info.built_millis,
        tuple(directory.versions()),
        disk_usage(path),
        directory.has_cache_server(),
        tuple(f"{wrapped['name']}@{wrapped['version']}" for wrapped in key["wrapped"]),
        tuple(filter(None, (_running(age, content) for age, content in directory.reports()))),
    )


def _running(age: float, content: Mapping[str, Any]) -> RunningLookup | None:
    # A report that another version wrote, or half of one, says nothing of the cache.
    with contextlib.suppress(KeyError, TypeError):
        return RunningLookup(
            seconds_since_report=round(age, 3), **{**content, "keys": tuple(content["keys"])}
        )
    return None


@checked_arguments
def remove_cache(cache: CacheStatus) -> None:
    """Remove a cache's folder: open readers keep their files, and a running owner builds it again."""
    CacheDirectory(Path(cache.directory)).discard()
