"""Conversion of values to a table's types without loss: the value that is stored equals the one given."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError
from lockgate.framework.types.arrow_types import to_arrow
from lockgate.framework.types.datatype import BINARY_KINDS, STRING_KINDS, DataType, Kind

_INT64_END = float(2**63)
_TEXT_OR_BYTES = STRING_KINDS | BINARY_KINDS
_LISTS = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")


class _LossError(Exception):
    """Why a value cannot be converted; never holds the value, which may be confidential."""


def convert_losslessly(
    column: pa.ChunkedArray, to: DataType, name: str, *, source: str = "the rows"
) -> pa.ChunkedArray:
    """Return a column as the Arrow type of a table's column; `name` and `source` are for messages.

    Numbers become others that are equal, dates become timestamps at midnight and back, texts become bytes
    and back if they are UTF-8, and timestamps and times get another unit. Members of a ROW are matched by
    name, and missing ones are null. Raises InputError that names the source, the column and both types if a
    value would change, for values of another kind (a text is no number), for members that the ROW does not
    have, and for nulls inside a type that permits none.
    """
    target = to_arrow(to)
    if column.type == target:
        return column
    try:
        chunks = [_converted(chunk, to) for chunk in column.chunks]
    except (_LossError, pa.ArrowException) as error:
        # Arrow's own messages hold values.
        reason = str(error) if isinstance(error, _LossError) else "not all of its values fit"
        raise InputError(
            f"column {name!r} is {column.type} in {source} and is stored as {to.bare_name}: {reason}; "
            "convert its values first"
        ) from None
    return pa.chunked_array(chunks, type=target)


def _converted(array: pa.Array, to: DataType) -> pa.Array:
    array = _plain(array)
    target = to_arrow(to)
    if array.type == target:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if to.kind is Kind.ROW:
        return _struct(array, to)
    if to.kind is Kind.ARRAY:
        return _list(array, to)
    if to.kind is Kind.MAP:
        return _map(array, to)
    return _value(array, to, target)


def _plain(array: pa.Array) -> pa.Array:
    """Return the values without an encoding of Arrow's."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if pa.types.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(array.type):
        return _plain(pc.run_end_decode(array))
    return array


# --- nested values ---


def _struct(array: pa.Array, to: DataType) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise _other_kind(array.type, to)
    names = [field.name for field in array.type]
    if len(set(names)) != len(names):
        raise _LossError(f"two members of {array.type} have the same name")
    wanted = {field.name for field in to.fields}
    extra = [name for name in names if name not in wanted]
    if extra:
        raise _LossError(f"the table has no member {extra[0]!r}")
    nulls = array.is_null()
    children, fields = [], []
    for field in to.fields:
        kind = to_arrow(field.type)
        child = (
            _converted(pc.struct_field(array, [names.index(field.name)]), field.type)
            if field.name in names
            else pa.nulls(len(array), kind)
        )
        if not field.type.nullable and pc.any(pc.and_(child.is_null(), pc.invert(nulls))).as_py():
            raise _LossError(f"its member {field.name!r} is NOT NULL, and there are nulls")
        children.append(child)
        fields.append(pa.field(field.name, kind, nullable=field.type.nullable))
    return pa.StructArray.from_arrays(children, fields=fields, mask=nulls)


def _list(array: pa.Array, to: DataType) -> pa.Array:
    if not any(getattr(pa.types, name)(array.type) for name in _LISTS):
        raise _other_kind(array.type, to)
    array = _compact(array.cast(pa.list_(array.type.value_field)))
    inner = _inner(array.values, to.element_type(), "element")
    return pa.ListArray.from_arrays(array.offsets, inner, type=to_arrow(to), mask=array.is_null())


def _map(array: pa.Array, to: DataType) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise _other_kind(array.type, to)
    array = _compact(array)
    keys = _inner(array.keys, to.key_type(), "key")
    values = _inner(array.items, to.value_type(), "value")
    return pa.MapArray.from_arrays(array.offsets, keys, values, type=to_arrow(to), mask=array.is_null())


def _compact(array: pa.Array) -> pa.Array:
    """Return a copy whose offsets start at 0, and without values under nulls."""
    return array.take(pa.array(range(len(array)), pa.int64()))


def _inner(values: pa.Array, to: DataType, what: str) -> pa.Array:
    if not to.nullable and values.null_count:
        raise _LossError(f"its {what} is NOT NULL, and there are nulls")
    return _converted(values, to)


# --- single values ---


def _value(array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    given = array.type
    if to.is_integer:
        return _integer(array, to, target)
    if to.kind in (Kind.FLOAT, Kind.DOUBLE):
        return _floating(array, to, target)
    if to.kind is Kind.DECIMAL:
        # Arrow does not notice all that overflows where digits are added.
        whole = array.cast(pa.decimal128(20, 0)) if pa.types.is_integer(given) else array
        return _same_again(whole, _cast_if(pa.types.is_decimal(whole.type), whole, to, target))
    if to.kind in _TEXT_OR_BYTES:
        return _cast_if(_is_text(given) or _is_bytes(given), array, to, target)
    if to.kind is Kind.DATE:
        if pa.types.is_timestamp(given) and given.tz is None:
            return _same_again(array, array.cast(target))
        return _cast_if(pa.types.is_date(given), array, to, target)
    if to.kind is Kind.TIME:
        return _cast_if(pa.types.is_time(given), array, to, target)
    if to.is_timestamp:
        return _timestamp(array, to, target)
    raise _other_kind(given, to)  # a BOOLEAN, which has one type


def _integer(array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    given = array.type
    if pa.types.is_floating(given):
        if pc.any(pc.greater_equal(pc.abs(array.cast(pa.float64())), _INT64_END)).as_py():
            raise _LossError("not all of its values fit")
        return array.cast(target)
    return _cast_if(pa.types.is_integer(given) or pa.types.is_decimal(given), array, to, target)


def _floating(array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    given = array.type
    if pa.types.is_floating(given):
        return _same_again(array, array.cast(target))
    return _cast_if(pa.types.is_integer(given), array, to, target)


def _timestamp(array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    given = array.type
    if pa.types.is_timestamp(given):
        if (given.tz is None) != (target.tz is None):
            raise _LossError("one is a point in time, the other a wall clock")
        return array.cast(target)
    if pa.types.is_date(given) and target.tz is None:
        return _same_again(array, array.cast(target))
    raise _other_kind(given, to)


def _cast_if(allowed: bool, array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    """Cast, which Arrow checks between these types; _LossError for values of another kind."""
    if not allowed:
        raise _other_kind(array.type, to)
    return array.cast(target)


def _same_again(array: pa.Array, converted: pa.Array) -> pa.Array:
    """Return the converted values if they convert back to the given ones, which Arrow does not check."""
    again = converted.cast(array.type)
    differs = pc.not_equal(again, array)
    if pa.types.is_floating(array.type):
        differs = pc.and_(differs, pc.invert(pc.and_(pc.is_nan(again), pc.is_nan(array))))
    if pc.any(differs).as_py():
        raise _LossError("not all of its values fit")
    return converted


def _other_kind(given: pa.DataType, to: DataType) -> _LossError:
    return _LossError(f"values of {given} are not values of {to.bare_name}")


def _is_text(given: Any) -> bool:
    types = pa.types
    return bool(types.is_string(given) or types.is_large_string(given) or types.is_string_view(given))


def _is_bytes(given: Any) -> bool:
    types = pa.types
    found = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    return any(is_kind(given) for is_kind in found)
