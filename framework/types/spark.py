"""Conversion of types and fields to and from the JSON of Spark's StructType, without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import UnsupportedTypeError
from lockgate.framework.types import datatype as dt
from lockgate.framework.types.datatype import MAX_LENGTH, DataField, DataType, Kind

_TO_SPARK = {
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "byte",
    Kind.SMALLINT: "short",
    Kind.INT: "integer",
    Kind.BIGINT: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.BINARY: "binary",
    Kind.VARBINARY: "binary",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp_ntz",
    Kind.TIMESTAMP_LTZ: "timestamp",
}

_FROM_SPARK = {
    "boolean": dt.BOOLEAN,
    "byte": dt.TINYINT,
    "short": dt.SMALLINT,
    "integer": dt.INT,
    "long": dt.BIGINT,
    "float": dt.FLOAT,
    "double": dt.DOUBLE,
    "string": dt.STRING,
    "binary": dt.BYTES,
    "date": dt.DATE,
    "timestamp": dt.timestamp_ltz(6),
    "timestamp_ntz": dt.timestamp(6),
    "decimal": dt.decimal(10, 0),
}

_SIZED = re.compile(r"(char|varchar|decimal)\((\d+)(?:,\s*(\d+))?\)")

# Metadata key of the declared type of a column that Spark handles as a string.
_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"

# Metadata key of the SQL of a column's default in Spark.
SPARK_DEFAULT = "CURRENT_DEFAULT"

# Metadata key, for the connector, of the text of a type that Spark lacks.
SPARK_OPAQUE = "lockgate.opaque"

# Metadata key, for the connector, of the ids of nested fields, which are attributes in ORC files.
SPARK_FIELD_ID = "paimon.id"


@checked_arguments
def to_spark_type(data_type: DataType, *, field_ids: bool = False) -> str | dict[str, Any]:
    """Return the JSON of Spark's type for `data_type`; UnsupportedTypeError for TIME, which Spark lacks.

    With `field_ids`, the metadata of nested fields have their ids.
    """
    kind = data_type.kind
    if kind in _TO_SPARK:
        return _TO_SPARK[kind]
    if kind is Kind.DECIMAL:
        return f"decimal({data_type.precision},{data_type.scale})"
    if kind in (Kind.CHAR, Kind.VARCHAR):
        return "string" if data_type.length == MAX_LENGTH else f"{kind.lower()}({data_type.length})"
    inner = partial(to_spark_type, field_ids=field_ids)
    if kind is Kind.ARRAY:
        element = data_type.element_type()
        return {"type": "array", "elementType": inner(element), "containsNull": element.nullable}
    if kind is Kind.MAP:
        value = data_type.value_type()
        return {
            "type": "map",
            "keyType": inner(data_type.key_type()),
            "valueType": inner(value),
            "valueContainsNull": value.nullable,
        }
    if kind is Kind.ROW:
        return to_spark_json(data_type.fields, field_ids=field_ids)
    raise UnsupportedTypeError(f"the type {data_type} has no counterpart in Spark")


@checked_arguments
def to_spark_json(
    fields: Iterable[DataField], *, field_ids: bool = False, opaque: bool = False
) -> dict[str, Any]:
    """Return the `StructType.json` form of `fields`; descriptions become comments.

    With `field_ids`, the metadata have the fields' ids. With `opaque`, a type without a counterpart in Spark
    is `void`, and the metadata have its text.
    """
    if isinstance(fields, Iterator):
        # Items of a tuple are type-checked.
        return to_spark_json(tuple(fields), field_ids=field_ids, opaque=opaque)
    return {"type": "struct", "fields": [_spark_field(field, field_ids, opaque) for field in fields]}


def has_spark_type(data_type: DataType) -> bool:
    """Return whether Spark has a type for `data_type`, so that it can read and write its values."""
    try:
        to_spark_type(data_type)
    except UnsupportedTypeError:
        return False
    return True


def _spark_field(field: DataField, field_ids: bool, opaque: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {} if field.description is None else {"comment": field.description}
    try:
        spark_type = to_spark_type(field.type, field_ids=field_ids)
    except UnsupportedTypeError as error:
        if not opaque:
            raise UnsupportedTypeError(f"column {field.name!r}: {error}") from None
        spark_type = "void"
        metadata[SPARK_OPAQUE] = field.type.bare_name
    if field_ids:
        metadata[SPARK_FIELD_ID] = field.id
    return {"name": field.name, "type": spark_type, "nullable": field.type.nullable, "metadata": metadata}


@checked_arguments
def from_spark_json(json: Mapping[str, Any], *, next_id: list[int] | None = None) -> tuple[DataField, ...]:
    """Return the fields of the JSON of a StructType, with ids from 0, including nested members.

    Defaults are Spark's SQL. Raises UnsupportedTypeError with the column's name for a type that cannot be
    stored.
    """
    counter = [0] if next_id is None else next_id
    try:
        return tuple(_field_of(member, counter) for member in json["fields"])
    except (KeyError, TypeError, AttributeError) as error:
        if isinstance(error, UnsupportedTypeError):
            raise
        raise UnsupportedTypeError(
            "this is not the JSON of a Spark StructType, as schema.json() gives"
        ) from None


def _field_of(member: Mapping[str, Any], counter: list[int]) -> DataField:
    field_id = counter[0]
    counter[0] += 1
    metadata = member.get("metadata") or {}
    try:
        data_type = from_spark_type(metadata.get(_CHAR_VARCHAR, member["type"]), next_id=counter)
    except UnsupportedTypeError as error:
        raise UnsupportedTypeError(f"column {member['name']!r}: {error}") from None
    data_type = data_type.with_nullable(bool(member.get("nullable", True)))
    return DataField(
        field_id, member["name"], data_type, metadata.get("comment"), metadata.get(SPARK_DEFAULT)
    )


@checked_arguments
def from_spark_type(json: str | Mapping[str, Any], *, next_id: list[int] | None = None) -> DataType:
    """Return the type of Spark's JSON for a type, such as `"integer"` or `"decimal(5,2)"`."""
    counter = [0] if next_id is None else next_id
    if isinstance(json, str):
        return _from_name(json)
    kind = json.get("type")
    if kind == "array":
        element = from_spark_type(json["elementType"], next_id=counter)
        return dt.array(element.with_nullable(bool(json.get("containsNull", True))))
    if kind == "map":
        key = from_spark_type(json["keyType"], next_id=counter).with_nullable(False)
        value = from_spark_type(json["valueType"], next_id=counter)
        return dt.map_of(key, value.with_nullable(bool(json.get("valueContainsNull", True))))
    if kind == "struct":
        return dt.row(from_spark_json(json, next_id=counter))
    raise UnsupportedTypeError(f"the Spark type {kind!r} cannot be stored")


def _from_name(name: str) -> DataType:
    # SHOW CREATE TABLE writes the collation of texts inside other types, even the default one.
    name = name.removesuffix(" collate UTF8_BINARY")
    if name in _FROM_SPARK:
        return _FROM_SPARK[name]
    match = _SIZED.fullmatch(name)
    if match is None:
        raise UnsupportedTypeError(f"the Spark type {name!r} cannot be stored")
    if match[1] == "decimal":
        return dt.decimal(int(match[2]), int(match[3] or 0))
    return dt.sized(Kind(match[1].upper()), int(match[2]))
