"""Files of a planned read that have expired before it reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lockgate.errors import SnapshotExpiredError


@contextmanager
def expiry_named(path: str) -> Iterator[None]:
    """Raise SnapshotExpiredError in place of a raw FileNotFoundError for a data file."""
    try:
        yield
    except FileNotFoundError as error:
        raise SnapshotExpiredError(
            f"data file {path} does not exist: its snapshot has expired since the read was planned (read "
            "again), or the table is damaged"
        ) from error
