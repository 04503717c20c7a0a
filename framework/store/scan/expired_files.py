"""Files of a planned read that are gone when it opens them: expired with their snapshot, or missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lockgate.errors import CorruptFileError, SnapshotExpiredError

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


@contextmanager
def absence_named(table: TableHandle, path: str) -> Iterator[None]:
    """Raise a named error in place of a raw FileNotFoundError for a data file.

    SnapshotExpiredError if the newest snapshot no longer has the file, else CorruptFileError: reading again
    would not help.
    """
    try:
        yield
    except FileNotFoundError as error:
        name = path.rpartition("/")[2]
        uri = table.file_system.uri(path)
        newest = table.latest_snapshot()
        if any(entry.file.file_name == name for entry in table.manifests.live_files(newest)):
            assert newest is not None, "a file belongs to a snapshot"
            raise CorruptFileError(
                f"data file {uri} is missing, although snapshot {newest.id} of {table.identifier} has it: "
                "restore the file, or roll back to a snapshot without it"
            ) from error
        raise SnapshotExpiredError(
            f"data file {uri} does not exist: its snapshot has expired since the read was planned; read again"
        ) from error
