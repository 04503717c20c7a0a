"""Columns of a file as columns of the current schema: matched by field id, cast where the type has changed.

Source: Paimon's `SchemaEvolutionUtil`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import UnsupportedError
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataField, DataType, Kind, to_arrow

# Of timestamps, from coarse to fine, and what Arrow calls them.
_UNITS = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}


def stored_name(field: DataField, written: TableSchema) -> str | None:
    """Return what a current column was called when a file of schema `written` was; None if it was not
    there.
    """
    return next((member.name for member in written.fields if member.id == field.id), None)


def stored_type(field: DataField, written: TableSchema) -> DataType:
    """Return the type a current column had in schema `written`, its own if it was not there."""
    return next((member.type for member in written.fields if member.id == field.id), field.type)


def has_nanoseconds(data_type: DataType) -> bool:
    """Say whether values of a type have digits beyond microseconds."""
    if data_type.is_timestamp:
        return (data_type.precision or 0) > 6
    inside = (data_type.element, data_type.key, data_type.value, *(field.type for field in data_type.fields))
    return any(has_nanoseconds(part) for part in inside if part is not None)


def convert(column: pa.ChunkedArray, written: DataType, current: DataType, name: str) -> pa.ChunkedArray:
    """Convert a column as read to the Arrow type of `current`.

    Raises UnsupportedError, naming the column, for changes of type that lose or cannot convert a value.
    """
    target = to_arrow(current)
    # First of all: a field that was dropped and added again has the same name, but not the same values.
    changed_inside = _is_changed_inside(written, current)
    if column.type == target and not changed_inside:
        return column
    if changed_inside:
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        return pa.chunked_array([_restructure(array, written, current, name)])
    try:
        return _rounded(column, target).cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedError(
            f"column {name!r} cannot be read as {current} where it was {written}: {error}"
        ) from None


def _rounded(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Round timestamps down to the unit of a type: files may hold digits that the column does not have."""
    if not pa.types.is_timestamp(target) or not pa.types.is_timestamp(column.type):
        return column
    units = [*_UNITS]
    if units.index(column.type.unit) <= units.index(target.unit):
        return column
    return pc.floor_temporal(column, unit=_UNITS[target.unit])


def _is_changed_inside(written: DataType, current: DataType) -> bool:
    """Say whether fields inside a column were added, dropped or renamed, which a cast by name would get
    wrong.
    """
    if written.kind is not current.kind:
        return False
    if current.kind is Kind.ROW:
        if [(one.id, one.name) for one in written.fields] != [(one.id, one.name) for one in current.fields]:
            return True
        return any(
            _is_changed_inside(one.type, other.type)
            for one, other in zip(written.fields, current.fields, strict=True)
        )
    return any(_is_changed_inside(one, other) for one, other in _parts(written, current))


def _parts(written: DataType, current: DataType) -> Sequence[tuple[DataType, DataType]]:
    if current.kind is Kind.ARRAY:
        return [(written.element_type(), current.element_type())]
    if current.kind is Kind.MAP:
        return [(written.key_type(), current.key_type()), (written.value_type(), current.value_type())]
    return []


def _restructure(array: pa.Array, written: DataType, current: DataType, name: str) -> pa.Array:
    """Rebuild a column with the fields of `current`, each found by its id."""
    if current.kind is Kind.ROW:
        return _rebuilt_struct(array, written, current, name)
    # Copied, so that offsets start at 0 and nothing lies under a null.
    array = array.take(pa.array(range(len(array)), pa.int64()))
    nulls = array.is_null()
    if current.kind is Kind.ARRAY:
        inner = _converted(array.values, written.element_type(), current.element_type(), f"{name}.element")
        return pa.ListArray.from_arrays(array.offsets, inner, type=to_arrow(current), mask=nulls)
    keys = _converted(array.keys, written.key_type(), current.key_type(), f"{name}.key")
    values = _converted(array.items, written.value_type(), current.value_type(), f"{name}.value")
    return pa.MapArray.from_arrays(array.offsets, keys, values, type=to_arrow(current), mask=nulls)


def _rebuilt_struct(array: pa.Array, written: DataType, current: DataType, name: str) -> pa.Array:
    places = {field.id: index for index, field in enumerate(written.fields)}
    children, fields = [], []
    for field in current.fields:
        kind = to_arrow(field.type)
        fields.append(pa.field(field.name, kind))
        if field.id not in places:
            children.append(pa.nulls(len(array), kind))
            continue
        index = places[field.id]
        child = pc.struct_field(array, [index])
        children.append(_converted(child, written.fields[index].type, field.type, f"{name}.{field.name}"))
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _converted(array: pa.Array, written: DataType, current: DataType, name: str) -> pa.Array:
    found = convert(pa.chunked_array([array]), written, current, name).combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
