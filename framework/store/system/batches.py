"""Rows of system tables as batches of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

BATCH_ROWS = 4096


def batches_of(schema: pa.Schema, rows: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Yield rows, whose values are in the order of the columns, some thousand at a time."""
    left = iter(rows)
    while some := list(islice(left, BATCH_ROWS)):
        columns = zip(*some, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
