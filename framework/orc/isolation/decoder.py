"""Arrow's ORC reader: decodes a plain file in memory into a table."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa
import pyarrow.orc


class Decoder(Protocol):
    """A decoder of plain ORC files in memory; thread-safe.

    Raises the errors of pyarrow: `OSError`, `pa.ArrowInvalid` or another `pa.ArrowException`.
    """

    def table(self, image: pa.Buffer) -> pa.Table:
        """Return all rows of the file; the table does not reference `image`."""

    def schema(self, image: pa.Buffer) -> pa.Schema:
        """Return the Arrow schema of the file."""


class ArrowDecoder:
    """Decodes in this process."""

    def table(self, image: pa.Buffer) -> pa.Table:
        return pyarrow.orc.ORCFile(pa.BufferReader(image)).read()

    def schema(self, image: pa.Buffer) -> pa.Schema:
        return pyarrow.orc.ORCFile(pa.BufferReader(image)).schema
