"""Times before 1970 with a fraction of a second, which Arrow's writer encodes wrongly.

ORC stores a timestamp as seconds and, in another stream, non-negative nanoseconds. Arrow (up to 26 at least)
writes negative ones, which other readers reject. So Arrow writes such a column as whole seconds, and this
module writes its nanoseconds, their positions and the statistics. It drops the column's Bloom filters, which
Arrow computed from whole seconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import UnsupportedError
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import HEADER_LENGTH, frame, unframe
from lockgate.framework.orc.format.layout import BLOOM_FILTERS, Compression, StreamKind
from lockgate.framework.orc.format.stripe import Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.sources.file_source import Source

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MILLI = 1_000_000
# Version 2 of ORC's run-length encoding, direct: up to 512 values of 40 bits, a width with code 28.
_RUN, _WIDTH_CODE, _BYTES = 512, 28, 5

StreamReplacements = dict[tuple[int, int], bytes]
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Times:
    """The times of a column: nanoseconds of the second, milliseconds since 1970, and validity."""

    nanos: _Numbers
    millis: _Numbers
    valid: npt.NDArray[np.bool_]


class EarlyTimes:
    """Removes such times from a table before Arrow writes it, and patches them into Arrow's file.

    `table` is the table for Arrow. `numbers` has the columns' numbers, `names` their names for messages.

    Raises `UnsupportedError` for a time from 23:59:59.001 in the last second before 1970, which ORC reads as
    one a second later, and for early times in nested columns.
    """

    def __init__(self, table: pa.Table, numbers: Mapping[str, int], names: Mapping[str, str]) -> None:
        self._times: dict[int, _Times] = {}
        self.table = table
        for index, field in enumerate(table.schema):
            column = table.column(index)
            if pa.types.is_timestamp(field.type):
                if _has_early_fractions(column):
                    self._times[numbers[field.name]], whole = _split(names[field.name], column)
                    self.table = self.table.set_column(index, field, whole)
            elif pa.types.is_nested(field.type):
                for chunk in column.chunks:
                    _refuse_nested(names[field.name], chunk)

    def __bool__(self) -> bool:
        return bool(self._times)

    def patch_stripe(
        self, source: Source, tail: Tail, stripe: Stripe, first_row: int
    ) -> tuple[Stripe, StreamReplacements]:
        """Return the stripe with the new lengths of streams, and the replaced streams by column and kind."""
        replaced: StreamReplacements = {}
        for column, times in self._times.items():
            part = _slice(times, first_row, first_row + stripe.rows)
            groups = _groups(part, tail.footer.row_index_stride or stripe.rows)
            encoded = [_encode(group.nanos[group.valid]) for group in groups]
            replaced[column, StreamKind.SECONDARY] = frame(tail.codec, b"".join(encoded), tail.block_size)
            for stream in stripe.streams:
                if stream.column == column and stream.kind == StreamKind.ROW_INDEX:
                    stored = source.read_at(stream.offset, stream.length)
                    index = proto.RowIndex.FromString(unframe(tail.codec, stored, tail.block_size))
                    _patch_index(index, groups, encoded, tail)
                    replaced[column, StreamKind.ROW_INDEX] = frame(
                        tail.codec, index.SerializeToString(), tail.block_size
                    )
        streams = tuple(
            dataclasses.replace(stream, length=len(replaced[stream.column, stream.kind]))
            if (stream.column, stream.kind) in replaced
            else stream
            for stream in stripe.streams
            if not (stream.column in self._times and stream.kind in BLOOM_FILTERS)
        )
        return dataclasses.replace(stripe, streams=streams), replaced

    def patch_statistics(self, tail: Tail, metadata: proto.Message | None) -> None:
        """Set the bounds of these columns in the statistics of the file and its stripes."""
        for column, times in self._times.items():
            _set_bounds(tail.footer.statistics[column], times)
            first = 0
            for index, stripe in enumerate(tail.footer.stripes):
                if metadata is not None:
                    part = _slice(times, first, first + stripe.number_of_rows)
                    _set_bounds(metadata.stripe_stats[index].col_stats[column], part)
                first += stripe.number_of_rows


def _has_early_fractions(column: pa.ChunkedArray) -> bool:
    per_second = PER_SECOND[column.type.unit]
    earliest = pc.min(column.cast(pa.int64())).as_py()
    if earliest is None or earliest >= 0:
        return False
    numbers = _numbers(column)
    return bool(per_second > 1 and ((numbers < 0) & (numbers % per_second != 0)).any())


def _numbers(column: Any) -> _Numbers:
    filled = column.cast(pa.int64()).fill_null(0)
    if isinstance(filled, pa.ChunkedArray):
        filled = filled.combine_chunks()
    numbers: _Numbers = filled.to_numpy(zero_copy_only=False)
    return numbers


def _split(name: str, column: pa.ChunkedArray) -> tuple[_Times, pa.Array]:
    """Return the times, and the whole seconds for Arrow to write."""
    per_second = PER_SECOND[column.type.unit]
    numbers = _numbers(column)
    valid: npt.NDArray[np.bool_] = column.is_valid().combine_chunks().to_numpy(zero_copy_only=False)
    seconds, fractions = np.divmod(numbers, per_second)
    nanos = fractions * (10**9 // per_second)
    if bool((valid & (seconds == -1) & (nanos >= _MILLI)).any()):
        raise _unsupported(
            name,
            "between 1969-12-31 23:59:59.001 and 1970-01-01 UTC, which ORC reads as one a second later",
        )
    # Before 1970, readers subtract a second if the fraction is a millisecond or more.
    stored = seconds + ((seconds < 0) & (nanos >= _MILLI))
    whole = pa.array(stored * per_second, pa.int64(), mask=~valid).cast(column.type)
    return _Times(nanos, seconds * 1000 + nanos // _MILLI, valid), whole


def _refuse_nested(name: str, values: pa.Array) -> None:
    type_ = values.type
    if pa.types.is_timestamp(type_):
        if _has_early_fractions(pa.chunked_array([values])):
            raise _unsupported(name, "before 1970 with a fraction of a second inside a nested column")
    elif pa.types.is_struct(type_):
        for child in values.flatten():
            _refuse_nested(name, child)
    elif pa.types.is_map(type_):
        _refuse_nested(name, values.keys)
        _refuse_nested(name, values.items)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        _refuse_nested(name, values.flatten())


def _unsupported(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(f"column {name!r} has a time {what}; round it to whole seconds")


def _slice(times: _Times, start: int, end: int) -> _Times:
    return _Times(times.nanos[start:end], times.millis[start:end], times.valid[start:end])


def _groups(times: _Times, stride: int) -> list[_Times]:
    return [_slice(times, start, start + stride) for start in range(0, len(times.valid), max(stride, 1))]


def _encode(nanos: _Numbers) -> bytes:
    """Encode nanoseconds in runs; the three low bits, the count of removed decimal zeros, stay 0."""
    shifted = (nanos << 3).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - _BYTES :]
    parts: list[bytes] = []
    for start in range(0, len(shifted), _RUN):
        run = shifted[start : start + _RUN]
        length = len(run) - 1
        parts.append(bytes([0x40 | _WIDTH_CODE << 1 | length >> 8, length & 0xFF]))
        parts.append(run.tobytes())
    return b"".join(parts)


def _patch_index(index: proto.Message, groups: list[_Times], encoded: list[bytes], tail: Tail) -> None:
    """Set the positions of the last stream in each entry; a new run starts at each row group."""
    position = 0
    for entry, group, data in zip(index.entry, groups, encoded, strict=True):
        if tail.codec is Compression.NONE:
            entry.positions[-2:] = [position, 0]
        else:
            # Uncompressed chunks all have the block size, so the chunk follows by division.
            chunk, offset = divmod(position, tail.block_size)
            entry.positions[-3:] = [chunk * (tail.block_size + HEADER_LENGTH), offset, 0]
        _set_bounds(entry.statistics, group)
        position += len(data)


def _set_bounds(statistics: proto.Message, times: _Times) -> None:
    statistics.ClearField("timestamp_statistics")
    statistics.timestamp_statistics.SetInParent()
    millis = times.millis[times.valid]
    if len(millis):
        # Bounds without nanoseconds span their whole millisecond.
        statistics.timestamp_statistics.minimum_utc = int(millis.min())
        statistics.timestamp_statistics.maximum_utc = int(millis.max())
