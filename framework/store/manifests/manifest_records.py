"""Manifest entries and manifest descriptions to and from their Avro records.

Names and namespaces of the Avro schemas are those that Paimon derives (`AvroSchemaConverter`).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeVar

import fastavro

from lockgate.errors import CorruptFileError, UnsafePathError, UnsupportedFormatError
from lockgate.framework.store.codec.binary_row import decode_row, encode_row
from lockgate.framework.store.codec.simple_stats import EMPTY_STATS, SimpleStats
from lockgate.framework.store.manifests.manifest import (
    DataFileMeta,
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
)
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import BIGINT, DataType, micros_of

# The permanent mark of this layout of records, not a version of the table format.
_RECORD_VERSION = 2
_NO_VALUES = encode_row((), ())
# Setters of each field of the classes with slots.
_SETTERS: dict[type, dict[str, Callable[[Any, Any], None]]] = {
    each: {field.name: getattr(each, field.name).__set__ for field in fields(each)}
    for each in (DataFileMeta, ManifestEntry)
}
_RECORD = "org.apache.paimon.avro.generated.record"

T = TypeVar("T")
SchemaOf = Callable[[int], TableSchema]


def _optional(schema: Any) -> list[Any]:
    return ["null", schema]


def _field(name: str, schema: Any) -> dict[str, Any]:
    return {"name": name, "type": schema}


def _optional_field(name: str, schema: Any) -> dict[str, Any]:
    return {"name": name, "type": _optional(schema), "default": None}


def _strings() -> dict[str, Any]:
    return {"type": "array", "items": "string"}


def _stats_schema(name: str) -> dict[str, Any]:
    counts = {"type": "array", "items": _optional("long")}
    fields = [_field("_MIN_VALUES", "bytes"), _field("_MAX_VALUES", "bytes")]
    return {"type": "record", "name": name, "fields": [*fields, _optional_field("_NULL_COUNTS", counts)]}


_FILE_SCHEMA = {
    "type": "record",
    "name": f"{_RECORD}__FILE",
    "fields": [
        _field("_FILE_NAME", "string"),
        _field("_FILE_SIZE", "long"),
        _field("_ROW_COUNT", "long"),
        _field("_MIN_KEY", "bytes"),
        _field("_MAX_KEY", "bytes"),
        _field("_KEY_STATS", _stats_schema(f"{_RECORD}__FILE__KEY_STATS")),
        _field("_VALUE_STATS", _stats_schema(f"{_RECORD}__FILE__VALUE_STATS")),
        _field("_MIN_SEQUENCE_NUMBER", "long"),
        _field("_MAX_SEQUENCE_NUMBER", "long"),
        _field("_SCHEMA_ID", "long"),
        _field("_LEVEL", "int"),
        _field("_EXTRA_FILES", _strings()),
        _optional_field("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
        _optional_field("_DELETE_ROW_COUNT", "long"),
        _optional_field("_EMBEDDED_FILE_INDEX", "bytes"),
        _optional_field("_FILE_SOURCE", "int"),
        _optional_field("_VALUE_STATS_COLS", _strings()),
        _optional_field("_EXTERNAL_PATH", "string"),
        _optional_field("_FIRST_ROW_ID", "long"),
        _optional_field("_WRITE_COLS", _strings()),
        _optional_field("_WRITE_COLS_SEQUENCES", {"type": "array", "items": "long"}),
    ],
}

ENTRY_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": _RECORD,
        "fields": [
            _field("_VERSION", "int"),
            _field("_KIND", "int"),
            _field("_PARTITION", "bytes"),
            _field("_BUCKET", "int"),
            _field("_TOTAL_BUCKETS", "int"),
            _field("_FILE", _FILE_SCHEMA),
        ],
    }
)

MANIFEST_META_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": _RECORD,
        "fields": [
            _field("_VERSION", "int"),
            _field("_FILE_NAME", "string"),
            _field("_FILE_SIZE", "long"),
            _field("_NUM_ADDED_FILES", "long"),
            _field("_NUM_DELETED_FILES", "long"),
            _field("_PARTITION_STATS", _stats_schema(f"{_RECORD}__PARTITION_STATS")),
            _field("_SCHEMA_ID", "long"),
            _optional_field("_MIN_BUCKET", "int"),
            _optional_field("_MAX_BUCKET", "int"),
            _optional_field("_MIN_LEVEL", "int"),
            _optional_field("_MAX_LEVEL", "int"),
            _optional_field("_MIN_ROW_ID", "long"),
            _optional_field("_MAX_ROW_ID", "long"),
        ],
    }
)


# Columns that Paimon adds to files of tables with `row-tracking.enabled` when it rewrites rows.
_SYSTEM_TYPES = {"_ROW_ID": BIGINT, "_SEQUENCE_NUMBER": BIGINT}


class EntryCodec:
    """Encodes and decodes the entries of one table's manifests.

    `schema_of` gives the schema of an id, because statistics are read with the schema of their file.
    """

    def __init__(self, schema: TableSchema, schema_of: SchemaOf) -> None:
        self._partition_types = schema.types_of(schema.partition_keys)
        self._schema_id = schema.id
        self._key_types = schema.types_of(schema.trimmed_primary_keys)
        self._schema_of = schema_of
        self._types_cache: dict[tuple[int, tuple[str, ...] | None], tuple[DataType, ...]] = {}
        # A table has far fewer partitions than files.
        self._partition = lru_cache(maxsize=4096)(
            lambda data, schema_id: decode_row(data, self._partition_types_of(schema_id))
        )

    def to_record(self, entry: ManifestEntry) -> dict[str, Any]:
        """Return the Avro record of an entry."""
        file = entry.file
        value_types = self._value_types(
            file.schema_id, _stats_columns(file.value_stats_cols, file.write_cols)
        )
        key_types = self._key_types_of(file.schema_id)
        return {
            "_VERSION": _RECORD_VERSION,
            "_KIND": int(entry.kind),
            "_PARTITION": encode_row(entry.partition, self._partition_types_of(file.schema_id)),
            "_BUCKET": entry.bucket,
            "_TOTAL_BUCKETS": entry.total_buckets,
            "_FILE": {
                "_FILE_NAME": file.file_name,
                "_FILE_SIZE": file.file_size,
                "_ROW_COUNT": file.row_count,
                "_MIN_KEY": encode_row(file.min_key, key_types if file.min_key else ()),
                "_MAX_KEY": encode_row(file.max_key, key_types if file.max_key else ()),
                "_KEY_STATS": stats_to_record(file.key_stats, key_types),
                "_VALUE_STATS": stats_to_record(file.value_stats, value_types),
                "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
                "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
                "_SCHEMA_ID": file.schema_id,
                "_LEVEL": file.level,
                "_EXTRA_FILES": list(file.extra_files),
                "_CREATION_TIME": file.creation_time_millis,
                "_DELETE_ROW_COUNT": file.delete_row_count,
                "_EMBEDDED_FILE_INDEX": file.embedded_index,
                "_FILE_SOURCE": None if file.file_source is None else int(file.file_source),
                "_VALUE_STATS_COLS": _list_or_none(file.value_stats_cols),
                "_EXTERNAL_PATH": file.external_path,
                "_FIRST_ROW_ID": file.first_row_id,
                "_WRITE_COLS": _list_or_none(file.write_cols),
                "_WRITE_COLS_SEQUENCES": _list_or_none(file.write_cols_sequences),
            },
        }

    def from_record(self, record: Mapping[str, Any], path: str) -> ManifestEntry:
        """Return the entry of an Avro record; raises as `checked`."""
        _check_version(record, path)
        return checked(lambda: self._from_record(record), path)

    def _from_record(self, record: Mapping[str, Any]) -> ManifestEntry:
        file = record["_FILE"]
        value_columns = _tuple_or_none(file.get("_VALUE_STATS_COLS"))
        write_columns = _tuple_or_none(file.get("_WRITE_COLS"))
        value_types = self._value_types(file["_SCHEMA_ID"], _stats_columns(value_columns, write_columns))
        key_types = self._key_types_of(file["_SCHEMA_ID"])
        meta = _filled(
            DataFileMeta,
            file_name=file["_FILE_NAME"],
            file_size=file["_FILE_SIZE"],
            row_count=file["_ROW_COUNT"],
            min_key=decode_row(file["_MIN_KEY"], key_types),
            max_key=decode_row(file["_MAX_KEY"], key_types),
            key_stats=stats_from_record(file["_KEY_STATS"], key_types),
            value_stats=stats_from_record(file["_VALUE_STATS"], value_types),
            min_sequence_number=file["_MIN_SEQUENCE_NUMBER"],
            max_sequence_number=file["_MAX_SEQUENCE_NUMBER"],
            schema_id=file["_SCHEMA_ID"],
            level=file["_LEVEL"],
            extra_files=tuple(file["_EXTRA_FILES"]),
            creation_time_millis=_millis(file.get("_CREATION_TIME")),
            delete_row_count=file.get("_DELETE_ROW_COUNT"),
            embedded_index=file.get("_EMBEDDED_FILE_INDEX"),
            file_source=file.get("_FILE_SOURCE"),
            value_stats_cols=value_columns,
            external_path=file.get("_EXTERNAL_PATH"),
            first_row_id=file.get("_FIRST_ROW_ID"),
            write_cols=write_columns,
            write_cols_sequences=_tuple_or_none(file.get("_WRITE_COLS_SEQUENCES")),
        )
        kind = FileKind.DELETE if record["_KIND"] else FileKind.ADD
        partition = self._partition(record["_PARTITION"], file["_SCHEMA_ID"])
        return _filled(
            ManifestEntry,
            kind=kind,
            partition=partition,
            bucket=record["_BUCKET"],
            total_buckets=record["_TOTAL_BUCKETS"],
            file=meta,
            vector=None,
        )

    def _value_types(self, schema_id: int, columns: tuple[str, ...] | None) -> tuple[DataType, ...]:
        key = (schema_id, columns)
        if key not in self._types_cache:
            schema = self._schema_of(schema_id)
            names = schema.field_names if columns is None else columns
            self._types_cache[key] = tuple(
                _SYSTEM_TYPES[name] if name in _SYSTEM_TYPES else schema.field(name).type for name in names
            )
        return self._types_cache[key]

    def _key_types_of(self, schema_id: int) -> tuple[DataType, ...]:
        """Return the key of the files of a schema, which may be another one where a table was replaced."""
        if schema_id == self._schema_id:
            return self._key_types
        schema = self._schema_of(schema_id)
        return schema.types_of(schema.trimmed_primary_keys)

    def _partition_types_of(self, schema_id: int) -> tuple[DataType, ...]:
        """Return the partition columns under a schema; they too may be others where a table was replaced."""
        if schema_id == self._schema_id:
            return self._partition_types
        schema = self._schema_of(schema_id)
        return schema.types_of(schema.partition_keys)

    def meta_to_record(self, meta: ManifestFileMeta) -> dict[str, Any]:
        """Return the Avro record of a manifest's description."""
        return {
            "_VERSION": _RECORD_VERSION,
            "_FILE_NAME": meta.file_name,
            "_FILE_SIZE": meta.file_size,
            "_NUM_ADDED_FILES": meta.num_added_files,
            "_NUM_DELETED_FILES": meta.num_deleted_files,
            "_PARTITION_STATS": stats_to_record(
                meta.partition_stats, self._partition_types_of(meta.schema_id)
            ),
            "_SCHEMA_ID": meta.schema_id,
            "_MIN_BUCKET": meta.min_bucket,
            "_MAX_BUCKET": meta.max_bucket,
            "_MIN_LEVEL": meta.min_level,
            "_MAX_LEVEL": meta.max_level,
            "_MIN_ROW_ID": meta.min_row_id,
            "_MAX_ROW_ID": meta.max_row_id,
        }

    def meta_from_record(self, record: Mapping[str, Any], path: str) -> ManifestFileMeta:
        """Return the description in an Avro record; raises as `checked`."""
        _check_version(record, path)
        return checked(lambda: self._meta_from_record(record), path)

    def _meta_from_record(self, record: Mapping[str, Any]) -> ManifestFileMeta:
        return ManifestFileMeta(
            file_name=record["_FILE_NAME"],
            file_size=record["_FILE_SIZE"],
            num_added_files=record["_NUM_ADDED_FILES"],
            num_deleted_files=record["_NUM_DELETED_FILES"],
            partition_stats=stats_from_record(
                record["_PARTITION_STATS"], self._partition_types_of(record["_SCHEMA_ID"])
            ),
            schema_id=record["_SCHEMA_ID"],
            min_bucket=record.get("_MIN_BUCKET"),
            max_bucket=record.get("_MAX_BUCKET"),
            min_level=record.get("_MIN_LEVEL"),
            max_level=record.get("_MAX_LEVEL"),
            min_row_id=record.get("_MIN_ROW_ID"),
            max_row_id=record.get("_MAX_ROW_ID"),
        )


def _filled(cls: type[T], **values: Any) -> T:
    """Make a frozen dataclass of all its fields; its own constructor sets them one call at a time."""
    made = object.__new__(cls)
    setters = _SETTERS[cls]
    for name, value in values.items():
        setters[name](made, value)
    return made


def stats_to_record(stats: SimpleStats, types: tuple[DataType, ...]) -> dict[str, Any]:
    """Return the Avro record of statistics; those of no column have rows without fields."""
    minimum, maximum = stats.to_binary(types if stats.null_counts else ())
    return {"_MIN_VALUES": minimum, "_MAX_VALUES": maximum, "_NULL_COUNTS": list(stats.null_counts)}


def stats_from_record(record: Mapping[str, Any], types: tuple[DataType, ...]) -> SimpleStats:
    """Return the statistics in an Avro record of columns of `types`."""
    counts = tuple(record.get("_NULL_COUNTS") or ())
    if not counts and record["_MIN_VALUES"] == record["_MAX_VALUES"] == _NO_VALUES:
        return EMPTY_STATS
    return SimpleStats.encoded(record["_MIN_VALUES"], record["_MAX_VALUES"], counts, types)


def checked(parse: Callable[[], T], path: str) -> T:
    """Return what `parse` makes of a record; errors for a malformed one name `path`."""
    try:
        return parse()
    except (CorruptFileError, UnsafePathError) as error:
        raise type(error)(f"{path}: {error}") from None
    except KeyError as missing:
        raise CorruptFileError(f"{path}: a record lacks {missing}") from None


def _check_version(record: Mapping[str, Any], path: str) -> None:
    version = record.get("_VERSION")
    if version != _RECORD_VERSION:
        raise UnsupportedFormatError(f"{path}: records of version {version}, expected {_RECORD_VERSION}")


def _stats_columns(
    value_columns: tuple[str, ...] | None, write_columns: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Return which columns value statistics cover; None: all columns of the schema."""
    return write_columns if value_columns is None else value_columns


def _list_or_none(values: tuple[Any, ...] | None) -> list[Any] | None:
    return None if values is None else list(values)


def _tuple_or_none(values: list[Any] | None) -> tuple[Any, ...] | None:
    # The files of a table name the same few columns: one tuple serves them all.
    return None if values is None else _shared(tuple(values))


@lru_cache(maxsize=1024)
def _shared(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return values


def _millis(value: datetime.datetime | int | None) -> int | None:
    return micros_of(value) // 1000 if isinstance(value, datetime.datetime) else value
