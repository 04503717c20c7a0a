"""Parquet data files, read by Arrow.

Paimon stores timestamps of more than six digits as INT96, which Arrow would read as nanoseconds and wrap
around for early and late years: they are read as microseconds unless nanoseconds are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.errors import CorruptFileError

# Rows of a batch; Arrow decodes a batch of a row group at a time.
_BATCH_ROWS = 1 << 16


class ParquetDataFile:
    """A Parquet file; `name` is for messages, `nanoseconds` asks for timestamps with nine digits."""

    def __init__(self, file: BinaryIO, name: str, *, nanoseconds: bool = False, threads: bool = True) -> None:
        self._name = name
        self._input = file
        self._threads = threads
        with self._damage():
            try:
                self._file: Any = pq.ParquetFile(
                    file, coerce_int96_timestamp_unit="ns" if nanoseconds else "us", pre_buffer=False
                )
            except BaseException:
                file.close()
                raise

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        schema: pa.Schema = self._file.schema_arrow
        return schema

    @property
    def num_rows(self) -> int:
        """Return how many rows the file holds."""
        return int(self._file.metadata.num_rows)

    def iter_batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read `columns` batch by batch; CorruptFileError for damage."""
        wanted = list(columns)
        with self._damage():
            batches = self._file.iter_batches(_BATCH_ROWS, columns=wanted, use_threads=self._threads)
            for batch in batches:
                # By names alone Arrow takes a field of a struct for a column that has a dot in its name.
                yield batch.select(wanted)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowNotImplementedError:
            raise
        except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, UnicodeDecodeError) as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise
            text = " ".join(str(error).split())
            raise CorruptFileError(f"{self._name} cannot be read as a Parquet file: {text}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._input.close()
