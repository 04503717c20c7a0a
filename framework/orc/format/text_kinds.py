"""CHAR and VARCHAR, which Arrow lacks: strings whose field names the type and the length.

Arrow's ORC writer stores them as STRING with an attribute; assembling the file corrects its types.
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

_SPELLED = re.compile(r"(char|varchar)\(([1-9][0-9]{0,8})\)")
_KINDS = {"char": TypeKind.CHAR, "varchar": TypeKind.VARCHAR}


def text_kind(field: pa.Field) -> tuple[TypeKind, int] | None:
    """Return CHAR or VARCHAR and the number of characters, if the field's metadata says so.

    `UnsupportedTypeError` if it says something else, or of another type than a string.
    """
    stated = (field.metadata or {}).get(TEXT_KIND)
    if stated is None:
        return None
    spelled = _SPELLED.fullmatch(stated.decode("utf-8", "replace"))
    if spelled is None or not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
        raise UnsupportedTypeError(
            f"column {field.name!r} of type {field.type} cannot be stored as {stated!r}; "
            f"{TEXT_KIND.decode()} is 'char(n)' or 'varchar(n)', on a string"
        )
    return _KINDS[spelled[1]], int(spelled[2])


def holds_text_kinds(fields: Iterable[pa.Field]) -> bool:
    """Return whether any of the fields, or what is in them, is CHAR or VARCHAR."""
    return any(
        text_kind(field) is not None
        or holds_text_kinds(field.type.field(index) for index in range(field.type.num_fields))
        for field in fields
    )


def fit_text(values: pa.Array, kind: tuple[TypeKind, int]) -> pa.Array:
    """Cut strings to the length of their CHAR or VARCHAR, and fill up a CHAR with blanks."""
    which, length = kind
    cut = pc.utf8_slice_codeunits(values, 0, length)
    return pc.utf8_rpad(cut, length) if which is TypeKind.CHAR else cut


def check_text(name: str, values: pa.Array | pa.ChunkedArray, kind: tuple[TypeKind, int]) -> Any:
    """Return the values as they are stored; `InputError` if one is longer than its type allows."""
    longest = pc.max(pc.utf8_length(values)).as_py()
    if longest is not None and longest > kind[1]:
        raise InputError(
            f"column {name!r} is a {kind[0].name}({kind[1]}), but holds a text of {longest} characters"
        )
    return fit_text(values, kind) if kind[0] is TypeKind.CHAR else values


def state_kinds(schema: pa.Schema, types: TypeTree) -> pa.Schema:
    """Return the schema in which a file was read, with what its types say of CHAR and VARCHAR."""
    tops = types.top_levels()
    fields = [_stated(field, types, top) for field, top in zip(schema, tops, strict=True)]
    return pa.schema(fields, schema.metadata)


def patch_kinds(types: Iterable[proto.Message]) -> None:
    """Turn what the attributes of written types say into the types themselves."""
    for type_ in types:
        for index, attribute in enumerate(type_.attributes):
            if attribute.key.encode() == TEXT_KIND:
                spelled = _SPELLED.fullmatch(attribute.value)
                assert spelled is not None
                type_.kind, type_.maximum_length = int(_KINDS[spelled[1]]), int(spelled[2])
                del type_.attributes[index]
                break


def _stated(field: pa.Field, types: TypeTree, number: int) -> pa.Field:
    message = types.types[number]
    kind = TypeKind(message.kind)
    if kind in (TypeKind.CHAR, TypeKind.VARCHAR):
        spelled = f"{kind.name.lower()}({message.maximum_length})".encode()
        return field.with_metadata({**(field.metadata or {}), TEXT_KIND: spelled})
    children = [int(each) for each in message.subtypes]
    type_ = field.type
    if pa.types.is_struct(type_):
        parts = [_stated(part, types, child) for part, child in zip(type_, children, strict=True)]
        return field.with_type(pa.struct(parts))
    if pa.types.is_map(type_):
        key, item = (
            _stated(part, types, child)
            for part, child in zip((type_.key_field, type_.item_field), children, strict=True)
        )
        return field.with_type(pa.map_(key, item))
    if pa.types.is_list(type_):
        return field.with_type(pa.list_(_stated(type_.value_field, types, children[0])))
    return field
