"""The source of a migration: the files of a Spark table or a folder, with columns and partitions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lockgate.errors import (
    InputError,
    NotFoundError,
    TableNotFoundError,
    UnsupportedError,
    UnsupportedTypeError,
    nearest,
)
from lockgate.framework import types
from lockgate.framework.io import FileSystem, resolve
from lockgate.framework.keys import KeyProvider
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.spark import java_class
from lockgate.framework.store.metadata.paths import unescape
from lockgate.framework.types import DataField, DataType, Kind, parse_iso_date, partition_key
from lockgate.procedures.arguments import partition_value
from lockgate.procedures.builtin.migrate.foreign_files import (
    AVRO,
    PARQUET,
    AvroSource,
    ParquetSource,
    open_plain,
)
from lockgate.procedures.procedure import ProcedureContext

CATALOG_TYPES = ("spark", "hive")
ORC = "orc"
FOLDER_TYPES = (ORC, PARQUET, AVRO)

# How Hive and Spark name the folder of a null, and how Spark marks what ORC has no type for.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_SPARK_TYPE = b"spark.sql.catalyst.type"
_SPELLED = {ORC: "ORC", PARQUET: "Parquet", AVRO: "Avro"}
_SERDES = {
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde": ORC,
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe": PARQUET,
    "org.apache.hadoop.hive.serde2.avro.AvroSerDe": AVRO,
}
_INTEGER = re.compile(r"[-+]?\d+")
_NAMELESS = re.compile(r"_col\d+")


@dataclass(frozen=True)
class SourceFile:
    """One file: its path, its size in bytes, and the values of its partition in order."""

    path: str
    size: int
    partition: tuple[Any, ...]


@dataclass(frozen=True)
class MigrationSource:
    """A table to migrate; partition columns are the last of `fields`. `table` names it in Spark's catalog.

    A folder has its partition columns alone until its files are inspected.
    """

    name: str
    location: str
    file_system: FileSystem
    fields: tuple[DataField, ...]
    partition_keys: tuple[str, ...]
    files: tuple[SourceFile, ...]
    table: str | None = None
    format: str = ORC

    @property
    def tells_zones(self) -> bool:
        """Whether the files say if a timestamp is a point in time: in ORC, the table's columns say it."""
        return self.table is None or self.format != ORC

    @property
    def data_fields(self) -> tuple[DataField, ...]:
        """The columns that the files hold."""
        return tuple(field for field in self.fields if field.name not in self.partition_keys)

    def open(self, file: SourceFile, keys: KeyProvider | None) -> EncryptedOrcFile:
        """Open an ORC file strictly: KeyMissingError if one of its keys is not held."""
        return EncryptedOrcFile(
            (self.file_system, file.path), keys=keys, strict=True, name=file.path, timestamp_unit="us"
        )

    def open_plain(self, file: SourceFile) -> ParquetSource | AvroSource:
        """Open a file of a source in another format; CorruptFileError if it is damaged."""
        return open_plain(self.format, self.file_system, file.path)


def find_source(
    context: ProcedureContext,
    source_type: str,
    name: str,
    partition_types: Mapping[str, DataType] | None = None,
) -> MigrationSource:
    """Return the source called `name`: a table of Spark's session catalog, or a folder.

    Types of a folder's partition columns follow from its names unless `partition_types` has them. Raises
    `InputError` for an unknown source type, `TableNotFoundError` or `NotFoundError` if there is no such table
    or folder, and `UnsupportedError` for a table that is stored in yet another format.
    """
    kind = source_type.lower()
    if kind not in (*CATALOG_TYPES, *FOLDER_TYPES):
        hint = nearest(kind, [*CATALOG_TYPES, *FOLDER_TYPES])
        raise InputError(f"source_type cannot be {source_type!r}{hint}")
    if is_folder(kind, name):
        return _folder(context, name, kind if kind in FOLDER_TYPES else ORC, partition_types or {})
    return _spark_table(context.require_spark(f"migrating the table {name!r} of Spark's catalog"), name)


def is_folder(source_type: str, name: str) -> bool:
    """Say whether a source is a folder, and not a table of Spark's catalog."""
    return source_type.lower() in FOLDER_TYPES or "/" in name


def is_nameless(columns: Sequence[str]) -> bool:
    """Say whether Hive wrote a file without the names of its columns: `_col0`, `_col1` and so on."""
    return bool(columns) and all(_NAMELESS.fullmatch(name) for name in columns)


def target_name(name: str) -> str:
    """Return the default name of the new table: the source's own; a folder has none."""
    if "/" in name:
        raise InputError("a folder has no name for the new table: give target_table => 'database.table'")
    return ".".join(name.split(".")[-2:])


# --- a table of Spark's session catalog ---


def _spark_table(spark: Any, name: str) -> MigrationSource:
    parts = [part.strip("`") for part in name.split(".")]
    if len(parts) == 3 and parts[0] == "spark_catalog":
        parts = parts[1:]
    if len(parts) != 2 or not all(parts):
        raise InputError(
            f"{name!r} does not name a table of Spark's session catalog: write 'database.table' or "
            "'spark_catalog.database.table'"
        )
    database, table = parts
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = java_class(spark, "org.apache.spark.sql.catalyst.TableIdentifier")
    if not catalog.databaseExists(database) or not catalog.tableExists(
        identifier.apply(table, _some(spark, database))
    ):
        raise TableNotFoundError(
            f"there is no table {name!r} in Spark's session catalog{_others(spark, parts)}"
        )
    metadata = catalog.getTableMetadata(identifier.apply(table, _some(spark, database)))
    stored_as = _format_of(name, metadata)
    partition_keys = (
        tuple(metadata.partitionColumnNames().mkString(",").split(","))
        if (metadata.partitionColumnNames().nonEmpty())
        else ()
    )
    fields = types.from_spark_json(json.loads(metadata.schema().json()))
    file_system, location = resolve(metadata.location().toString())
    quoted = f"spark_catalog.`{database}`.`{table}`"
    paths = [resolve(uri)[1] for uri in spark.table(quoted).inputFiles()]
    if location in paths:
        # Of a table that Hive's own classes read, Spark names the folder alone.
        folders = [location]
        if partition_keys:
            partitions = catalog.listPartitions(
                identifier.apply(table, _some(spark, database)), java_class(spark, "scala.Option").empty()
            )
            folders = [
                resolve(partitions.apply(index).location().toString())[1]
                for index in range(partitions.size())
            ]
        paths = [path for folder in folders for path, _ in _data_files(file_system, folder)]
    kinds = {field.name: field.type for field in fields}
    files = tuple(
        SourceFile(path, file_system.size(path), _values(path, location, partition_keys, kinds))
        for path in sorted(paths)
        if file_system.size(path)
    )
    return MigrationSource(name, location, file_system, fields, partition_keys, files, quoted, stored_as)


def _some(spark: Any, value: str) -> Any:
    return java_class(spark, "scala.Some")(value)


def _others(spark: Any, parts: Sequence[str]) -> str:
    with suppress(Exception):  # only a hint; the database may not exist
        return nearest(parts[1], [table.name for table in spark.catalog.listTables(parts[0])])
    return ""


def _format_of(name: str, metadata: Any) -> str:
    """Return how the files of a table are stored; UnsupportedError if they are not taken over."""
    provider = str(metadata.provider().get()).lower() if metadata.provider().isDefined() else ""
    serde = metadata.storage().serde()
    found = provider if provider in FOLDER_TYPES else _SERDES.get(serde.get() if serde.isDefined() else "")
    if str(metadata.tableType().name()) == "VIEW" or found is None:
        raise UnsupportedError(
            f"{name!r} is not stored as ORC, Parquet or Avro but as {provider or 'a view'}: "
            "CREATE the Lockgate table and INSERT INTO it ... SELECT"
        )
    if metadata.bucketSpec().isDefined():
        raise UnsupportedError(
            f"{name!r} is bucketed by Spark, whose buckets are not Paimon's: "
            "CREATE the Lockgate table and INSERT INTO it ... SELECT"
        )
    return found


# --- a folder ---


def _folder(
    context: ProcedureContext, name: str, kind: str, partition_types: Mapping[str, DataType]
) -> MigrationSource:
    file_system, location = resolve(name, context.catalog.file_system_options)
    if not file_system.exists(location):
        raise NotFoundError(f"there is no folder {location}")
    found = sorted(_data_files(file_system, location), key=lambda item: item[0])
    if not found:
        raise NotFoundError(f"folder {location} holds no {_SPELLED[kind]} files")
    keys = _partition_keys(location, [path for path, _ in found])
    texts = [_texts(path, location, keys) for path, _ in found]
    kinds = {
        key: partition_types.get(key) or _inferred([each[index] for each in texts])
        for index, key in enumerate(keys)
    }
    fields = types.fields_from_arrow(pa.schema([(key, types.to_arrow(kinds[key])) for key in keys]))
    files = tuple(SourceFile(path, size, _values(path, location, keys, kinds)) for path, size in found)
    return MigrationSource(location, location, file_system, fields, keys, files, format=kind)


def _data_files(file_system: FileSystem, folder: str) -> Iterator[tuple[str, int]]:
    for entry in file_system.list(folder):
        if entry.name.startswith((".", "_")):
            continue
        if not entry.is_directory and not entry.size:
            continue  # a writer without rows may leave a file without a byte
        if entry.is_directory:
            yield from _data_files(file_system, entry.path)
        else:
            yield entry.path, entry.size


def _partition_keys(location: str, paths: Sequence[str]) -> tuple[str, ...]:
    found = {tuple(name for name, _ in _pairs(path, location)) for path in paths}
    if len(found) != 1:
        shown = " and ".join(sorted("/".join(each) or "none" for each in found)[:2])
        raise InputError(f"the folders of {location} disagree about partition columns: {shown}")
    return found.pop()


def with_wall_clocks(field: pa.Field) -> pa.Field:
    """Return a field of an ORC file with timestamps for the numbers that Spark marked as such."""
    if "timestamp_ntz" in _spark_type(field) and pa.types.is_int64(field.type):
        return field.with_type(pa.timestamp("us"))
    inner = [with_wall_clocks(field.type.field(index)) for index in range(field.type.num_fields)]
    if pa.types.is_struct(field.type):
        return field.with_type(pa.struct(inner))
    if pa.types.is_map(field.type):
        key, item = field.type.key_field, field.type.item_field
        return field.with_type(pa.map_(with_wall_clocks(key), with_wall_clocks(item)))
    return field.with_type(pa.list_(inner[0])) if pa.types.is_list(field.type) else field


def _spark_type(field: pa.Field) -> str:
    mark: bytes = (field.metadata or {}).get(_SPARK_TYPE, b"")
    return mark.decode("utf-8", "replace")


def with_points_in_time(schema: pa.Schema, path: str) -> pa.Schema:
    """Return the columns of an ORC file, in which timestamps are points in time unless Spark marked them."""
    for field in schema:
        if "timestamp_ntz" in _spark_type(field) and pa.types.is_timestamp(field.type):
            schema = schema.set(schema.get_field_index(field.name), pa.field(field.name, pa.timestamp("us")))
        elif _holds_timestamp(field.type):
            if not pa.types.is_timestamp(field.type):
                raise UnsupportedTypeError(
                    f"{path}: column {field.name!r} holds timestamps inside {field.type}: "
                    "make a Spark table of the folder and migrate that"
                )
            # Spark, like Hive, takes a plain ORC timestamp for a point in time.
            kind = pa.timestamp("us", "UTC")
            schema = schema.set(schema.get_field_index(field.name), pa.field(field.name, kind))
    return schema


def _holds_timestamp(type_: pa.DataType) -> bool:
    if pa.types.is_timestamp(type_):
        return True
    return any(_holds_timestamp(type_.field(index).type) for index in range(type_.num_fields))


def _inferred(texts: Sequence[str | None]) -> DataType:
    """Return the type of a partition column: INT, BIGINT or DATE if all values fit, else STRING."""
    values = [text for text in texts if text is not None]
    if values and all(_INTEGER.fullmatch(text) and str(int(text)) == text for text in values):
        widest = max(abs(int(text)) for text in values)
        if widest < 2**31:
            return types.INT
        return types.BIGINT if widest < 2**63 else types.STRING
    try:
        for text in values:
            parse_iso_date(text)
    except ValueError:
        return types.STRING
    return types.DATE if values else types.STRING


# --- partitions in paths ---


def _pairs(path: str, location: str) -> list[tuple[str, str]]:
    folders = path.removeprefix(location.rstrip("/") + "/").split("/")[:-1]
    pairs = [folder.partition("=") for folder in folders]
    return [(unescape(name), unescape(value)) for name, equals, value in pairs if equals]


def _texts(path: str, location: str, keys: Sequence[str]) -> tuple[str | None, ...]:
    if not path.startswith(location.rstrip("/") + "/"):
        raise UnsupportedError(
            f"{path} lies outside of the table's folder {location}: partitions with a location of their own "
            "cannot be migrated; INSERT INTO a new table instead"
        )
    pairs = _pairs(path, location)
    found = {name.lower(): None if value == _NULL_FOLDER else value for name, value in pairs}
    missing = [key for key in keys if key.lower() not in found]
    if missing:
        raise UnsupportedError(f"the path {path} does not name the partition column {missing[0]!r}")
    return tuple(found[key.lower()] for key in keys)


def _values(path: str, location: str, keys: Sequence[str], kinds: Mapping[str, DataType]) -> tuple[Any, ...]:
    texts = zip(keys, _texts(path, location, keys), strict=True)
    return partition_key(None if text is None else partition_value(kinds[key], text) for key, text in texts)


def has_timestamp(data_type: DataType) -> bool:
    """Say whether a type is or holds a timestamp or a time of day, which engines store differently."""
    return any(each.is_timestamp or each.kind is Kind.TIME for each in _all_types(data_type))


def has_date(data_type: DataType) -> bool:
    """Say whether a type is or holds a date."""
    return any(each.kind is Kind.DATE for each in _all_types(data_type))


def _all_types(data_type: DataType) -> Iterator[DataType]:
    yield data_type
    inner = [data_type.element, data_type.key, data_type.value, *(each.type for each in data_type.fields)]
    for each in inner:
        if each is not None:
            yield from _all_types(each)
