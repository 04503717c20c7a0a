"""Conversion of types and fields to and from the JSON of schema files.

Source: Paimon's `DataTypeJsonParser`. Atomic types are SQL strings, nested types are objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from json import dumps, loads
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import UnsupportedTypeError
from lockgate.framework.types import datatype as dt
from lockgate.framework.types.datatype import DataField, DataType, Kind

_ATOMIC = re.compile(
    r"\s*(?P<name>[A-Z_]+(?:\s+PRECISION)?)\s*"
    r"(?:\(\s*(?P<first>\d+)\s*(?:,\s*(?P<second>\d+)\s*)?\))?\s*"
    r"(?P<zone>WITH\s+LOCAL\s+TIME\s+ZONE|WITHOUT\s+TIME\s+ZONE)?\s*"
    r"(?P<null>(?:NOT\s+)?NULL)?\s*",
    re.IGNORECASE,
)

_NOT_NULL = re.compile(r"\s+NOT\s+NULL\s*$", re.IGNORECASE)

_TYPES = {
    "BOOLEAN": dt.BOOLEAN,
    "TINYINT": dt.TINYINT,
    "SMALLINT": dt.SMALLINT,
    "INT": dt.INT,
    "INTEGER": dt.INT,
    "BIGINT": dt.BIGINT,
    "FLOAT": dt.FLOAT,
    "DOUBLE": dt.DOUBLE,
    "DOUBLE PRECISION": dt.DOUBLE,
    "STRING": dt.STRING,
    "BYTES": dt.BYTES,
    "DATE": dt.DATE,
}

# Name -> (maximum number of parameters, constructor). The defaults are Paimon's.
_PARAMETRIC_TYPES: dict[str, tuple[int, Callable[..., DataType]]] = {
    "CHAR": (1, lambda length=1: dt.sized(Kind.CHAR, length)),
    "VARCHAR": (1, lambda length=1: dt.sized(Kind.VARCHAR, length)),
    "BINARY": (1, lambda length=1: dt.sized(Kind.BINARY, length)),
    "VARBINARY": (1, lambda length=1: dt.sized(Kind.VARBINARY, length)),
    "DECIMAL": (2, lambda precision=10, scale=0: dt.decimal(precision, scale)),
    "NUMERIC": (2, lambda precision=10, scale=0: dt.decimal(precision, scale)),
    "DEC": (2, lambda precision=10, scale=0: dt.decimal(precision, scale)),
    "TIME": (1, dt.time),
    "TIMESTAMP": (1, dt.timestamp),
    "TIMESTAMP_LTZ": (1, dt.timestamp_ltz),
}


def parse_type(json: str | Mapping[str, Any]) -> DataType:
    """Parse the JSON of a type: a SQL string, or an object for ARRAY, MAP and ROW.

    Raises UnsupportedTypeError for a malformed type, and for one that Lockgate does not support.
    """
    if isinstance(json, str):
        return _parse_atomic(json)
    name = json.get("type") if isinstance(json, Mapping) else None
    if not isinstance(name, str):
        raise UnsupportedTypeError(f"a type must be a string or an object with a type name, not {json!r}")
    try:
        nested = _parse_nested(name.split(" ")[0].split("<")[0], json)
    except KeyError as missing:
        raise UnsupportedTypeError(f"type {name} lacks {missing}") from None
    return nested.with_nullable("NOT NULL" not in name)


def _parse_nested(root: str, json: Mapping[str, Any]) -> DataType:
    if root == "ARRAY":
        return dt.array(parse_type(json["element"]))
    if root == "MAP":
        return dt.map_of(parse_type(json["key"]), parse_type(json["value"]))
    if root == "ROW":
        return dt.row(tuple(parse_field(field) for field in json["fields"]))
    raise UnsupportedTypeError(f"the type {root} is not supported")


def _parse_atomic(text: str) -> DataType:
    match = _ATOMIC.fullmatch(text)
    if match is None:
        raise UnsupportedTypeError(f"the type {text!r} cannot be parsed")
    name = " ".join(match["name"].upper().split())
    parameters = [int(value) for value in (match["first"], match["second"]) if value is not None]
    zone = " ".join((match["zone"] or "").upper().split())
    if zone == "WITH LOCAL TIME ZONE":
        name = "TIMESTAMP_LTZ" if name == "TIMESTAMP" else f"{name} {zone}"
    nullable = (match["null"] or "").upper().split() != ["NOT", "NULL"]
    if name in _TYPES and not parameters:
        return _TYPES[name].with_nullable(nullable)
    max_parameters, constructor = _PARAMETRIC_TYPES.get(name, (-1, None))
    if constructor is None or len(parameters) > max_parameters:
        raise UnsupportedTypeError(f"the type {text!r} is not supported")
    return constructor(*parameters).with_nullable(nullable)


@checked_arguments
def type_to_json(data_type: DataType) -> str | dict[str, Any]:
    """Return the JSON of a type, which `parse_type` reads."""
    suffix = "" if data_type.nullable else " NOT NULL"
    if data_type.kind is Kind.ARRAY:
        return {"type": f"ARRAY{suffix}", "element": type_to_json(data_type.element_type())}
    if data_type.kind is Kind.MAP:
        key, value = type_to_json(data_type.key_type()), type_to_json(data_type.value_type())
        return {"type": f"MAP{suffix}", "key": key, "value": value}
    if data_type.kind is Kind.ROW:
        return {"type": f"ROW{suffix}", "fields": [field_to_json(field) for field in data_type.fields]}
    if data_type.kind is Kind.OPAQUE:
        content: str | dict[str, Any] = loads(data_type.unparsed or '""')
        if isinstance(content, str):
            return content + suffix
        return {**content, "type": f"{content['type']}{suffix}"}
    return str(data_type)


@checked_arguments
def parse_field(json: Mapping[str, Any]) -> DataField:
    """Parse the JSON of a field; UnsupportedTypeError with the field's name for an unsupported type."""
    return _parse_field(json, parse_type)


def parse_column(json: Mapping[str, Any]) -> DataField:
    """Parse the JSON of a table's column; an unsupported type becomes OPAQUE.

    Raises UnsupportedTypeError if the type has no name.
    """
    return _parse_field(json, _parse_stored_type)


def _parse_stored_type(json: str | Mapping[str, Any]) -> DataType:
    try:
        return parse_type(json)
    except UnsupportedTypeError:
        name = json.get("type") if isinstance(json, Mapping) else json
        if not isinstance(name, str) or not name.strip():
            raise
    bare = _NOT_NULL.sub("", name)
    stored = bare if isinstance(json, str) else {**json, "type": bare}
    return DataType(Kind.OPAQUE, nullable=bare == name, unparsed=dumps(stored, ensure_ascii=False))


def _parse_field(json: Mapping[str, Any], parse: Callable[[Any], DataType]) -> DataField:
    try:
        name = str(json["name"])
        parsed = parse(json["type"])
        return DataField(int(json["id"]), name, parsed, json.get("description"), json.get("defaultValue"))
    except KeyError as missing:
        raise UnsupportedTypeError(f"a field lacks {missing}: {dict(json)!r}") from None
    except UnsupportedTypeError as error:
        raise UnsupportedTypeError(f"column {json.get('name')!r}: {error}") from None


@checked_arguments
def field_to_json(field: DataField) -> dict[str, Any]:
    """Return the JSON of a field, which `parse_field` reads."""
    json = {"id": field.id, "name": field.name, "type": type_to_json(field.type)}
    if field.description is not None:
        json["description"] = field.description
    return json if field.default is None else {**json, "defaultValue": field.default}
