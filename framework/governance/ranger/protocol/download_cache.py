"""The cache on disk: the last good downloads, used while the admin is down.

One file a content, `<app>_<service>_<content>.json`, replaced as a whole: written under another name, flushed
to the disk, then renamed. The previous file stays, and is used if the newest cannot be read. Every opening
checks that the folder belongs to this user alone.
"""

from __future__ import annotations

import contextlib
import glob
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

from lockgate.framework.governance.ranger.protocol.admin_client import Content
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminSettings
from lockgate.framework.io import check_private_folder, make_private_folder, open_private_file

_log = logging.getLogger("lockgate.governance")


class PolicyCache:
    """The downloads of one service."""

    def __init__(self, settings: AdminSettings) -> None:
        """Make the folder, or check it; raises UnsafePathError if it could be another user's."""
        self._folder = make_private_folder(settings.cache_folder)
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{settings.app_id}_{settings.service}")
        self._name = name
        self._sweep()

    def _sweep(self) -> None:
        """Remove what killed processes had begun to write."""
        for path in self._folder.glob(f"{glob.escape(self._name)}_*.json.new-*"):
            number = path.name.rpartition("-")[2]
            if number.isdecimal() and not Path("/proc", number).exists():
                path.unlink(missing_ok=True)

    def _path(self, content: Content, suffix: str = "") -> Path:
        return self._folder / f"{self._name}_{content.value}.json{suffix}"

    def load(self, content: Content) -> tuple[dict[str, Any], float] | None:
        """Return the newest content that can be read, and when it was kept (seconds since 1970)."""
        check_private_folder(self._folder)
        for suffix in ("", ".before"):
            path = self._path(content, suffix)
            try:
                with os.fdopen(open_private_file(path), "rb") as file:
                    document = json.load(file)
                    if isinstance(document, dict):
                        return document, os.fstat(file.fileno()).st_mtime
            except FileNotFoundError:
                continue
            except ValueError:
                _log.warning("%s holds an incomplete download: Lockgate uses the previous one", path)
        return None

    def save(self, content: Content, document: dict[str, Any]) -> None:
        """Keep a download in the place of the last one; OSError if the disk does not take it."""
        check_private_folder(self._folder)
        path, new = self._path(content), self._path(content, f".new-{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            new.unlink()
        try:
            with os.fdopen(open_private_file(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w") as file:
                json.dump(document, file)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            new.unlink(missing_ok=True)  # a part of it would keep a full disk full
            raise
        with contextlib.suppress(FileNotFoundError):
            path.replace(self._path(content, ".before"))
        new.replace(path)
        self._flush()

    def touch(self, content: Content) -> None:
        """Note that the admin has nothing newer."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self._path(content))

    def forget(self) -> None:
        """Remove all downloads: the service is gone."""
        for content in Content:
            for suffix in ("", ".before"):
                self._path(content, suffix).unlink(missing_ok=True)
        self._flush()

    def _flush(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
