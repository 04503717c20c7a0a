"""Paimon's field ids, which its ORC files carry as an attribute of each type."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments

FIELD_ID = b"paimon.id"
# The part of a path for the keys of a map. What is in elements and values comes behind the column's own path.
MAP_KEY = "key()"

# Elements, keys and values have no id of their own; theirs is computed (Paimon's SpecialFields).
_STRUCTURED_BASE = (2**31 - 1) // 4
_DEPTH_LIMIT = 1 << 10


@checked_arguments
def with_field_ids(schema: pa.Schema, ids: Mapping[str, int]) -> pa.Schema:
    """Return `schema` with each field's id in its metadata, which becomes the attribute `paimon.id` in an ORC
    file.

    `ids` is by column name. A field of a struct is named by its path (`address.zip`), also if the struct is
    in an array or is a value of a map; `routes.key().zip` is a field of a key. Fields without an id stay as
    they are.
    """
    return pa.schema([_field(field, ids, field.name) for field in schema], schema.metadata)


def _field(field: pa.Field, ids: Mapping[str, int], path: str) -> pa.Field:
    field_id = ids.get(path)
    if field_id is None:
        return field.with_type(_struct_type(field.type, ids, path))
    return _marked(field.with_type(_type(field.type, ids, path, field_id, 0)), field_id)


def _marked(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), FIELD_ID: str(field_id).encode()})


def _type(type_: pa.DataType, ids: Mapping[str, int], path: str, field_id: int, depth: int) -> pa.DataType:
    below = depth + 1
    if pa.types.is_map(type_):
        key = _type(type_.key_type, ids, f"{path}.{MAP_KEY}", field_id, below)
        item = _type(type_.item_type, ids, path, field_id, below)
        return pa.map_(
            _marked(type_.key_field.with_type(key), _STRUCTURED_BASE - field_id * _DEPTH_LIMIT - below),
            _marked(type_.item_field.with_type(item), _STRUCTURED_BASE + field_id * _DEPTH_LIMIT + below),
        )
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        element = _type(type_.value_type, ids, path, field_id, below)
        field = _marked(
            type_.value_field.with_type(element), _STRUCTURED_BASE + field_id * _DEPTH_LIMIT + below
        )
        return pa.list_(field) if pa.types.is_list(type_) else pa.large_list(field)
    return _struct_type(type_, ids, path)


def _struct_type(type_: pa.DataType, ids: Mapping[str, int], path: str) -> pa.DataType:
    if not pa.types.is_struct(type_):
        return type_
    return pa.struct([_field(child, ids, f"{path}.{child.name}") for child in type_])
