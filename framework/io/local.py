"""The local disk."""

# ruff: noqa: PTH103, PTH104, PTH105, PTH108, PTH120 - paths are strings here, and `Path` would cost time

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from lockgate.errors import CorruptFileError, UnsupportedError
from lockgate.framework.io.filesystem import FileInfo
from lockgate.framework.io.limits import checked_size, most_metadata

# Readers may list a folder during a write; all of them ignore hidden names.
TEMPORARY_PREFIX = ".lockgate-"


@contextmanager
def _full_disk_names(path: str) -> Iterator[None]:
    """Add the file's name to errors of a full disk: the system omits it for open files."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) and error.filename is None:
            error.filename = path
        raise


class LocalFileSystem:
    """Files of this machine; see `FileSystem` for what each method promises."""

    def read_bytes(self, path: str) -> bytes:
        with open(path, "rb", opener=_open_file) as file:
            return checked_size(file.read(most_metadata() + 1), path)

    def open_input(self, path: str) -> BinaryIO:
        return open(path, "rb", opener=_open_file)

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        temporary = _temporary_path(path)
        try:
            with _full_disk_names(path), open(temporary, "xb") as file:
                yield file
                _persist(file)
            _link_new(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def write_new(self, path: str, data: bytes) -> None:
        with self.create(path) as file:
            file.write(data)

    def write_atomic(self, path: str, data: bytes) -> None:
        temporary = _temporary_path(path)
        try:
            with _full_disk_names(path), open(temporary, "xb") as file:
                file.write(data)
                _persist(file)
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        _persist_folder(path)

    def list(self, path: str) -> list[FileInfo]:
        try:
            with os.scandir(path) as entries:
                return [info for entry in entries if (info := _describe(path, entry)) is not None]
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def size(self, path: str) -> int:
        return Path(path).stat().st_size

    def make_directory(self, path: str) -> None:
        _make_folder(path)

    def delete(self, path: str) -> bool:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        return True

    def delete_tree(self, path: str) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(path)

    def move_folder(self, path: str, target: str) -> None:
        try:
            os.rename(path, target)
        except OSError as error:
            # Systems differ in the error for a folder that is not empty.
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise FileExistsError(error.errno, "folder exists and is not empty", target) from None
            raise
        _persist_folder(target)

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)

    def is_link(self, path: str) -> bool:
        return Path(path).is_symlink()

    def uri(self, path: str) -> str:
        return "file://" + quote(path, safe="/=:@+,$&'()*!;~")


def _open_file(path: str, flags: int) -> int:
    """Open a file; CorruptFileError for a pipe or a device in its place.

    Opening a pipe does not wait for a writer.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    # Python's own error refuses folders.
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        os.close(descriptor)
        raise CorruptFileError(f"{path} is a pipe or a device, not a file: remove it")
    return descriptor


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        # Callers take FileExistsError as a concurrent writer's success.
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None


def _temporary_path(path: str) -> str:
    folder, name = os.path.split(path)
    _make_folder(folder)
    return f"{folder}/{TEMPORARY_PREFIX}{name}.{uuid.uuid4().hex}.tmp"


def _persist(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _persist_folder(path: str) -> None:
    """Make the new directory entry durable, not only the file's content."""
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link_new(temporary: str, path: str) -> None:
    """Give a complete file its name by a hard link, the only atomic call that never replaces a file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as error:
        raise UnsupportedError(
            f"{path} cannot be created atomically, because its file system has no hard links "
            f"({error.strerror}); keep the warehouse on one that has"
        ) from error
    _persist_folder(path)


def _describe(folder: str, entry: os.DirEntry[str]) -> FileInfo | None:
    try:
        status = entry.stat()
    except FileNotFoundError:
        # It was deleted after the listing.
        return None
    path = f"{folder.rstrip('/')}/{entry.name}"
    return FileInfo(path, status.st_size, entry.is_dir(), status.st_mtime_ns // 1_000_000)
