"""HDFS, through pyarrow and Hadoop's C library.

A new file is written under another name and then renamed, which the name node allows to exactly one of
several writers (see `libhdfs`). Paimon commits in the same way, so no commit of either engine is lost.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Protocol, cast
from urllib.parse import urlsplit

from pyarrow import fs as arrow_fs

from lockgate.errors import InputError
from lockgate.framework.io.filesystem import FileInfo, without_user
from lockgate.framework.io.libhdfs import Renames, check_environment
from lockgate.framework.io.limits import checked_size, most_metadata
from lockgate.framework.io.local import TEMPORARY_PREFIX

SCHEME = "hdfs"
# The options of Hadoop that concern HDFS.
_PREFIXES = ("dfs.", "fs.", "hadoop.", "ipc.")
_SPARK_PREFIX = "spark.hadoop."
# A file is empty for a moment while it is replaced; no complete metadata file is empty.
_EMPTY_RETRIES = 20
_EMPTY_WAIT_SECONDS = 0.02


class Client(Protocol):
    """A connection: pyarrow's file system, and renaming that replaces nothing."""

    files: Any

    def rename(self, path: str, target: str) -> bool:
        """Rename a file; False if that fails."""


class HdfsClient:
    """A connection to a name node; `default` is the configured one, and `port` 0 the configured port."""

    def __init__(self, host: str, port: int, confs: Mapping[str, str]) -> None:
        check_environment()
        # Loads the JVM, which the second connection needs.
        self.files = arrow_fs.HadoopFileSystem(host, port, extra_conf=dict(confs))
        self._renames = Renames(host, port, confs)

    def rename(self, path: str, target: str) -> bool:
        """Rename a file; False if that fails."""
        return self._renames.rename(path, target)


class HdfsFileSystem:
    """Files of one HDFS; see `FileSystem` for what each method promises.

    `write_atomic` is weaker: a reader may find an empty file for a moment, and waits; a writer
    killed at that moment leaves it empty. It replaces hints, consumers and tags.
    """

    def __init__(self, authority: str, confs: Mapping[str, str], client: Client | None = None) -> None:
        self._authority = authority
        self._confs = dict(confs)
        self._lock = threading.Lock()
        self._client = client

    @classmethod
    def of(cls, location: str, options: Mapping[str, str]) -> tuple[HdfsFileSystem, str]:
        """Return the file system of `hdfs://host[:port]/path` and the path; nothing is connected yet.

        Without a host it is the one of Hadoop's configuration. Raises InputError for an address that is not
        so.
        """
        # Not parsed as a URI: names may hold `?`, `#` and `%`.
        authority, _, path = location.partition("://")[2].partition("/")
        try:
            parts = urlsplit(f"//{authority}")
            _ = parts.port
        except ValueError:
            # The message must not quote a password, so it omits the cause.
            raise InputError(f"{without_user(location)} is not an address of HDFS") from None
        if "@" in authority or (authority and not parts.hostname):
            safe_address = without_user(location)
            raise InputError(f"{safe_address}: an address of HDFS is hdfs://host[:port]/path, without a user")
        options_without_prefix = {
            key.removeprefix(_SPARK_PREFIX): str(value) for key, value in options.items()
        }
        confs = {key: value for key, value in options_without_prefix.items() if key.startswith(_PREFIXES)}
        # Credentials of S3 are not passed to HDFS.
        confs = {key: value for key, value in confs.items() if not key.startswith("fs.s3")}
        path = "/".join(part for part in path.split("/") if part)
        return cls(authority, confs), f"/{path}"

    def __repr__(self) -> str:
        return f"HdfsFileSystem({self._authority!r})"

    @property
    def _connection(self) -> Client:
        with self._lock:
            if self._client is None:
                parts = urlsplit(f"//{self._authority}")
                self._client = HdfsClient(parts.hostname or "default", parts.port or 0, self._confs)
            return self._client

    @property
    def _files(self) -> Any:
        return self._connection.files

    # --- reading -----------------------------------------------------------------------------

    def read_bytes(self, path: str) -> bytes:
        data = b""
        for attempt in range(_EMPTY_RETRIES):
            with self.open_input(path) as file:
                data = checked_size(file.read(most_metadata() + 1), path)
            if data or attempt == _EMPTY_RETRIES - 1:
                break
            time.sleep(_EMPTY_WAIT_SECONDS)
        return data

    def open_input(self, path: str) -> BinaryIO:
        # libhdfs prints an error for a missing file, so check first.
        self._info(path)
        return cast("BinaryIO", self._files.open_input_file(path))

    def list(self, path: str) -> list[FileInfo]:
        if not self.exists(path):
            return []
        try:
            infos = self._files.get_file_info(arrow_fs.FileSelector(path))
        except FileNotFoundError:
            return []
        return [_file_info(f"{path.rstrip('/')}/{info.base_name}", info) for info in infos]

    def exists(self, path: str) -> bool:
        return bool(self._files.get_file_info(path).type != arrow_fs.FileType.NotFound)

    def size(self, path: str) -> int:
        return int(self._info(path).size or 0)

    def uri(self, path: str) -> str:
        """Return the address for Hadoop's `Path`, without escapes."""
        return f"{SCHEME}://{self._authority}{path}"

    def _info(self, path: str) -> Any:
        info = self._files.get_file_info(path)
        if info.type == arrow_fs.FileType.NotFound:
            raise FileNotFoundError(f"{self.uri(path)} does not exist")
        return info

    # --- writing -----------------------------------------------------------------------------

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        folder, _, name = path.rpartition("/")
        temporary = f"{folder}/{TEMPORARY_PREFIX}{name}.{uuid.uuid4().hex}.tmp"
        self.make_directory(folder)
        try:
            with self._files.open_output_stream(temporary) as file:
                yield cast("BinaryIO", file)
            self._rename_to(temporary, path)
        finally:
            with suppress(OSError):  # keep the first error; remove_orphan_files deletes the file
                self.delete(temporary)

    def _rename_to(self, temporary: str, path: str) -> None:
        if self._connection.rename(temporary, path):
            return
        target_exists = self.exists(path)
        # Nobody else moves the file: if it is gone, the rename succeeded and only its answer was lost.
        if target_exists and not self.exists(temporary):
            return
        if target_exists:
            raise FileExistsError(f"{self.uri(path)} exists")
        raise OSError(f"{self.uri(temporary)} could not be renamed to {path}; see Hadoop's log")

    def write_new(self, path: str, data: bytes) -> None:
        with self.create(path) as file:
            file.write(data)

    def write_atomic(self, path: str, data: bytes) -> None:
        self.make_directory(os.path.dirname(path))  # noqa: PTH120 - a path in HDFS
        with self._files.open_output_stream(path) as file:
            file.write(data)

    def make_directory(self, path: str) -> None:
        self._files.create_dir(path, recursive=True)

    def delete(self, path: str) -> bool:
        if not self.exists(path):
            return False
        try:
            self._files.delete_file(path)
        except OSError:
            if self.exists(path):
                raise
            return False
        return True

    def delete_tree(self, path: str) -> None:
        if self.exists(path):
            with suppress(FileNotFoundError):
                self._files.delete_dir(path)


def _file_info(path: str, info: Any) -> FileInfo:
    is_directory = info.type == arrow_fs.FileType.Directory
    millis = int(info.mtime.timestamp() * 1000) if info.mtime is not None else 0
    return FileInfo(path, 0 if is_directory else int(info.size or 0), is_directory, millis)
