"""Avro data files: converts their rows to columns, by the types of the schema that wrote them.

Paimon exchanges Avro's two types of timestamps: one without a zone is `timestamp-millis`, one with the local
zone `local-timestamp-millis`. A map whose keys are no strings is a list of records with the fields `key` and
`value`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from lockgate.errors import CorruptFileError
from lockgate.framework.store.codec.avro import read_container
from lockgate.framework.types import DataType, Kind, to_arrow

_BATCH_ROWS = 1 << 14
_MISFITS = (pa.ArrowInvalid, pa.ArrowTypeError, AttributeError, KeyError, TypeError, ValueError)
_Convert = Callable[[Any], Any]


class AvroDataFile:
    """An Avro file with the columns `types`; those that no row has are left out of `schema`."""

    def __init__(self, data: bytes, name: str, types: Mapping[str, DataType]) -> None:
        self._name = name
        self._rows = read_container(data, name)
        present = self._rows[0].keys() if self._rows else types.keys()
        self._types = {column: kind for column, kind in types.items() if column in present}

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return pa.schema([(name, to_arrow(kind)) for name, kind in self._types.items()])

    @property
    def num_rows(self) -> int:
        """Return how many rows the file holds."""
        return len(self._rows)

    def iter_batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read `columns` batch by batch; CorruptFileError for values that are not of their type."""
        converts = {name: _conversion(self._types[name]) for name in columns}
        schema = pa.schema([self.schema.field(name) for name in columns])
        for start in range(0, len(self._rows), _BATCH_ROWS):
            rows = self._rows[start : start + _BATCH_ROWS]
            try:
                arrays = [
                    pa.array([convert(row[field.name]) for row in rows], field.type)
                    for field, convert in zip(schema, converts.values(), strict=True)
                ]
            except _MISFITS as error:
                raise CorruptFileError(
                    f"{self._name} holds a value that is not of its column's type: {type(error).__name__}"
                ) from error
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rows = []


def _conversion(data_type: DataType) -> _Convert:
    """Return what turns a value of Avro into one that Arrow takes for `data_type`."""
    convert = _of_present(data_type)
    return lambda value: None if value is None else convert(value)


def _of_present(data_type: DataType) -> _Convert:
    if data_type.is_timestamp:
        return _with_zone if data_type.kind is Kind.TIMESTAMP_LTZ else _without_zone
    if data_type.kind is Kind.ARRAY:
        element = _conversion(data_type.element_type())
        return lambda values: [element(value) for value in values]
    if data_type.kind is Kind.MAP:
        return _map_conversion(_conversion(data_type.key_type()), _conversion(data_type.value_type()))
    if data_type.kind is Kind.ROW:
        fields = {field.name: _conversion(field.type) for field in data_type.fields}
        return lambda row: {name: convert(row[name]) for name, convert in fields.items()}
    return lambda value: value


def _map_conversion(key: _Convert, value: _Convert) -> _Convert:
    def pairs(entries: Any) -> list[tuple[Any, Any]]:
        if isinstance(entries, Mapping):
            return [(key(one), value(other)) for one, other in entries.items()]
        return [(key(entry["key"]), value(entry["value"])) for entry in entries]

    return pairs


def _without_zone(value: datetime.datetime) -> datetime.datetime:
    return value.replace(tzinfo=None)


def _with_zone(value: datetime.datetime) -> datetime.datetime:
    return value.replace(tzinfo=datetime.UTC)
