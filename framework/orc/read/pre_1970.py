"""Times before 1970 with a fraction of a second, which Arrow stores in a form that other readers reject.

ORC stores a timestamp as seconds and, in a second stream, nanoseconds that are never negative. Arrow (up to
26 at least) writes negative ones. So such a column is given to Arrow as whole seconds, and the stream of its
nanoseconds, the positions in it and the statistics are written here. Its Bloom filters, which know nothing
but whole seconds, are left out.
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
# ORC's second run-length encoding, direct: up to 512 values of 40 bits (the code of that width is 28).
_RUN, _WIDTH_CODE, _BYTES = 512, 28, 5

Replaced = dict[tuple[int, int], bytes]
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Times:
    """The true times of a column: nanoseconds in their second, milliseconds since 1970, and validity."""

    nanos: _Numbers
    millis: _Numbers
    valid: npt.NDArray[np.bool_]


class EarlyTimes:
    """Takes such times out of a table before Arrow writes it, and puts them into what Arrow wrote.

    `table` is what Arrow should write, `numbers` its columns' numbers, `names` what callers know them by.

    Raises `UnsupportedError` for a time in the last second before 1970 with a millisecond or more after it,
    which ORC itself cannot tell from one a second later, and for early times in nested columns.
    """

    def __init__(self, table: pa.Table, numbers: Mapping[str, int], names: Mapping[str, str]) -> None:
        self._times: dict[int, _Times] = {}
        self.table = table
        for index, field in enumerate(table.schema):
            column = table.column(index)
            if pa.types.is_timestamp(field.type):
                if _needs_care(column):
                    self._times[numbers[field.name]], whole = _split(names[field.name], column)
                    self.table = self.table.set_column(index, field, whole)
            elif pa.types.is_nested(field.type):
                for chunk in column.chunks:
                    _refuse_nested(names[field.name], chunk)

    def __bool__(self) -> bool:
        return bool(self._times)

    def patch_stripe(
        self, source: Source, tail: Tail, stripe: Stripe, first_row: int
    ) -> tuple[Stripe, Replaced]:
        """Return the stripe with its streams' new lengths, and the streams that are new, by column and
        kind.
        """
        replaced: Replaced = {}
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
        """Put the true bounds into the statistics of the file and its stripes."""
        for column, times in self._times.items():
            _set_bounds(tail.footer.statistics[column], times)
            first = 0
            for index, stripe in enumerate(tail.footer.stripes):
                if metadata is not None:
                    part = _slice(times, first, first + stripe.number_of_rows)
                    _set_bounds(metadata.stripe_stats[index].col_stats[column], part)
                first += stripe.number_of_rows


def _needs_care(column: pa.ChunkedArray) -> bool:
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
    """Return the true times, and the whole seconds that Arrow is to write."""
    per_second = PER_SECOND[column.type.unit]
    numbers = _numbers(column)
    valid: npt.NDArray[np.bool_] = column.is_valid().combine_chunks().to_numpy(zero_copy_only=False)
    seconds, rest = np.divmod(numbers, per_second)
    nanos = rest * (10**9 // per_second)
    if bool((valid & (seconds == -1) & (nanos >= _MILLI)).any()):
        raise _unsupported(
            name,
            "between 1969-12-31 23:59:59.001 and 1970-01-01 UTC, which ORC takes for one a second later",
        )
    # Readers take a second off before 1970 where a fraction of a millisecond or more follows.
    stored = seconds + ((seconds < 0) & (nanos >= _MILLI))
    whole = pa.array(stored * per_second, pa.int64(), mask=~valid).cast(column.type)
    return _Times(nanos, seconds * 1000 + nanos // _MILLI, valid), whole


def _refuse_nested(name: str, values: pa.Array) -> None:
    type_ = values.type
    if pa.types.is_timestamp(type_):
        if _needs_care(pa.chunked_array([values])):
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
    """Encode runs of nanoseconds; the three low bits, which count the decimal zeros cut off, stay 0."""
    shifted = (nanos << 3).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - _BYTES :]
    parts: list[bytes] = []
    for start in range(0, len(shifted), _RUN):
        run = shifted[start : start + _RUN]
        length = len(run) - 1
        parts.append(bytes([0x40 | _WIDTH_CODE << 1 | length >> 8, length & 0xFF]))
        parts.append(run.tobytes())
    return b"".join(parts)


def _patch_index(index: proto.Message, groups: list[_Times], encoded: list[bytes], tail: Tail) -> None:
    """Set the last positions of each entry, those of the last stream; runs restart with each row group."""
    position = 0
    for entry, group, data in zip(index.entry, groups, encoded, strict=True):
        if tail.codec is Compression.NONE:
            entry.positions[-2:] = [position, 0]
        else:
            # Chunks stored as they are have one size, so here the division is right.
            chunk, offset = divmod(position, tail.block_size)
            entry.positions[-3:] = [chunk * (tail.block_size + HEADER_LENGTH), offset, 0]
        _set_bounds(entry.statistics, group)
        position += len(data)


def _set_bounds(statistics: proto.Message, times: _Times) -> None:
    statistics.ClearField("timestamp_statistics")
    statistics.timestamp_statistics.SetInParent()
    millis = times.millis[times.valid]
    if len(millis):
        # Without nanoseconds of their own the bounds span their whole millisecond.
        statistics.timestamp_statistics.minimum_utc = int(millis.min())
        statistics.timestamp_statistics.maximum_utc = int(millis.max())
