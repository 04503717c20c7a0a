"""Timestamps in microseconds, including those beyond the range of nanoseconds, the years 1677 to 2262.

Arrow decodes ORC timestamps as nanoseconds, and raises an error for other times. For such a stripe, this
module lets Arrow decode the two streams of a timestamp separately: the seconds as a number, and the fractions
added to constant seconds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import UnsupportedTypeError
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.layout import StreamKind, TypeKind
from lockgate.framework.orc.format.stripe import Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.read.image import Projection

# ORC's seconds count from 2015-01-01 in the writer's time zone.
EPOCH = 1_420_070_400
_UTC_NAMES = frozenset({"GMT", "UTC", "Etc/UTC", "Etc/GMT", "Z"})
_DIRECT_V2 = 2
# A run of 512 zeros in version 2 of ORC's run-length encoding: base 0 with fixed delta 0.
_ZEROS, _RUN = bytes([0xC1, 0xFF, 0x00, 0x00]), 512
_LIMIT = (2**63 - 1) // 1_000_000
_KINDS = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_INSTANT)


def in_microseconds(type_: pa.DataType) -> pa.DataType:
    """Return the type with microseconds in place of nanoseconds, also inside nested types."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(in_microseconds(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(
            type_.key_field.with_type(in_microseconds(type_.key_type)),
            type_.item_field.with_type(in_microseconds(type_.item_type)),
        )
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(in_microseconds(type_.value_type)))
    return type_


def to_microseconds(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Return `column` as `type_`; times are rounded down to microseconds."""
    if column.type == type_:
        return column
    if not pa.types.is_timestamp(type_):
        return pc.cast(column, type_, safe=False)
    chunks = [_floor(chunk, type_) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=type_)


def _floor(chunk: pa.Array, type_: pa.DataType) -> pa.Array:
    valid = chunk.is_valid().to_numpy(zero_copy_only=False)
    nanoseconds = chunk.cast(pa.int64()).fill_null(0).to_numpy()
    micros = np.floor_divide(nanoseconds, 1000)
    return pa.array(micros, pa.int64(), mask=~valid).cast(type_)


def timestamps(projection: Projection) -> list[int]:
    """Return the numbers of an image's timestamp columns, including nested ones."""
    return [position for position, type_ in enumerate(projection.types) if type_.kind in _KINDS]


def seconds_only(projection: Projection) -> Projection:
    """Return the projection with the stored seconds, as a number, in place of each timestamp."""
    positions = timestamps(projection)
    types = list(projection.types)
    for position in positions:
        types[position] = proto.Type(kind=TypeKind.LONG)
    dropped = frozenset((position, int(StreamKind.SECONDARY)) for position in positions)
    return Projection(projection.numbers, tuple(types), dropped)


def fractions_only(projection: Projection, tail: Tail, values: int) -> Projection:
    """Return the projection with each timestamp's seconds replaced by a constant.

    `values` must be at least the number of values of any column.
    """
    zeros = frame(tail.codec, _ZEROS * (values // _RUN + 1), tail.block_size)
    replaced = {(position, int(StreamKind.DATA)): zeros for position in timestamps(projection)}
    return Projection(projection.numbers, projection.types, frozenset(), replaced)


def decode_wide(
    tail: Tail, stripe: Stripe, projection: Projection, decode: Callable[[Projection], pa.Table]
) -> pa.Table:
    """Decode a stripe with times beyond nanoseconds, with timestamps in microseconds."""
    _check(tail, stripe, projection)
    table = decode(seconds_only(projection))
    value_count = max(
        (_max_value_count(chunk) for column in table.columns for chunk in column.chunks), default=0
    )
    fractions = decode(fractions_only(projection, tail, value_count))
    columns = []
    for name, seconds, fraction in zip(table.schema.names, table.columns, fractions.columns, strict=True):
        whole_seconds, parts = seconds.combine_chunks(), fraction.combine_chunks()
        columns.append(_joined(f"column {name!r} of {tail.name}", whole_seconds, parts))
    return pa.Table.from_arrays(columns, names=table.schema.names)


def finer_columns(
    tail: Tail, stripe: Stripe, projection: Projection, decode: Callable[[Projection], pa.Table]
) -> set[str]:
    """Return the columns of a stripe with times finer than microseconds, in any year.

    UnsupportedTypeError for fractions in the encoding of ORC before Hive 0.12.
    """
    for position in timestamps(projection):
        if stripe.footer.columns[projection.numbers[position]].kind != _DIRECT_V2:
            raise UnsupportedTypeError(f"{tail.name}: fractions of seconds in an old encoding cannot be read")
    table = decode(seconds_only(projection))
    value_count = max(
        (_max_value_count(chunk) for column in table.columns for chunk in column.chunks), default=0
    )
    fractions = decode(fractions_only(projection, tail, value_count))
    columns = zip(fractions.schema.names, fractions.columns, strict=True)
    return {name for name, column in columns if any(map(_has_nanoseconds, column.chunks))}


def _has_nanoseconds(array: pa.Array) -> bool:
    if pa.types.is_timestamp(array.type):
        return bool(np.any(array.cast(pa.int64()).fill_null(0).to_numpy() % 1000))
    return any(_has_nanoseconds(child) for child in _children(array))


def _max_value_count(array: pa.Array) -> int:
    """Return the largest number of values of an array and its nested arrays."""
    return max([len(array), *(_max_value_count(child) for child in _children(array))])


def _children(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_struct(array.type):
        return [array.field(index) for index in range(array.type.num_fields)]
    if pa.types.is_map(array.type):
        return [array.keys, array.items]
    if pa.types.is_list(array.type):
        return [array.values]
    return []


def _joined(what: str, seconds: pa.Array, fractions: pa.Array) -> pa.Array:
    """Combine two arrays of one shape: timestamps get their seconds from one, their fractions from the
    other.
    """
    if pa.types.is_timestamp(fractions.type):
        return _combine(what, seconds, fractions).cast(pa.timestamp("us", fractions.type.tz))
    if not _children(fractions):
        return fractions
    pairs = zip(_children(seconds), _children(fractions), strict=True)
    children = [_joined(what, second, fraction) for second, fraction in pairs]
    type_, mask = in_microseconds(fractions.type), fractions.is_null()
    if pa.types.is_struct(type_):
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
    if pa.types.is_map(type_):
        return pa.MapArray.from_arrays(fractions.offsets, *children, type=type_, mask=mask)
    return pa.ListArray.from_arrays(fractions.offsets, *children, type=type_, mask=mask)


def _combine(what: str, seconds: pa.Array, fractions: pa.Array) -> pa.Array:
    valid = seconds.is_valid().to_numpy(zero_copy_only=False)
    whole = seconds.fill_null(0).to_numpy(zero_copy_only=False) + EPOCH
    nanos = fractions.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) % 1_000_000_000
    # Stored seconds before 1970 are rounded up if the fraction is a millisecond or more.
    whole = whole - ((whole < 0) & (nanos > 999_999))
    if len(whole) and int(np.abs(whole).max()) >= _LIMIT:
        raise UnsupportedTypeError(f"{what} has a time that does not fit into microseconds")
    return pa.array(whole * 1_000_000 + nanos // 1000, pa.int64(), mask=~valid)


def _check(tail: Tail, stripe: Stripe, projection: Projection) -> None:
    for position in timestamps(projection):
        number = projection.numbers[position]
        local = projection.types[position].kind == TypeKind.TIMESTAMP
        zone = stripe.footer.writer_timezone
        if (local and zone not in _UTC_NAMES) or stripe.footer.columns[number].kind != _DIRECT_V2:
            raise UnsupportedTypeError(
                f"a timestamp of {tail.name} is beyond the years 1677 to 2262, and it was written in time "
                f"zone {zone or 'unknown'!r}: such times are read only from files written in UTC"
            )
