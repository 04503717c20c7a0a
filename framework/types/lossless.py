"""Lossless conversion of values to a table's types: the stored value equals the original."""

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
    """The reason why values cannot be converted, without the values, which may be confidential."""


def convert_losslessly(
    column: pa.ChunkedArray, to: DataType, name: str, *, source: str = "the rows"
) -> pa.ChunkedArray:
    """Return a column converted to the Arrow type of a table's column; `name` and `source` are for messages.

    Numbers become equal numbers of another type, dates become timestamps at midnight and vice versa, texts
    become bytes and, if they are UTF-8, vice versa; timestamps and times change their unit. Members of a ROW
    are matched by name, and missing ones are null. Raises InputError with the source, the column and both
    types if a value would change, for values of another kind (a text is no number), for members that the ROW
    lacks, and for nulls in a NOT NULL type.
    """
    target = to_arrow(to)
    if column.type == target:
        return column
    try:
        chunks = [_converted(chunk, to) for chunk in column.chunks]
    except (_LossError, pa.ArrowException) as error:
        # Arrow's messages contain values.
        reason = str(error) if isinstance(error, _LossError) else "not all of its values fit"
        raise InputError(
            f"column {name!r} is {column.type} in {source} and is stored as {to.bare_name}: {reason}; "
            "convert its values first"
        ) from None
    return pa.chunked_array(chunks, type=target)


def _converted(array: pa.Array, to: DataType) -> pa.Array:
    array = _decoded(array)
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


def _decoded(array: pa.Array) -> pa.Array:
    """Return the values without Arrow's encodings, such as dictionaries."""
    if isinstance(array, pa.ExtensionArray):
        return _decoded(array.storage)
    if pa.types.is_dictionary(array.type):
        return _decoded(array.dictionary_decode())
    if pa.types.is_run_end_encoded(array.type):
        return _decoded(pc.run_end_decode(array))
    return array


# --- nested values ---


def _struct(array: pa.Array, to: DataType) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise _incompatible(array.type, to)
    names = [field.name for field in array.type]
    if len(set(names)) != len(names):
        raise _LossError(f"two members of {array.type} have the same name")
    member_names = {field.name for field in to.fields}
    extra = [name for name in names if name not in member_names]
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
        raise _incompatible(array.type, to)
    array = _compact(array.cast(pa.list_(array.type.value_field)))
    inner = _inner(array.values, to.element_type(), "element")
    return pa.ListArray.from_arrays(array.offsets, inner, type=to_arrow(to), mask=array.is_null())


def _map(array: pa.Array, to: DataType) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise _incompatible(array.type, to)
    array = _compact(array)
    keys = _inner(array.keys, to.key_type(), "key")
    values = _inner(array.items, to.value_type(), "value")
    return pa.MapArray.from_arrays(array.offsets, keys, values, type=to_arrow(to), mask=array.is_null())


def _compact(array: pa.Array) -> pa.Array:
    """Return a copy whose offsets start at 0 and that has no values under nulls."""
    return array.take(pa.array(range(len(array)), pa.int64()))


def _inner(values: pa.Array, to: DataType, what: str) -> pa.Array:
    if not to.nullable and values.null_count:
        raise _LossError(f"its {what} is NOT NULL, and there are nulls")
    return _converted(values, to)


# --- single values ---


def _value(array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    source_type = array.type
    if to.is_integer:
        return _integer(array, to, target)
    if to.kind in (Kind.FLOAT, Kind.DOUBLE):
        return _floating(array, to, target)
    if to.kind is Kind.DECIMAL:
        # Arrow does not detect all overflows if the scale grows.
        whole = array.cast(pa.decimal128(20, 0)) if pa.types.is_integer(source_type) else array
        return _checked_round_trip(whole, _cast_if(pa.types.is_decimal(whole.type), whole, to, target))
    if to.kind in _TEXT_OR_BYTES:
        return _cast_if(_is_text(source_type) or _is_bytes(source_type), array, to, target)
    if to.kind is Kind.DATE:
        if pa.types.is_timestamp(source_type) and source_type.tz is None:
            return _checked_round_trip(array, array.cast(target))
        return _cast_if(pa.types.is_date(source_type), array, to, target)
    if to.kind is Kind.TIME:
        return _cast_if(pa.types.is_time(source_type), array, to, target)
    if to.is_timestamp:
        return _timestamp(array, to, target)
    raise _incompatible(source_type, to)  # BOOLEAN has a single Arrow type


def _integer(array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    source_type = array.type
    if pa.types.is_floating(source_type):
        if pc.any(pc.greater_equal(pc.abs(array.cast(pa.float64())), _INT64_END)).as_py():
            raise _LossError("not all of its values fit")
        return array.cast(target)
    return _cast_if(pa.types.is_integer(source_type) or pa.types.is_decimal(source_type), array, to, target)


def _floating(array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    source_type = array.type
    if pa.types.is_floating(source_type):
        return _checked_round_trip(array, array.cast(target))
    return _cast_if(pa.types.is_integer(source_type), array, to, target)


def _timestamp(array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    source_type = array.type
    if pa.types.is_timestamp(source_type):
        if (source_type.tz is None) != (target.tz is None):
            raise _LossError("one is a point in time, the other a wall clock")
        return array.cast(target)
    if pa.types.is_date(source_type) and target.tz is None:
        return _checked_round_trip(array, array.cast(target))
    raise _incompatible(source_type, to)


def _cast_if(allowed: bool, array: pa.Array, to: DataType, target: pa.DataType) -> pa.Array:
    """Cast values, which Arrow checks between these types; _LossError unless `allowed`."""
    if not allowed:
        raise _incompatible(array.type, to)
    return array.cast(target)


def _checked_round_trip(array: pa.Array, converted: pa.Array) -> pa.Array:
    """Return the converted values; _LossError unless they convert back to the original ones."""
    converted_back = converted.cast(array.type)
    differs = pc.not_equal(converted_back, array)
    if pa.types.is_floating(array.type):
        differs = pc.and_(differs, pc.invert(pc.and_(pc.is_nan(converted_back), pc.is_nan(array))))
    if pc.any(differs).as_py():
        raise _LossError("not all of its values fit")
    return converted


def _incompatible(source_type: pa.DataType, to: DataType) -> _LossError:
    return _LossError(f"values of {source_type} are not values of {to.bare_name}")


def _is_text(arrow_type: Any) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type)
    )


def _is_bytes(arrow_type: Any) -> bool:
    types = pa.types
    checks = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    return any(is_kind(arrow_type) for is_kind in checks)
