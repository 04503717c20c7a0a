"""The interface of file systems that the table store needs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class FileInfo:
    """An entry of a folder; `size` in bytes, `modified_millis` in milliseconds since the epoch."""

    path: str
    size: int
    is_directory: bool
    modified_millis: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]


@runtime_checkable
class FileSystem(Protocol):
    """Files of a local disk or a bucket; paths are absolute, with `/`, without a scheme.

    A path that does not exist raises FileNotFoundError, except where a method says otherwise.
    """

    def read_bytes(self, path: str) -> bytes:
        """Return the whole content of a file of metadata; CorruptFileError if it is too large (`limits`)."""

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for random access; the caller closes it."""

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Open a new file to stream into; it appears under `path` only when the block ends without an error.

        Raises FileExistsError if `path` exists when the block ends.
        """

    def write_new(self, path: str, data: bytes) -> None:
        """Create a file with all its content at once, durably; folders are created.

        Raises FileExistsError, having changed nothing, if the file exists: exactly one of two writers
        succeeds. A
        writer that is killed leaves either the whole file or none under that name.
        """

    def write_atomic(self, path: str, data: bytes) -> None:
        """Create or replace a file; a reader sees the old content or the new, never a part."""

    def list(self, path: str) -> list[FileInfo]:
        """Return the entries of a folder in no particular order; none if it does not exist."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""

    def make_directory(self, path: str) -> None:
        """Create a folder and its parents; nothing happens if it exists."""

    def delete(self, path: str) -> bool:
        """Delete a file; False if it did not exist."""

    def delete_tree(self, path: str) -> None:
        """Delete a folder with its contents; nothing happens if it does not exist."""

    def uri(self, path: str) -> str:
        """Return the address by which Hadoop and Arrow open `path`, such as `file:///tmp/a%20b`."""


@runtime_checkable
class FollowsLinks(Protocol):
    """A file system with links."""

    def real_path(self, path: str) -> str:
        """Return a path with all links resolved; missing parts stay unchanged."""


@runtime_checkable
class MovesFolders(Protocol):
    """A file system that renames a folder, even a non-empty one, in one step."""

    def move_folder(self, path: str, target: str) -> None:
        """Rename a folder; the parent of `target` must exist.

        Raises FileExistsError, having changed nothing, if `target` exists and is not empty.
        """

    def is_link(self, path: str) -> bool:
        """Return whether a path is a link to another place."""


def without_user(address: str) -> str:
    """Return an address without the user and password before its host, for messages.

    >>> without_user("ftp://ann:secret@host/path")
    'ftp://host/path'
    """
    scheme, slashes, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{authority.rpartition('@')[2]}{slash}{path}"
