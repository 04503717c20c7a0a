"""The caches that lie in a folder of this host, for the shell."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lockgate.lookup.directory import CacheDirectory, disk_usage


@dataclass(frozen=True)
class CacheStatus:
    """What lies in the folder of one cache; nothing in it needs a key.

    `rows` and `current` are those of the state that is served, None before the first; `bytes` are all files',
    `snapshots` the states held. `encrypted_under` names the keys of an encrypted cache, as they were then.
    """

    directory: str
    kind: str
    columns: tuple[str, ...]
    current: int | None
    rows: int | None
    snapshots: tuple[int, ...]
    bytes: int
    owner_runs: bool
    encrypted_under: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        state = "nothing built" if self.current is None else f"snapshot {self.current}, {self.rows} rows"
        parts = [f"{self.directory}: {self.kind}, {', '.join(self.columns)}", state, f"{self.bytes} bytes"]
        if self.encrypted_under:
            parts.append(f"encrypted under {', '.join(self.encrypted_under)}")
        parts.append("owner running" if self.owner_runs else "no owner")
        return "; ".join(parts)


def find_caches(path: Path) -> list[CacheStatus]:
    """Describe the cache in a folder, or all caches below a folder of caches, by name.

    Raises VersionMismatchError for a cache of another version.
    """
    if (path / "LAYOUT.json").is_file():
        return [_status(path)]
    folders = sorted(path.iterdir()) if path.is_dir() else []
    found = [folder for folder in folders if (folder / "LAYOUT.json").is_file()]
    return [_status(folder) for folder in found if not folder.name.startswith(".")]


def _status(path: Path) -> CacheStatus:
    directory = CacheDirectory(path)
    layout = directory.layout()
    current = directory.current()
    info = None if current is None else directory.generation(current)
    key = directory.key() or {"wrapped": []}
    lock = directory.try_lock()
    if lock is not None:
        lock.close()
    return CacheStatus(
        str(path),
        str(layout.kind),
        layout.columns,
        current,
        None if info is None else info.rows,
        tuple(directory.generations()),
        disk_usage(path),
        lock is None,
        tuple(f"{wrapped['name']}@{wrapped['version']}" for wrapped in key["wrapped"]),
    )


def remove_cache(cache: CacheStatus) -> None:
    """Remove a cache's folder: open readers keep their files, and a running owner begins afresh."""
    path = Path(cache.directory)
    # Out of the way in one step: a running owner makes the folder anew, and writes into that one.
    aside = path.rename(path.with_name(f".{path.name}.{uuid.uuid4().hex}"))
    shutil.rmtree(aside)
