"""Opening a source from a path, bytes, a file object or a file system."""

from __future__ import annotations

import io
import mmap
import os
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs

from lockgate.errors import FileMissingError, InputError
from lockgate.framework.orc.sources.random_access import MemorySource, Source
from lockgate.framework.orc.sources.range_source import FileObjectSource, FsspecSource

__all__ = ["MemorySource", "Source", "open_source"]


def open_source(source: Any, name: str | None = None) -> Source:
    """Return a `Source` over a path, bytes, a seekable file, an object with `read_at` and `size`, or (file
    system, path).

    A file system is Arrow's, fsspec's, or an object with `open_input(path)`. Local files are mapped into
    memory; of other files, only the needed ranges are read. Raises `InputError` for other arguments.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _open_path(os.fspath(source), name)
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        return MemorySource(source, name or "<bytes>")
    if isinstance(source, tuple) and len(source) == 2:
        return _open_in_file_system(source[0], source[1], name)
    if callable(getattr(source, "read_at", None)) or callable(getattr(source, "seek", None)):
        if isinstance(source, io.TextIOBase) or getattr(source, "closed", False) is True:
            how = "is closed" if source.closed else "is open for text"
            raise InputError(f"the file object {source!r} {how}; open it again with mode 'rb'")
        return _open_file(source, name or str(getattr(source, "name", "<file>")), owned=False)
    raise InputError(
        "an ORC file is read from a path, bytes, a seekable file object or (file system, path), "
        f"not a {type(source).__name__}"
    )


def _open_path(path: str | bytes, name: str | None) -> Source:
    if "://" in os.fsdecode(path) and not Path(os.fsdecode(path)).exists():
        raise InputError(
            f"{os.fsdecode(path)} is an address, not a path: pass (file system, path), "
            "as in (fsspec.filesystem('s3'), 'bucket/people.orc')"
        )
    try:
        with open(path, "rb") as file:
            return _mapped(file, name or os.fsdecode(path))
    except FileNotFoundError:
        raise FileMissingError(f"there is no ORC file {os.fsdecode(path)!r}") from None


def _mapped(file: Any, name: str) -> MemorySource:
    if os.fstat(file.fileno()).st_size == 0:
        return MemorySource(b"", name)
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return MemorySource(mapped, name, mapped)


def _open_in_file_system(file_system: Any, path: Any, name: str | None) -> Source:
    source_name = name or str(path)
    if isinstance(file_system, pa.fs.LocalFileSystem):
        return _open_path(os.fspath(path), name)
    if isinstance(file_system, pa.fs.PyFileSystem):
        # Arrow's wrapper would open fsspec's file objects, which read ahead megabytes without need.
        file_system = getattr(file_system.handler, "fs", file_system)
    for method in ("open_input", "open_input_file"):
        opener = getattr(file_system, method, None)
        if callable(opener):
            return _open_file(opener(path), source_name, owned=True)
    if _is_fsspec(file_system):
        return FsspecSource(file_system, path, source_name)
    raise InputError(
        f"{type(file_system).__name__} is not a file system: it has no open_input(path) and is not fsspec's"
    )


def _is_fsspec(file_system: Any) -> bool:
    return all(callable(getattr(file_system, name, None)) for name in ("info", "cat_file", "cat_ranges"))


def _open_file(file: Any, name: str, *, owned: bool) -> Source:
    if isinstance(file, (io.FileIO, io.BufferedReader)) and _is_regular(file):
        mapped = _mapped(file, name)
        if owned:
            file.close()
        return mapped
    inner, path = getattr(file, "fs", None), getattr(file, "path", None)
    if _is_fsspec(inner) and isinstance(path, str):
        if owned:
            file.close()
        return FsspecSource(inner, path, name)
    return FileObjectSource(file, name, owned=owned)


def _is_regular(file: Any) -> bool:
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError):
        return False
