"""The folders in which a table's data files lie, as a listing of the storage shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockgate.framework.io import FileInfo

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def data_files_in(table: TableHandle) -> Iterator[FileInfo]:
    """Return what lies in the folders of buckets: data files, indexes, and unfinished ones."""
    # A table that was replaced may have had its files right in its folder.
    for root in dict.fromkeys((table.location, table.paths.data_location)):
        for folder in _bucket_folders(table, root):
            yield from files_in(table, folder)


def _bucket_folders(table: TableHandle, folder: str) -> Iterator[str]:
    """Return the folders of buckets of any partitions: a table that was replaced may have had others."""
    for info in table.file_system.list(folder):
        if not info.is_directory:
            continue
        if "=" in info.name:
            yield from _bucket_folders(table, info.path)
        elif info.name.startswith("bucket-"):
            yield info.path


def files_in(table: TableHandle, folder: str) -> Iterator[FileInfo]:
    """Return the files right in a folder."""
    return (info for info in table.file_system.list(folder) if not info.is_directory)
