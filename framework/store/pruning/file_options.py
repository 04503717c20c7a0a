"""Files that options of a table select: those of one bucket, or those that were written from a time on.

Source: Paimon's `scan.bucket` and `FileCreationTimeStartingScanner`.
"""

from __future__ import annotations

import datetime

import numpy as np

from lockgate.errors import OptionError
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import micros_of

BUCKET, CREATED = "scan.bucket", "scan.file-creation-time-millis"
FILE_OPTIONS = frozenset({BUCKET, CREATED})
"""The options by which a table selects files, whichever snapshot is read."""


def files_by_options(schema: TableSchema, files: FileTable) -> FileTable:
    """Return the files without those that an option of the table leaves out; OptionError for a bad value."""
    bucket, created = (_number(schema, key) for key in (BUCKET, CREATED))
    if bucket is None and created is None:
        return files
    hidden = np.zeros(len(files), np.bool_)
    if bucket is not None:
        hidden |= files.bucket != bucket
    if created is not None:
        # Files are dated by the clock on the wall.
        wall = micros_of(datetime.datetime.fromtimestamp(created / 1000)) // 1000
        hidden |= np.fromiter(
            ((entry.file.creation_time_millis or 0) < wall for entry in files.entries), np.bool_, len(files)
        )
    return files.with_vectors({}, hidden)


def has_file_options(schema: TableSchema) -> bool:
    """Say whether an option of the table leaves files out."""
    return any(schema.options.get(key, "").strip() for key in (BUCKET, CREATED))


def _number(schema: TableSchema, key: str) -> int | None:
    text = schema.options.get(key, "").strip()
    if not text:
        return None
    if not text.isdecimal():
        raise OptionError(f"option {key!r} = {text!r} of the table is not a whole number")
    return int(text)
