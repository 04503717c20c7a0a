"""Parquet and Avro files of other writers: their columns, their rows, and whether they can be adopted.

Unlike data files of tables (`store.formats`), they describe their own columns. Sources: the formats'
specifications, and Spark's `DataSourceUtils.datetimeRebaseSpec`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.errors import (
    CorruptFileError,
    InputError,
    LockgateError,
    UnsupportedError,
    UnsupportedTypeError,
)
from lockgate.framework.io import FileSystem
from lockgate.framework.orc import ColumnStatistics
from lockgate.framework.store.codec.avro import read_with_schema
from lockgate.procedures.builtin.migrate.parquet_footers import read_footer

PARQUET, AVRO = "parquet", "avro"
_BATCH_ROWS = 1 << 16
_GREGORIAN = datetime.date(1582, 10, 15)
_SPARK, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacy"
_INT32_DIGITS, _INT64_DIGITS = 9, 18
_MISREAD = (pa.ArrowException, KeyError, OSError, OverflowError, RecursionError, TypeError, ValueError)
_EXACT = (pa.types.is_signed_integer, pa.types.is_date32, pa.types.is_boolean)
_EPOCH = datetime.date(1970, 1, 1)
_GREGORIAN_DAY = (_GREGORIAN - _EPOCH).days
_FIRST_DAY, _LAST_DAY = ((day - _EPOCH).days for day in (datetime.date.min, datetime.date.max))
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_INT96 = "INT96"


class ParquetSource:
    """A Parquet file of another writer."""

    def __init__(self, file_system: FileSystem, path: str) -> None:
        self._path = path
        self._input = file_system.open_input(path)
        with _damage(path, PARQUET):
            try:
                self._footer = read_footer(self._input, path)
                self._file = self._opened("us")
            except BaseException:
                self._input.close()
                raise
            self._metadata = self._file.metadata
            self._columns = {
                self._metadata.schema.column(index).path: index for index in range(self._metadata.num_columns)
            }
            self.schema = pa.schema([self._field(field) for field in self._file.schema_arrow])

    def _opened(self, unit: str) -> Any:
        return pq.ParquetFile(self._input, coerce_int96_timestamp_unit=unit, pre_buffer=False)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._input.close()

    def _field(self, field: pa.Field) -> pa.Field:
        # INT96 holds points in time, which its type does not say.
        if self._physical(field.name) == _INT96:
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
        """Read the file batch by batch; CorruptFileError for damage.

        InputError for times of 96 bits with digits beyond microseconds.
        """
        with _damage(self._path, PARQUET):
            self._check_digits()
            for batch in self._file.iter_batches(_BATCH_ROWS):
                columns = [
                    column if column.type == field.type else column.cast(field.type)
                    for column, field in zip(batch.columns, self.schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _check_digits(self) -> None:
        """Raise InputError if times of 96 bits have digits that microseconds do not hold."""
        names = [path for path in self._columns if self._physical(path) == _INT96]
        if not names:
            return
        readings = [
            file.iter_batches(_BATCH_ROWS, columns=names, use_threads=False)
            for file in (self._file, self._opened("ns"))
        ]
        for batch, finer in zip(*readings, strict=True):
            for name, column, other in zip(batch.schema.names, batch.columns, finer.columns, strict=True):
                for micros, nanos in zip(_timestamps(column), _timestamps(other), strict=True):
                    # Both wrap around in the same way, so that their difference is right for all years.
                    if np.any(nanos != micros * np.int64(1000)):
                        raise InputError(
                            f"{self._path}: column {name!r} is {_INT96} with digits beyond microseconds, "
                            "which TIMESTAMP(6) WITH LOCAL TIME ZONE does not hold: write the file again "
                            "with timestamps of 64 bits"
                        )

    def why_rewritten(self) -> str:
        """Return why its bytes are not those of a data file of a table; empty if they are."""
        for field, stored in zip(self.schema, self._file.schema_arrow, strict=True):
            if pa.types.is_nested(field.type) or pa.types.is_timestamp(field.type):
                return f"its column {field.name!r} may be stored in another way than a table's"
            if not self._is_stored_alike(field, stored):
                return f"its column {field.name!r} is stored as {self._physical(field.name)}"
        return ""

    def _is_stored_alike(self, field: pa.Field, stored: pa.Field) -> bool:
        if field.type != stored.type:
            return False
        if not pa.types.is_decimal(field.type):
            return not pa.types.is_time(field.type)
        return self._physical(field.name) == _stored_decimal(field.type.precision)

    def statistics(self) -> Mapping[str, ColumnStatistics]:
        """Return what the footer says of whole columns: exact bounds of numbers, dates and truths alone."""
        with _damage(self._path, PARQUET):
            return {field.name: self._of_column(field) for field in self.schema}

    def _of_column(self, field: pa.Field) -> ColumnStatistics:
        found = [] if field.name not in self._columns else self._footer.chunks(field.name)
        is_counted = sum(each.value_count for each in found) == self.num_rows
        if not is_counted or any(each.null_count is None for each in found):
            return ColumnStatistics(None, None, None, self.num_rows)
        nulls = sum(each.null_count or 0 for each in found)
        filled = [each for each in found if each.value_count != each.null_count]
        bounds = [(_bound(each.minimum, field.type), _bound(each.maximum, field.type)) for each in filled]
        if not filled or any(low is None or high is None for low, high in bounds):
            return ColumnStatistics(None, None, nulls, self.num_rows - nulls)
        low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
        return ColumnStatistics(low, high, nulls, self.num_rows - nulls)

    def check_calendar(self) -> None:
        """Raise UnsupportedError if days may be counted by the Julian calendar, as Spark 2 and Hive do."""
        with _damage(self._path, PARQUET):
            metadata, writer = self._metadata.metadata or {}, str(self._metadata.created_by or "")
        is_new = _SPARK in metadata and not any(key.startswith(_LEGACY) for key in metadata)
        if is_new or "parquet-mr" not in writer:
            return
        for field in self.schema:
            if self._is_before_gregorian(field):
                raise UnsupportedError(
                    f"{self._path}: column {field.name!r} has days before {_GREGORIAN}, and its writer "
                    "may have counted them by the Julian calendar: let Spark insert the rows"
                )

    def _is_before_gregorian(self, field: pa.Field) -> bool:
        has_days = pa.types.is_date(field.type) or pa.types.is_timestamp(field.type)
        if not has_days or field.name not in self._columns or self._physical(field.name) == _INT96:
            return False
        per_day = 1 if pa.types.is_date(field.type) else _PER_DAY[field.type.unit]
        lows = [each.minimum for each in self._footer.chunks(field.name) if each.minimum is not None]
        return any(int.from_bytes(low, "little", signed=True) // per_day < _GREGORIAN_DAY for low in lows)


class AvroSource:
    """An Avro file of another writer, read whole."""

    def __init__(self, file_system: FileSystem, path: str) -> None:
        self._path = path
        schema, self._records = read_with_schema(file_system.read_bytes(path), path)
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise UnsupportedTypeError(f"{path} does not hold records")
        named: dict[str, pa.DataType] = {}
        with _damage(path, AVRO):
            fields = [pa.field(each["name"], self._type(each["type"], named)) for each in schema["fields"]]
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
            except _MISREAD as error:
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
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "time-micros": pa.time64("us"),
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
    if pa.types.is_timestamp(data_type) and data_type.tz is not None:
        return pa.timestamp(data_type.unit, "UTC")
    return data_type


def _timestamps(array: pa.Array) -> Iterator[np.ndarray]:
    """Yield the numbers of an array of timestamps, or of those inside of it; 0 for nulls."""
    if pa.types.is_timestamp(array.type):
        yield array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    elif pa.types.is_map(array.type):
        yield from (part for child in (array.keys, array.items) for part in _timestamps(child))
    elif pa.types.is_struct(array.type):
        yield from (part for child in array.flatten() for part in _timestamps(child))
    elif pa.types.is_nested(array.type):
        yield from _timestamps(array.flatten())


def _bound(stored: bytes | None, data_type: pa.DataType) -> Any:
    """Return a bound of statistics as a value: of whole numbers, days and truths, None for others."""
    if stored is None or not any(is_exact(data_type) for is_exact in _EXACT):
        return None
    if len(stored) != (1 if pa.types.is_boolean(data_type) else 4 if data_type.bit_width <= 32 else 8):
        return None
    number = int.from_bytes(stored, "little", signed=True)
    if pa.types.is_boolean(data_type):
        return bool(number)
    if not pa.types.is_date(data_type):
        return number
    return _EPOCH + datetime.timedelta(number) if _FIRST_DAY <= number <= _LAST_DAY else None


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
        if isinstance(error, LockgateError | FileNotFoundError | PermissionError):
            raise
        text = " ".join(str(error).split())
        raise CorruptFileError(f"{path} cannot be read as a {kind} file: {text}") from error
