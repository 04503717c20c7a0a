"""Opening data files that cannot be encrypted: all but ORC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockgate.framework.store.formats.avro_file import AvroDataFile
from lockgate.framework.store.formats.data_file import DataFile, FileFormat
from lockgate.framework.store.formats.parquet_file import ParquetDataFile

if TYPE_CHECKING:
    from lockgate.framework.io import FileSystem
    from lockgate.framework.types import DataType


def open_plain_file(
    file_system: FileSystem,
    path: str,
    kind: FileFormat,
    types: Mapping[str, DataType],
    *,
    nanoseconds: bool = False,
    threads: int | None = None,
) -> DataFile:
    """Open a Parquet or Avro file; `types` are the columns it may have, with their types when written.

    Raises FileNotFoundError, and CorruptFileError for a file that is of another format or damaged.
    """
    if kind is FileFormat.PARQUET:
        return ParquetDataFile(
            file_system.open_input(path), path, nanoseconds=nanoseconds, threads=threads != 1
        )
    if kind is FileFormat.AVRO:
        return AvroDataFile(file_system.read_bytes(path), path, types)
    raise ValueError(f"{kind} files have a reader of their own")
