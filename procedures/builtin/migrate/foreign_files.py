"""Parquet and Avro files of other writers: their columns, their rows, and whether they can be adopted.

Unlike data files of tables (`store.formats`), they describe their own columns. Sources: the formats'
specifications, and Spark's `DataSourceUtils.datetimeRebaseSpec`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.errors import CorruptFileError, UnsupportedError, UnsupportedTypeError
from lockgate.framework.io import FileSystem
from lockgate.framework.orc import ColumnStatistics
from lockgate.framework.store.codec.avro import read_with_schema

PARQUET, AVRO = "parquet", "avro"
_BATCH_ROWS = 1 << 16
_GREGORIAN = datetime.date(1582, 10, 15)
_SPARK, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacy"
_INT32_DIGITS, _INT64_DIGITS = 9, 18
_MISREAD = (pa.ArrowException, KeyError, OSError, OverflowError, ValueError)
_EXACT = (pa.types.is_integer, pa.types.is_date, pa.types.is_boolean)


class ParquetSource:
    """A Parquet file of another writer."""

    def __init__(self, file_system: FileSystem, path: str) -> None:
        self._path = path
        self._input = file_system.open_input(path)
        with _damage(path, PARQUET):
            try:
                self._file: Any = pq.ParquetFile(
                    self._input, coerce_int96_timestamp_unit="us", pre_buffer=False
                )
            except BaseException:
                self._input.close()
                raise
        self._metadata = self._file.metadata
        self._columns = {
            self._metadata.schema.column(index).path: index for index in range(self._metadata.num_columns)
        }
        self.schema = pa.schema([self._field(field) for field in self._file.schema_arrow])

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._input.close()

    def _field(self, field: pa.Field) -> pa.Field:
        # INT96 holds points in time, which its type does not say.
        if self._physical(field.name) == "INT96":
            return pa.field(field.name, pa.timestamp("us", "UTC"))
        return pa.field(field.name, _plain_type(field.type))

    def _physical(self, name: str) -> str:
        index = self._columns.get(name)
        return "" if index is None else str(self._metadata.schema.column(index).physical_type)

    @property
    def num_rows(self) -> int:
        """Return how many rows the file holds."""
        return int(self._metadata.num_rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the file batch by batch; CorruptFileError for damage."""
        with _damage(self._path, PARQUET):
            for batch in self._file.iter_batches(_BATCH_ROWS):
                columns = [
                    _cast(column, field.type)
                    for column, field in zip(batch.columns, self.schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def why_rewritten(self) -> str:
        """Return why its bytes are not those of a data file of a table; empty if they are."""
        for field in self.schema:
            if pa.types.is_nested(field.type) or pa.types.is_timestamp(field.type):
                return f"its column {field.name!r} may be stored in another way than a table's"
            if not self._is_stored_alike(field):
                return f"its column {field.name!r} is stored as {self._physical(field.name)}"
        return ""

    def _is_stored_alike(self, field: pa.Field) -> bool:
        if field.type != self._file.schema_arrow.field(field.name).type:
            return False
        if not pa.types.is_decimal(field.type):
            return not pa.types.is_time(field.type)
        return self._physical(field.name) == _stored_decimal(field.type.precision)

    def statistics(self) -> Mapping[str, ColumnStatistics]:
        """Return what the footer says of whole columns: exact bounds of numbers, dates and truths alone."""
        with _damage(self._path, PARQUET):
            return {field.name: self._of_column(field) for field in self.schema}

    def _of_column(self, field: pa.Field) -> ColumnStatistics:
        index = self._columns.get(field.name)
        groups = [] if index is None else range(self._metadata.num_row_groups)
        found = [self._metadata.row_group(group).column(index).statistics for group in groups]
        if not found or any(each is None or each.null_count is None for each in found):
            return ColumnStatistics(None, None, None, self.num_rows)
        nulls = sum(each.null_count for each in found)
        filled = [each for each in found if each.num_values]
        if not any(is_exact(field.type) for is_exact in _EXACT) or not all(
            each.has_min_max for each in filled
        ):
            return ColumnStatistics(None, None, nulls, self.num_rows - nulls)
        low = min((each.min for each in filled), default=None)
        high = max((each.max for each in filled), default=None)
        return ColumnStatistics(low, high, nulls, self.num_rows - nulls)

    def check_calendar(self) -> None:
        """Raise UnsupportedError if days may be counted by the Julian calendar, as Spark 2 and Hive do."""
        metadata = self._metadata.metadata or {}
        is_new = _SPARK in metadata and not any(key.startswith(_LEGACY) for key in metadata)
        if is_new or "parquet-mr" not in str(self._metadata.created_by or ""):
            return
        for field in self.schema:
            if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type):
                with _damage(self._path, PARQUET):
                    low = self._lowest_day(field)
                if low is not None and low < _GREGORIAN:
                    raise UnsupportedError(
                        f"{self._path}: column {field.name!r} has days before {_GREGORIAN}, and its writer "
                        "may have counted them by the Julian calendar: let Spark insert the rows"
                    )

    def _lowest_day(self, field: pa.Field) -> datetime.date | None:
        index = self._columns.get(field.name)
        groups = [] if index is None else range(self._metadata.num_row_groups)
        found = [self._metadata.row_group(group).column(index).statistics for group in groups]
        lows = [each.min for each in found if each is not None and each.has_min_max]
        days = [low.date() if isinstance(low, datetime.datetime) else low for low in lows]
        return min((day for day in days if isinstance(day, datetime.date)), default=None)


class AvroSource:
    """An Avro file of another writer, read whole."""

    def __init__(self, file_system: FileSystem, path: str) -> None:
        self._path = path
        schema, self._records = read_with_schema(file_system.read_bytes(path), path)
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise UnsupportedTypeError(f"{path} does not hold records")
        named: dict[str, pa.DataType] = {}
        fields = [pa.field(field["name"], self._type(field["type"], named)) for field in schema["fields"]]
        self.schema = pa.schema(fields)

    def close(self) -> None:
        """Let go of the rows."""
        self._records = []

    @property
    def num_rows(self) -> int:
        """Return how many rows the file holds."""
        return len(self._records)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows batch by batch; CorruptFileError for values that are not of their type."""
        for start in range(0, len(self._records), _BATCH_ROWS):
            try:
                yield pa.RecordBatch.from_pylist(
                    [_plain_row(record) for record in self._records[start : start + _BATCH_ROWS]], self.schema
                )
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise CorruptFileError(
                    f"{self._path} holds a value that is not of its type: {error}"
                ) from error

    def why_rewritten(self) -> str:
        """Say that a table's data files name their columns' types otherwise."""
        return "it is an Avro file of another writer"

    def statistics(self) -> Mapping[str, ColumnStatistics]:
        """Return nothing: the format keeps none."""
        return {}

    def check_calendar(self) -> None:
        """Do nothing: Avro counts days by the Gregorian calendar."""

    def _type(self, schema: Any, named: dict[str, pa.DataType]) -> pa.DataType:
        if isinstance(schema, list):
            kinds = [each for each in schema if each != "null"]
            if len(kinds) != 1:
                raise UnsupportedTypeError(
                    f"{self._path}: a union of {len(kinds)} types has no type in a table"
                )
            return self._type(kinds[0], named)
        if isinstance(schema, str):
            if schema in named:
                return named[schema]
            if schema not in _PRIMITIVES:
                raise UnsupportedTypeError(f"{self._path}: Avro type {schema!r} has no type in a table")
            return _PRIMITIVES[schema]
        made = self._complex(schema, named)
        if "name" in schema:
            named[schema["name"]] = made
        return made

    def _complex(self, schema: Mapping[str, Any], named: dict[str, pa.DataType]) -> pa.DataType:
        logical, kind = schema.get("logicalType"), schema["type"]
        if logical == "decimal":
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if kind == "array":
            return pa.list_(self._type(schema["items"], named))
        if kind == "map":
            return pa.map_(pa.string(), self._type(schema["values"], named))
        if kind == "record":
            fields = [pa.field(each["name"], self._type(each["type"], named)) for each in schema["fields"]]
            return pa.struct(fields)
        return self._type(kind, named)


_PRIMITIVES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}


def open_plain(kind: str, file_system: FileSystem, path: str) -> ParquetSource | AvroSource:
    """Open a file; CorruptFileError if it is damaged, UnsupportedTypeError for types that no table has."""
    return ParquetSource(file_system, path) if kind == PARQUET else AvroSource(file_system, path)


def _stored_decimal(digits: int) -> str:
    """Return how a table's files store a DECIMAL of so many digits, as Paimon does."""
    if digits <= _INT64_DIGITS:
        return "INT32" if digits <= _INT32_DIGITS else "INT64"
    return "FIXED_LEN_BYTE_ARRAY"


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type without what Arrow's writers add to it: dictionaries, and large offsets."""
    if pa.types.is_dictionary(data_type):
        return _plain_type(data_type.value_type)
    if pa.types.is_large_string(data_type):
        return pa.string()
    if pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type):
        return pa.binary()
    if pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return pa.list_(_plain_type(data_type.value_type))
    if pa.types.is_timestamp(data_type) and data_type.unit == "ns":
        return pa.timestamp("us", data_type.tz)
    if pa.types.is_timestamp(data_type) and data_type.tz is not None:
        return pa.timestamp(data_type.unit, "UTC")
    return data_type


def _cast(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return column.cast(data_type, safe=False)
    return column if column.type == data_type else column.cast(data_type)


def _plain_row(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in record.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _plain_row(value)
    if isinstance(value, list):
        return [_plain_value(each) for each in value]
    return str(value) if type(value).__name__ == "UUID" else value


@contextmanager
def _damage(path: str, kind: str) -> Iterator[None]:
    try:
        yield
    except _MISREAD as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        text = " ".join(str(error).split())
        raise CorruptFileError(f"{path} cannot be read as a {kind} file: {text}") from error
