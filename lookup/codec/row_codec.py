"""The vectorised row codec: Arrow columns to byte rows and back, without a Python object a row.

A row is a multiple of eight bytes, in the machine's byte order (little-endian; other machines are refused)::

    null words   one bit a column, set where the value is null; ceil(columns / 64) words
    fixed words  one word for each column of fixed width, two for decimals of more than 18 digits
    lengths      four bytes for each column of variable length, padded to a word
    bytes        of the variable columns, one after another, padded to a word

Columns of nested types are variable ones, whose bytes are rows in turn (`nested`).

Decoding reads each column of all rows by one gather over the concatenated rows.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import UnsupportedError, UnsupportedTypeError
from lockgate.lookup.codec.byte_rows import Bools, Int64s, Rows, Scattered, UInt64s, offsets_of
from lockgate.lookup.codec.nested import NestedCodec, is_nested

# Arrow's plain binary arrays count bytes in 32 bits; a batch that could exceed that is encoded in halves.
_MOST_BYTES = 1 << 30
# Decimals of more digits take two words.
WIDE_DECIMAL = 18


def is_variable(data_type: pa.DataType) -> bool:
    """Say whether values of this type have a length of their own."""
    return bool(
        pa.types.is_string(data_type)
        or pa.types.is_binary(data_type)
        or pa.types.is_large_string(data_type)
        or pa.types.is_large_binary(data_type)
        or (pa.types.is_fixed_size_binary(data_type) and not pa.types.is_decimal(data_type))
    )


def _is_fixed(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_boolean(data_type)
        or pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_date(data_type)
        or pa.types.is_time(data_type)
        or pa.types.is_timestamp(data_type)
        or pa.types.is_decimal128(data_type)
    )


class RowCodec:
    """Encodes and decodes the rows of one Arrow schema; its columns are the schema's, in order.

    Types: boolean, integers, floats, decimals of up to 38 digits, date, time, timestamp, string, binary, and
    lists, maps and structs of these. Raises `UnsupportedTypeError` for any other, naming the column.
    """

    def __init__(self, schema: pa.Schema) -> None:
        if sys.byteorder != "little":
            raise UnsupportedError("lookup caches need a little-endian machine")
        self.schema = schema
        self.null_words = max(1, -(-len(schema) // 64))
        self._fixed: list[tuple[int, int, bool]] = []
        self._variable: list[int] = []
        self._nested: dict[int, NestedCodec] = {}
        word = self.null_words
        for index, field in enumerate(schema):
            if is_variable(field.type):
                self._variable.append(index)
            elif is_nested(field.type):
                self._variable.append(index)
                self._nested[index] = NestedCodec(field.type, field.name)
            elif _is_fixed(field.type):
                wide = pa.types.is_decimal(field.type) and field.type.precision > WIDE_DECIMAL
                self._fixed.append((index, word, wide))
                word += 2 if wide else 1
            else:
                raise UnsupportedTypeError(
                    f"column {field.name!r} has type {field.type}, which a lookup cache cannot hold; "
                    "leave it out of select=[...]"
                )
        self._length_word = word
        self.width = word + (len(self._variable) + 1) // 2
        self.is_fixed = not self._variable

    # --- encode ----------------------------------------------------------------------------------

    def encode(self, batch: pa.RecordBatch) -> Rows:
        """Encode the rows of `batch`, whose columns must have this codec's types in its order."""
        if batch.num_rows == 0:
            return Rows.empty()
        columns = [self._plain(batch.column(index), index) for index in range(len(self.schema))]
        head = self._head(columns, batch.num_rows)
        if self.is_fixed:
            return Rows(head.ravel(), np.arange(batch.num_rows + 1, dtype=np.int64) * self.width)
        held = head.nbytes + sum(columns[index].nbytes for index in self._variable)
        if held > _MOST_BYTES and batch.num_rows > 1:
            middle = batch.num_rows // 2
            return Rows.concatenate([self.encode(batch.slice(0, middle)), self.encode(batch.slice(middle))])
        return self._join(head, columns)

    def _plain(self, column: pa.Array, index: int) -> pa.Array:
        data_type = self.schema.field(index).type
        if pa.types.is_dictionary(column.type) or column.type != data_type:
            column = column.cast(data_type)
        if index in self._nested:
            return self._nested[index].encode(column)
        if index in self._variable and not pa.types.is_binary(data_type):
            column = column.cast(pa.binary())
        return column

    def _head(self, columns: Sequence[pa.Array], count: int) -> Any:
        head = np.zeros((count, self.width), np.uint64)
        for index, column in enumerate(columns):
            if column.null_count:
                bits = np.asarray(column.is_null()).astype(np.uint64) << np.uint64(index % 64)
                head[:, index // 64] |= bits
        for index, word, wide in self._fixed:
            values = _words(columns[index])
            if wide:
                head[:, word : word + 2] = values
            else:
                head[:, word] = values if values.ndim == 1 else values[:, 0]
            if columns[index].null_count:
                # The bytes under a null must not make equal rows differ.
                head[np.asarray(columns[index].is_null()), word : word + (2 if wide else 1)] = 0
        lengths = head[:, self._length_word :].view(np.uint32)
        for slot, index in enumerate(self._variable):
            lengths[:, slot] = np.asarray(pc.fill_null(pc.binary_length(columns[index]), 0))
        return head

    def _join(self, head: Any, columns: Sequence[pa.Array]) -> Rows:
        count = len(head)
        total = head[:, self._length_word :].view(np.uint32).astype(np.int64).sum(axis=1)
        padding = (-total) % 8
        pieces = [_binary(head.view(np.uint8).reshape(-1), np.arange(count + 1) * (self.width * 8))]
        pieces += [pc.fill_null(columns[index].cast(pa.binary()), b"") for index in self._variable]
        pad_offsets = offsets_of(padding)
        pieces.append(_binary(np.zeros(int(pad_offsets[-1]), np.uint8), pad_offsets))
        joined = pc.binary_join_element_wise(*pieces, b"")
        offsets = offsets_of((total + padding) // 8 + self.width)
        return Rows(np.frombuffer(joined.buffers()[2], np.uint64, count=int(offsets[-1])), offsets)

    # --- decode ----------------------------------------------------------------------------------

    def decode(self, rows: Rows | Scattered) -> pa.RecordBatch:
        """Decode rows in the order given, where they lie; the reverse of `encode`."""
        starts = rows.starts
        nulls = [rows.words[starts + word] for word in range(self.null_words)]
        seen = [int(np.bitwise_or.reduce(word)) if len(word) else 0 for word in nulls]
        masks: list[Bools | None] = []
        for index in range(len(self.schema)):
            shift = np.uint64(index % 64)
            used = seen[index // 64] >> (index % 64) & 1
            masks.append((nulls[index // 64] >> shift & np.uint64(1)).astype(bool) if used else None)
        columns: list[pa.Array | None] = [None] * len(self.schema)
        for index, word, wide in self._fixed:
            columns[index] = self._decode_fixed(rows.words, starts + word, wide, index, masks[index])
        if self._variable:
            self._decode_variable(rows, masks, columns)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _decode_fixed(
        self, words: UInt64s, at: Int64s, wide: bool, index: int, mask: Bools | None
    ) -> pa.Array:
        data_type = self.schema.field(index).type
        values = words[at]
        if pa.types.is_boolean(data_type):
            buffer: Any = np.packbits(values.astype(bool), bitorder="little")
        elif pa.types.is_decimal(data_type):
            buffer = np.empty((len(at), 2), np.uint64)
            buffer[:, 0] = values
            # A narrow decimal's upper word is the sign of its lower one.
            buffer[:, 1] = words[at + 1] if wide else (values.view(np.int64) >> 63).view(np.uint64)
        else:
            width = data_type.bit_width // 8
            buffer = values if width == 8 else values.astype(f"u{width}")
        return pa.Array.from_buffers(data_type, len(at), [_validity(mask), pa.py_buffer(buffer)])

    def _decode_variable(
        self, rows: Rows | Scattered, masks: list[Bools | None], columns: list[pa.Array | None]
    ) -> None:
        count, slots = len(rows), len(self._variable)
        starts = rows.starts
        halves = rows.words.view(np.uint32)
        edges = np.empty((count, slots + 1), np.int64)
        edges[:, 0] = (starts + self.width) * 8
        first = (starts + self._length_word) * 2
        for slot in range(slots):
            np.add(edges[:, slot], halves[first + slot], out=edges[:, slot + 1])
        # All strings of all rows are one binary array with gaps as elements; each column takes its own.
        flat = np.empty(count * (slots + 1) + 1, np.int64)
        flat[:-1] = edges.ravel()
        # The end of the last gap is never read, but Arrow estimates the size by it.
        flat[-1] = min(int(flat[0]) + int(rows.lengths.sum()) * 8, rows.words.nbytes) if count else 0
        spread = pa.Array.from_buffers(
            pa.large_binary(), count * (slots + 1), [None, pa.py_buffer(flat), pa.py_buffer(rows.words)]
        )
        for slot, index in enumerate(self._variable):
            at = np.arange(slot, count * (slots + 1), slots + 1, dtype=np.int64)
            wanted = pa.Array.from_buffers(pa.int64(), count, [_validity(masks[index]), pa.py_buffer(at)])
            taken = spread.take(wanted)
            nested = self._nested.get(index)
            columns[index] = (
                _as_type(taken, self.schema.field(index).type) if nested is None else nested.decode(taken)
            )


def _as_type(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    if pa.types.is_large_binary(data_type):
        return values
    if pa.types.is_large_string(data_type):
        return values.view(data_type)
    narrow = values.cast(pa.binary())
    return narrow.view(data_type) if pa.types.is_string(data_type) else narrow.cast(data_type)


def _words(column: pa.Array) -> Any:
    # The values of a fixed-width column as unsigned integers; two words a value for decimals.
    kind, count = column.type, len(column)
    if pa.types.is_boolean(kind):
        return np.asarray(column.fill_null(False)).astype(np.uint64)
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros((count, 2) if pa.types.is_decimal(kind) else count, np.uint64)
    if pa.types.is_decimal(kind):
        return np.frombuffer(buffer, np.uint64, count=2 * count, offset=16 * column.offset).reshape(count, 2)
    width = kind.bit_width // 8
    return np.frombuffer(buffer, f"u{width}", count=count, offset=width * column.offset)


def _binary(data: Any, offsets: Any) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _validity(mask: Bools | None) -> pa.Buffer | None:
    return None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
