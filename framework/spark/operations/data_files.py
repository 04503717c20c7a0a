"""Data files that the connector reads: their columns and splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.errors import UnsupportedTypeError
from lockgate.framework.options import SOURCE_SPLIT_DRIVER_MAX_SIZE
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.messages.scan_messages import FileField, SplitJson, VectorJson, VectorSpan
from lockgate.framework.store import check_known_types
from lockgate.framework.types import has_spark_type, to_spark_type, value_to_json

if TYPE_CHECKING:
    from lockgate.framework.store import ScanPlan, Split, StripeRange, Table, TableSchema
    from lockgate.framework.store.manifests.manifest import VectorLocation
    from lockgate.framework.types import DataField, DataType

# Too many small files to open one after the other, or too many rows for the driver to compare.
_MOST_FILES_ON_DRIVER, _MOST_ROWS_ON_DRIVER = 8, 500_000

_ESCAPED = str.maketrans({"%": "%25", "/": "%2F", "=": "%3D"})


def fields_of(schema: TableSchema) -> list[FileField]:
    """Return the columns of files that were written under a schema."""
    return [
        {
            "id": field.id,
            "name": field.name,
            "type": to_spark_type(field.type) if has_spark_type(field.type) else "void",
            "inside": [{"path": list(path), "id": inner.id} for path, inner in _fields_inside(field.type)],
        }
        for field in schema.fields
    ]


def _fields_inside(
    data_type: DataType, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], DataField]]:
    """Go through all columns inside a type, with their paths."""
    parts = {"element": data_type.element, "key": data_type.key, "value": data_type.value}
    for name, part in parts.items():
        if part is not None:
            yield from _fields_inside(part, (*path, name))
    for field in data_type.fields:
        yield (*path, field.name), field
        yield from _fields_inside(field.type, (*path, field.name))


def check_spark_types(schema: TableSchema, names: Iterable[str], written: Iterable[TableSchema]) -> None:
    """Raise UnsupportedTypeError for columns whose values Spark cannot hold, or that files of schemas
    `written` may hold in a type that is not known here.
    """
    names = list(names)
    check_known_types(schema, names, written)
    for field in schema.fields:
        if field.name in names and not has_spark_type(field.type):
            others = ", ".join(each.name for each in schema.fields if has_spark_type(each.type))
            raise UnsupportedTypeError(
                f"column {field.name!r} cannot be read or written by Spark, which has no type {field.type}. "
                f"Name the columns; Spark has the types of these: {others}"
            )


def split_message(
    context: OperationContext,
    table: Table,
    schema: TableSchema,
    split: Split,
    kind: int | None = None,
    stripes: Mapping[str, Sequence[StripeRange]] | None = None,
) -> SplitJson:
    """Return the message on one split of a plan.

    `kind` is that of all its rows; `stripes` are those to be read of some files, by path.
    """
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
                "ranges": _ranges((stripes or {}).get(path)),
            }
            for file, path, vector in zip(split.files, split.paths, split.vectors, strict=True)
        ],
    }


def _ranges(stripes: Sequence[StripeRange] | None) -> list[list[int]] | None:
    return None if stripes is None else [[each.start, each.length] for each in stripes]


def fits_on_driver(
    planned: ScanPlan, stripes: Mapping[str, Sequence[StripeRange]], max_size: int | None
) -> bool:
    """Tell whether so little is left to read that the driver need not leave it to a task."""
    most = SOURCE_SPLIT_DRIVER_MAX_SIZE.default if max_size is None else max_size
    files = rows = size = 0
    for split in planned.splits:
        for path, file in zip(split.paths, split.files, strict=True):
            own = stripes.get(path)
            files += 1
            rows += file.row_count if own is None else sum(each.rows for each in own)
            size += file.file_size if own is None else sum(each.length for each in own)
    return 0 < most >= size and files <= _MOST_FILES_ON_DRIVER and rows <= _MOST_ROWS_ON_DRIVER


def _vector(context: OperationContext, table: Table, vector: VectorLocation) -> VectorJson:
    span = _span(context, table, vector)
    return {
        "path": span["path"],
        "offset": span["offset"],
        "length": span["length"],
        "cardinality": span["cardinality"],
        "shows": vector.shows is not None,
        "but_not": None if vector.but_not is None else _span(context, table, vector.but_not),
    }


def _span(context: OperationContext, table: Table, vector: VectorLocation) -> VectorSpan:
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
