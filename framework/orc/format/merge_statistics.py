"""Merging of column statistics of several parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

from lockgate.framework.orc.format import proto

_MAX_LONG = (1 << 63) - 1
_DIGITS = Context(prec=80)


def merge_statistics(parts: Sequence[proto.Message]) -> proto.Message:
    """Return the statistics of a column from those of consecutive parts of its rows.

    A value is set only if all parts with values have it, since readers skip rows by it.
    """
    if len(parts) == 1:
        return parts[0]
    merged = proto.ColumnStatistics(
        number_of_values=sum(part.number_of_values for part in parts),
        has_null=any(part.has_null for part in parts),
    )
    if all(part.HasField("bytes_on_disk") for part in parts):
        merged.bytes_on_disk = sum(part.bytes_on_disk for part in parts)
    parts_with_values = [part for part in parts if part.number_of_values] or parts
    for field, merge in _MERGES.items():
        if any(part.HasField(field) for part in parts):
            # An empty message still states the column's type.
            getattr(merged, field).SetInParent()
            if all(part.HasField(field) for part in parts_with_values):
                merge(getattr(merged, field), [getattr(part, field) for part in parts_with_values])
    return merged


def _values_of_all(field: str, parts: Sequence[proto.Message]) -> list[Any] | None:
    return [getattr(part, field) for part in parts] if all(part.HasField(field) for part in parts) else None


def _bounds(
    into: proto.Message, parts: Sequence[proto.Message], order: Callable[[Any], Any] = lambda value: value
) -> None:
    low, high = _values_of_all("minimum", parts), _values_of_all("maximum", parts)
    if low is not None and high is not None:
        into.minimum = min(low, key=order)
        into.maximum = max(high, key=order)


def _integers(into: proto.Message, parts: Sequence[proto.Message]) -> None:
    _bounds(into, parts)
    sums = _values_of_all("sum", parts)
    if sums is not None and -_MAX_LONG <= sum(sums) <= _MAX_LONG:
        into.sum = sum(sums)


def _doubles(into: proto.Message, parts: Sequence[proto.Message]) -> None:
    if not any(math.isnan(part.minimum) or math.isnan(part.maximum) for part in parts):
        _bounds(into, parts)
    sums = _values_of_all("sum", parts)
    if sums is not None:
        into.sum = sum(sums)


def _strings(into: proto.Message, parts: Sequence[proto.Message]) -> None:
    _bounds(into, parts, lambda text: text.encode())
    sums = _values_of_all("sum", parts)
    if sums is not None:
        into.sum = sum(sums)


def _decimals(into: proto.Message, parts: Sequence[proto.Message]) -> None:
    _bounds(into, parts, Decimal)
    sums = _values_of_all("sum", parts)
    if sums is not None:
        total = Decimal(0)
        for text in sums:
            total = _DIGITS.add(total, Decimal(text))
        if len(total.as_tuple().digits) <= 38:
            into.sum = format(total, "f")


def _timestamps(into: proto.Message, parts: Sequence[proto.Message]) -> None:
    for zone in ("", "_utc"):
        low, high = f"minimum{zone}", f"maximum{zone}"
        if _values_of_all(low, parts) is None or _values_of_all(high, parts) is None:
            continue
        starts = [(getattr(part, low), part.minimum_nanos) for part in parts]
        ends = [(getattr(part, high), _maximum_nanos(part)) for part in parts]
        first, last = parts[starts.index(min(starts))], parts[ends.index(max(ends))]
        setattr(into, low, getattr(first, low))
        setattr(into, high, getattr(last, high))
        # The nanoseconds belong to their bounds; without them a bound spans its whole millisecond.
        for part, nanos in ((first, "minimum_nanos"), (last, "maximum_nanos")):
            if part.HasField(nanos):
                setattr(into, nanos, getattr(part, nanos))


def _maximum_nanos(part: proto.Message) -> int:
    return int(part.maximum_nanos) if part.HasField("maximum_nanos") else 1_000_000


def _buckets(into: proto.Message, parts: Sequence[proto.Message]) -> None:
    counts = [list(part.count) for part in parts]
    if len({len(count) for count in counts}) == 1:
        into.count.extend(sum(column) for column in zip(*counts, strict=True))


def _binaries(into: proto.Message, parts: Sequence[proto.Message]) -> None:
    sums = _values_of_all("sum", parts)
    if sums is not None:
        into.sum = sum(sums)


def _collections(into: proto.Message, parts: Sequence[proto.Message]) -> None:
    for field, merge in (("min_children", min), ("max_children", max), ("total_children", sum)):
        if any(part.HasField(field) for part in parts):
            setattr(into, field, merge(getattr(part, field) for part in parts))


_MERGES: dict[str, Callable[[proto.Message, Sequence[proto.Message]], None]] = {
    "int_statistics": _integers,
    "double_statistics": _doubles,
    "string_statistics": _strings,
    "bucket_statistics": _buckets,
    "decimal_statistics": _decimals,
    "date_statistics": _bounds,
    "binary_statistics": _binaries,
    "timestamp_statistics": _timestamps,
    "collection_statistics": _collections,
}
