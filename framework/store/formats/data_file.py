"""The common interface of readers of data files, and the choice of one for a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from lockgate.errors import UnsupportedFormatError


class FileFormat(StrEnum):
    """A format of data files that can be read."""

    ORC = "orc"
    PARQUET = "parquet"
    AVRO = "avro"


def format_of(name: str) -> FileFormat:
    """Return the format of a data file by the end of its name, as Paimon does; never by an option.

    A table's `file.format` may have been altered, and each level of a key table may have its own. Raises
    UnsupportedFormatError, naming the file, for any other.
    """
    ending = name.rpartition(".")[2].lower()
    try:
        return FileFormat(ending)
    except ValueError:
        formats = ", ".join(FileFormat)
        raise UnsupportedFormatError(
            f"{name}: data files of format {ending or '?'} cannot be read, only {formats}"
        ) from None


class DataFile(Protocol):
    """An open data file; leaving its context closes it."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file, with the names they were written under."""

    @property
    def num_rows(self) -> int:
        """Return how many rows the file holds."""

    def iter_batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read `columns`, in this order, batch by batch; CorruptFileError for damage."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
