"""Outputs of written files, and files without encryption."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.orc

from lockgate.errors import InputError
from lockgate.framework.orc.format.column_paths import ColumnTree, bloom_numbers
from lockgate.framework.orc.write.arrow_slices import unsliced


class OrcSink(Protocol):
    """A sequential writer of bytes, such as a file object."""

    def write(self, data: Any, /) -> Any:
        """Append `data`."""


class Output:
    """A path, which is removed again on failure, or the caller's sink, with a count of written bytes."""

    def __init__(self, sink: str | os.PathLike[str] | OrcSink) -> None:
        self.size = 0
        self.closed = False
        self._path: Path | None = None
        if isinstance(sink, (str, os.PathLike)):
            self._path = Path(sink)
            self._file: Any = open(self._path, "wb")  # noqa: SIM115 - closed by close or abort
        elif callable(getattr(sink, "write", None)) and not isinstance(sink, io.TextIOBase):
            self._file = sink
        else:
            raise InputError(
                f"an ORC file is written to a path or to a binary file object, not to a {type(sink).__name__}"
            )

    def write(self, data: Any) -> int:
        """Append bytes."""
        length = memoryview(data).nbytes
        self._file.write(data)
        self.size += length
        return length

    def tell(self) -> int:
        """Return the number of written bytes."""
        return self.size

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Close the path; the caller's sink stays open."""
        self.closed = True
        if self._path is not None:
            self._file.close()

    def abort(self) -> None:
        """Close and remove the path, unless it was closed before."""
        if self._path is not None and not self.closed:
            self._file.close()
            self._path.unlink(missing_ok=True)
        self.closed = True


class _ArrowSink:
    """An output as a file object for Arrow; closing it leaves the output open.

    Arrow's ORC writer aborts the process if its file raises an error while it closes. So this class never
    raises: it keeps the first error for the caller, and discards everything after it.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._size = 0
        self.error: BaseException | None = None
        self.discard = False
        self.closed = False

    def write(self, data: Any) -> int:
        length = memoryview(data).nbytes
        self._size += length
        if not self.discard:
            try:
                self._output.write(data)
            except BaseException as error:  # raised later, since Arrow would wrap it here
                self.error, self.discard = error, True
        return length

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


class PlainFile:
    """A file without encryption, written by pyarrow directly."""

    def __init__(
        self, output: Output, schema: pa.Schema, settings: Mapping[str, Any], bloom: Sequence[str]
    ) -> None:
        numbers = bloom_numbers(bloom, ColumnTree(schema))
        self._schema = schema
        self._started = False
        self._sink = _ArrowSink(output)
        self._writer = pyarrow.orc.ORCWriter(
            pa.PythonFile(self._sink, mode="w"), bloom_filter_columns=numbers or None, **settings
        )

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        self._started = True
        self._writer.write(unsliced(table))
        self._check()

    def finish(self) -> None:
        """Write the tail."""
        if not self._started:
            self._writer.write(self._schema.empty_table())
        self._writer.close()
        self._check()

    def abort(self) -> None:
        """Let Arrow finish without output."""
        self._sink.discard = True
        self._writer.close()

    def _check(self) -> None:
        if self._sink.error is not None:
            raise self._sink.error
