"""Rows of system tables as batches of columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

BATCH_ROWS = 4096


def batches_of(
    schema: pa.Schema, rows: Iterable[tuple[Any, ...]], names: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield rows, whose values are in the order of the columns, some thousand at a time.

    Only columns of `names` are made, None for all.
    """
    left = iter(rows)
    shown = [number for number, field in enumerate(schema) if names is None or field.name in names]
    fields = [schema.field(number) for number in shown]
    while some := list(islice(left, BATCH_ROWS)):
        columns = list(zip(*some, strict=True))
        arrays = [pa.array(columns[number], schema.field(number).type) for number in shown]
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
