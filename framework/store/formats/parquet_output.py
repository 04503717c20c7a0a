"""Parquet data files as Paimon's writers make them: field ids, and integers for short decimals.

Source: Paimon's `ParquetSchemaConverter` and `SpecialFields`. Page indexes are written too, so that engines
can skip pages of a row group.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.framework.orc import MAP_KEY

_FIELD_ID = b"PARQUET:field_id"
# Ids of elements, keys and values, which no column has: far from those of columns, by column and depth.
_INNER_ID_BASE = (2**31 - 1) // 4
_DEEPEST = 1 << 10

# Paimon's names of compressions, by those of Arrow; `none` is none.
_CODECS = {"zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "lz4": "lz4", "none": "none"}
_ZSTD_LEVEL = 1

# After the footer: its length, and a mark.
_MAGIC_BYTES = 4
_TAIL_BYTES = 8


class ParquetSink(Protocol):
    """Where the bytes of a file go."""

    def write(self, data: Any) -> int:
        """Take bytes."""


class _Stream(io.RawIOBase):
    """What Arrow takes for a file."""

    def __init__(self, sink: ParquetSink) -> None:
        super().__init__()
        self._sink = sink
        self.given_up = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes if self.given_up else self._sink.write(data)


class ParquetOutput:
    """A Parquet file in the making; `field_ids` are by path, as `rows.file_field_ids` spells it.

    Rows wait until they make a row group of `group_bytes` in memory.
    """

    def __init__(
        self,
        sink: ParquetSink,
        schema: pa.Schema,
        *,
        compression: str,
        field_ids: Mapping[str, int],
        group_bytes: int,
    ) -> None:
        self._schema = with_field_ids(schema, field_ids)
        self._group_bytes = group_bytes
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        codec = _CODECS[compression]
        self._stream = _Stream(sink)
        self._writer: Any = pq.ParquetWriter(
            pa.PythonFile(self._stream, mode="w"),
            self._schema,
            compression=codec,
            compression_level=_ZSTD_LEVEL if codec == "zstd" else None,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            use_deprecated_int96_timestamps=any(_has_nanoseconds(field.type) for field in schema),
        )

    def write(self, rows: pa.Table) -> None:
        """Take rows with the columns of the file."""
        self._waiting.append(pa.Table.from_arrays(rows.columns, schema=self._schema))
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= self._group_bytes:
            self._write_group()

    def _write_group(self) -> None:
        rows, self._waiting, self._waiting_bytes = pa.concat_tables(self._waiting), [], 0
        self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))

    def close(self) -> None:
        """Complete the file."""
        if self._waiting:
            self._write_group()
        self._writer.close()

    def abort(self) -> None:
        """Give the file up; nothing more is written."""
        self._waiting = []
        # A writer that is left open would write its footer when it is forgotten.
        self._stream.given_up = True
        self._writer.close()


def empty_footer(schema: pa.Schema, field_ids: Mapping[str, int]) -> bytes:
    """Return the footer of a file without rows, which has the schema of every file of a table."""
    data = io.BytesIO()
    output = ParquetOutput(data, schema, compression="none", field_ids=field_ids, group_bytes=1)
    output.close()
    content = data.getvalue()
    length = int.from_bytes(content[-_TAIL_BYTES:-_MAGIC_BYTES], "little")
    return content[-_TAIL_BYTES - length : -_TAIL_BYTES]


def _has_nanoseconds(data_type: pa.DataType) -> bool:
    """Say whether Paimon has timestamps of 96 bits for a type; Arrow then writes all of a file like that."""
    if pa.types.is_timestamp(data_type):
        return bool(data_type.unit == "ns")
    return any(_has_nanoseconds(data_type.field(index).type) for index in range(data_type.num_fields))


def with_field_ids(schema: pa.Schema, field_ids: Mapping[str, int]) -> pa.Schema:
    """Return the schema with the ids of columns, their fields, elements, keys and values."""
    return pa.schema([_numbered(field, (field.name,), field_ids) for field in schema])


def _numbered(field: pa.Field, path: Sequence[str], field_ids: Mapping[str, int]) -> pa.Field:
    number = field_ids[".".join(path)]
    return _with_id(field.with_type(_inner(field.type, number, 0, path, field_ids)), number)


def _with_id(field: pa.Field, number: int) -> pa.Field:
    return field.with_metadata({_FIELD_ID: str(number).encode()})


def _inner(
    data_type: pa.DataType, number: int, depth: int, path: Sequence[str], field_ids: Mapping[str, int]
) -> pa.DataType:
    """Give numbers to what is inside a type; `number` is the id of the column or field that it is of."""
    if pa.types.is_struct(data_type):
        return pa.struct([_numbered(field, (*path, field.name), field_ids) for field in data_type])
    index = number * _DEEPEST + depth + 1

    def part(field: pa.Field, sign: int) -> pa.Field:
        inside = path if sign > 0 else (*path, MAP_KEY)
        made = field.with_type(_inner(field.type, number, depth + 1, inside, field_ids))
        return _with_id(made, _INNER_ID_BASE + sign * index)

    if pa.types.is_list(data_type):
        return pa.list_(part(data_type.value_field, 1))
    if pa.types.is_map(data_type):
        return pa.map_(part(data_type.key_field, -1), part(data_type.item_field, 1))
    return data_type
