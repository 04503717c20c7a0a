"""Paimon's field ids, which its ORC files store as an attribute of each type."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments

FIELD_ID = b"paimon.id"
# Path of a map's keys. Elements of lists and values of maps add nothing to the path.
MAP_KEY = "key()"

# Ids of elements, keys and values are computed from the column's id (Paimon's SpecialFields).
_STRUCTURED_BASE = (2**31 - 1) // 4
_DEPTH_LIMIT = 1 << 10


@checked_arguments
def with_field_ids(schema: pa.Schema, ids: Mapping[str, int]) -> pa.Schema:
    """Return `schema` with field ids in its metadata, which an ORC file stores as the attribute `paimon.id`.


    `ids` is by column name. A field of a struct is named by its path (`address.zip`), even if the struct is
    in an array or is a map's value; `routes.key().zip` is a field of a map's key. Fields without an id are
    unchanged.
    """
    return pa.schema([_field(field, ids, field.name) for field in schema], schema.metadata)


def _field(field: pa.Field, ids: Mapping[str, int], path: str) -> pa.Field:
    field_id = ids.get(path)
    if field_id is None:
        return field.with_type(_struct_type(field.type, ids, path))
    return _with_id(field.with_type(_type(field.type, ids, path, field_id, 0)), field_id)


def _with_id(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), FIELD_ID: str(field_id).encode()})


def _type(type_: pa.DataType, ids: Mapping[str, int], path: str, field_id: int, depth: int) -> pa.DataType:
    child_depth = depth + 1
    if pa.types.is_map(type_):
        key = _type(type_.key_type, ids, f"{path}.{MAP_KEY}", field_id, child_depth)
        item = _type(type_.item_type, ids, path, field_id, child_depth)
        return pa.map_(
            _with_id(
                type_.key_field.with_type(key), _STRUCTURED_BASE - field_id * _DEPTH_LIMIT - child_depth
            ),
            _with_id(
                type_.item_field.with_type(item), _STRUCTURED_BASE + field_id * _DEPTH_LIMIT + child_depth
            ),
        )
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        element = _type(type_.value_type, ids, path, field_id, child_depth)
        field = _with_id(
            type_.value_field.with_type(element), _STRUCTURED_BASE + field_id * _DEPTH_LIMIT + child_depth
        )
        return pa.list_(field) if pa.types.is_list(type_) else pa.large_list(field)
    return _struct_type(type_, ids, path)


def _struct_type(type_: pa.DataType, ids: Mapping[str, int], path: str) -> pa.DataType:
    if not pa.types.is_struct(type_):
        return type_
    return pa.struct([_field(child, ids, f"{path}.{child.name}") for child in type_])
