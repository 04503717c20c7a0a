"""From an address to the file system behind it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from lockgate.errors import InputError
from lockgate.framework.io.filesystem import FileSystem
from lockgate.framework.io.local import LocalFileSystem
from lockgate.framework.io.remote import FsspecFileSystem


def resolve(
    location: str | os.PathLike[str], options: Mapping[str, str] | None = None
) -> tuple[FileSystem, str]:
    """Return the file system of a path or URI and the path in it, absolute and without a scheme.

    A path without a scheme is local. `options` go to the fsspec implementation of another scheme. Raises
    InputError if the scheme is unknown or what it needs is not installed.
    """
    text = os.fspath(location)
    scheme = urlsplit(text).scheme if "://" in text or text.startswith("file:") else ""
    if scheme in ("", "file", "local"):
        path = unquote(urlsplit(text).path) if scheme else os.path.expanduser(text)  # noqa: PTH111 - a string is returned
        return LocalFileSystem(), os.path.abspath(path)  # noqa: PTH100 (links stay as they are)
    try:
        file_system = FsspecFileSystem(scheme, options)
    except (ImportError, ValueError) as error:
        raise InputError(f"{text} cannot be reached: {error}") from error
    return file_system, file_system.strip(text)


def join(*parts: str) -> str:
    """Join the parts of a path with `/`."""
    first, *others = parts
    return "/".join([first.rstrip("/"), *(part.strip("/") for part in others if part)])
