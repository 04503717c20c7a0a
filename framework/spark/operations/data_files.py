"""Data files that the connector reads: their columns and splits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockgate.framework.spark.operations.context import Context
from lockgate.framework.spark.operations.messages.scans import FileField, SplitJson, VectorJson, VectorSpan
from lockgate.framework.store.schema.nested_fields import fields_inside
from lockgate.framework.types import to_spark_type, value_to_json

if TYPE_CHECKING:
    from lockgate.framework.store.manifests.manifest import VectorLocation
    from lockgate.framework.store.pruning.split import Split
    from lockgate.framework.store.schema.schema import TableSchema
    from lockgate.framework.store.table import Table

_ESCAPED = str.maketrans({"%": "%25", "/": "%2F", "=": "%3D"})


def fields_of(schema: TableSchema) -> list[FileField]:
    """Return the columns of files that were written under a schema."""
    return [
        {
            "id": field.id,
            "name": field.name,
            "type": to_spark_type(field.type),
            "inside": [{"path": list(path), "id": inner.id} for path, inner in fields_inside(field.type)],
        }
        for field in schema.fields
    ]


def split_message(
    context: Context, table: Table, schema: TableSchema, split: Split, kind: int | None = None
) -> SplitJson:
    """Return the message on one split of a plan; `kind` is that of all its rows."""
    types = {name: schema.field(name).type for name in schema.partition_keys}
    return {
        "partition": {name: value_to_json(types[name], value) for name, value in split.partition.items()},
        "partition_text": _partition_text(split.partition),
        "bucket": split.bucket,
        "merge": split.merge,
        "kind": kind,
        "commit": None,
        "files": [
            {
                "path": context.hadoop_path(table, path),
                "size": file.file_size,
                "rows": file.row_count,
                "schema_id": file.schema_id,
                "first_row_id": file.first_row_id,
                "sequence": file.max_sequence_number,
                "vector": None if vector is None else _vector(context, table, vector),
            }
            for file, path, vector in zip(split.files, split.paths, split.vectors, strict=True)
        ],
    }


def _vector(context: Context, table: Table, vector: VectorLocation) -> VectorJson:
    span = _span(context, table, vector)
    return {
        "path": span["path"],
        "offset": span["offset"],
        "length": span["length"],
        "cardinality": span["cardinality"],
        "shows": vector.shows is not None,
        "but_not": None if vector.but_not is None else _span(context, table, vector.but_not),
    }


def _span(context: Context, table: Table, vector: VectorLocation) -> VectorSpan:
    return {
        "path": context.hadoop_path(table, vector.path),
        "offset": vector.offset,
        "length": vector.length,
        "cardinality": vector.cardinality,
    }


def _partition_text(partition: Mapping[str, Any]) -> str:
    """Spell a partition as `day=2024-02-29/hour=3`; in names and texts `%`, `/` and `=` are escaped."""
    return "/".join(f"{name.translate(_ESCAPED)}={_value_text(value)}" for name, value in partition.items())


def _value_text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return value.hex() if isinstance(value, bytes) else str(value).translate(_ESCAPED)
