"""Files in any store that fsspec reaches and that can refuse to replace a file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.spec import AbstractFileSystem

from lockgate.errors import UnsupportedError
from lockgate.framework.io.filesystem import FileInfo
from lockgate.framework.io.limits import checked_size, most_metadata


class FsspecFileSystem:
    """Files behind an fsspec implementation; see `FileSystem` for what each method promises.

    `write_new` relies on the implementation's exclusive creation (`pipe_file(mode="create")`, conditional
    writes on object stores) and raises UnsupportedError where there is none.
    """

    def __init__(self, protocol: str, options: Mapping[str, Any] | None = None) -> None:
        self._protocol = protocol
        self._inner = fsspec.filesystem(protocol, **dict(options or {}))
        # fsspec's default checks and then writes, so two writers could both succeed.
        self._creates_exclusively = any(
            name in each.__dict__
            for each in type(self._inner).__mro__
            if each not in (AbstractFileSystem, AsyncFileSystem, object)
            for name in ("pipe_file", "_pipe_file")
        )

    def strip(self, location: str) -> str:
        """Return the path of `location` in this file system."""
        return str(self._inner._strip_protocol(location))

    def read_bytes(self, path: str) -> bytes:
        with self.open_input(path) as file:
            return checked_size(file.read(most_metadata() + 1), path)

    def open_input(self, path: str) -> BinaryIO:
        return cast("BinaryIO", self._inner.open(path, "rb"))

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        buffer = io.BytesIO()
        yield buffer
        self.write_new(path, buffer.getvalue())

    def write_new(self, path: str, data: bytes) -> None:
        if not self._creates_exclusively:
            raise UnsupportedError(
                f"{self._protocol}:// cannot create a file exclusively: its fsspec implementation only "
                "checks whether the file exists, so commits of two writers could replace each other"
            )
        self._inner.makedirs(self._inner._parent(path), exist_ok=True)
        try:
            self._inner.pipe_file(path, data, mode="create")
        except (TypeError, ValueError, NotImplementedError) as error:
            raise UnsupportedError(
                f"{self._protocol}:// cannot create a file exclusively ({error}), which commits need"
            ) from error

    def write_atomic(self, path: str, data: bytes) -> None:
        self._inner.makedirs(self._inner._parent(path), exist_ok=True)
        self._inner.pipe_file(path, data)

    def list(self, path: str) -> list[FileInfo]:
        try:
            entries = self._inner.ls(path, detail=True, refresh=True)
        except FileNotFoundError:
            return []
        return [_describe(entry) for entry in entries if entry["name"].rstrip("/") != path.rstrip("/")]

    def exists(self, path: str) -> bool:
        return bool(self._inner.exists(path))

    def size(self, path: str) -> int:
        return int(self._inner.size(path))

    def make_directory(self, path: str) -> None:
        self._inner.makedirs(path, exist_ok=True)

    def delete(self, path: str) -> bool:
        try:
            self._inner.rm_file(path)
        except FileNotFoundError:
            return False
        return True

    def delete_tree(self, path: str) -> None:
        if self._inner.exists(path):
            self._inner.rm(path, recursive=True)

    def uri(self, path: str) -> str:
        return str(self._inner.unstrip_protocol(path))


def _describe(entry: Mapping[str, Any]) -> FileInfo:
    modified = entry.get("LastModified") or entry.get("mtime") or entry.get("created") or 0
    seconds = modified.timestamp() if hasattr(modified, "timestamp") else float(modified)
    is_directory = entry["type"] == "directory"
    return FileInfo(entry["name"].rstrip("/"), int(entry.get("size") or 0), is_directory, int(seconds * 1000))
