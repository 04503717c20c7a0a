"""CHAR and VARCHAR, which Arrow lacks: string fields with the ORC type in their metadata.

Arrow's ORC writer stores them as STRING with an attribute; `patch_kinds` then corrects the file's types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.layout import TypeKind
from lockgate.framework.orc.format.types import TypeTree

TEXT_KIND = b"lockgate.orc.type"

_TEXT_TYPE = re.compile(r"(char|varchar)\(([1-9][0-9]{0,8})\)")
_KINDS = {"char": TypeKind.CHAR, "varchar": TypeKind.VARCHAR}


def text_kind(field: pa.Field) -> tuple[TypeKind, int] | None:
    """Return CHAR or VARCHAR with its length from the field's metadata; None if it has neither.

    Raises `UnsupportedTypeError` for other metadata, and for a field that is no string.
    """
    type_text = (field.metadata or {}).get(TEXT_KIND)
    if type_text is None:
        return None
    match = _TEXT_TYPE.fullmatch(type_text.decode("utf-8", "replace"))
    if match is None or not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
        raise UnsupportedTypeError(
            f"column {field.name!r} of type {field.type} cannot be stored as {type_text!r}; "
            f"{TEXT_KIND.decode()} is 'char(n)' or 'varchar(n)', on a string"
        )
    return _KINDS[match[1]], int(match[2])


def holds_text_kinds(fields: Iterable[pa.Field]) -> bool:
    """Return whether any of the fields, or a nested field, is CHAR or VARCHAR."""
    return any(
        text_kind(field) is not None
        or holds_text_kinds(field.type.field(index) for index in range(field.type.num_fields))
        for field in fields
    )


def fit_text(values: pa.Array, kind: tuple[TypeKind, int]) -> pa.Array:
    """Return strings truncated to the length of their type; CHAR values are padded with blanks."""
    type_kind, length = kind
    truncated = pc.utf8_slice_codeunits(values, 0, length)
    return pc.utf8_rpad(truncated, length) if type_kind is TypeKind.CHAR else truncated


def check_text(name: str, values: pa.Array | pa.ChunkedArray, kind: tuple[TypeKind, int]) -> Any:
    """Return the values to store; `InputError` if one is longer than its type allows."""
    longest = pc.max(pc.utf8_length(values)).as_py()
    if longest is not None and longest > kind[1]:
        raise InputError(
            f"column {name!r} is a {kind[0].name}({kind[1]}), but holds a text of {longest} characters"
        )
    return fit_text(values, kind) if kind[0] is TypeKind.CHAR else values


def state_kinds(schema: pa.Schema, types: TypeTree) -> pa.Schema:
    """Return the schema of a file with the file's CHAR and VARCHAR types in the fields' metadata."""
    tops = types.top_levels()
    fields = [_with_text_kinds(field, types, top) for field, top in zip(schema, tops, strict=True)]
    return pa.schema(fields, schema.metadata)


def patch_kinds(types: Iterable[proto.Message]) -> None:
    """Replace the attribute of CHAR and VARCHAR columns by the type itself."""
    for type_ in types:
        for index, attribute in enumerate(type_.attributes):
            if attribute.key.encode() == TEXT_KIND:
                match = _TEXT_TYPE.fullmatch(attribute.value)
                assert match is not None
                type_.kind, type_.maximum_length = int(_KINDS[match[1]]), int(match[2])
                del type_.attributes[index]
                break


def _with_text_kinds(field: pa.Field, types: TypeTree, number: int) -> pa.Field:
    message = types.types[number]
    kind = TypeKind(message.kind)
    if kind in (TypeKind.CHAR, TypeKind.VARCHAR):
        type_text = f"{kind.name.lower()}({message.maximum_length})".encode()
        return field.with_metadata({**(field.metadata or {}), TEXT_KIND: type_text})
    children = [int(number_of_child) for number_of_child in message.subtypes]
    type_ = field.type
    if pa.types.is_struct(type_):
        parts = [_with_text_kinds(part, types, child) for part, child in zip(type_, children, strict=True)]
        return field.with_type(pa.struct(parts))
    if pa.types.is_map(type_):
        key, item = (
            _with_text_kinds(part, types, child)
            for part, child in zip((type_.key_field, type_.item_field), children, strict=True)
        )
        return field.with_type(pa.map_(key, item))
    if pa.types.is_list(type_):
        return field.with_type(pa.list_(_with_text_kinds(type_.value_field, types, children[0])))
    return field
