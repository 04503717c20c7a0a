"""File indexes that a table's options require: their columns, kinds and parameters.

Source: Paimon's `FileIndexOptions`: `file-index.<kind>.columns` names columns, and keys of maps as
`column[key]`; `file-index.<kind>.<column>.<parameter>` says more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockgate.errors import ColumnNotFoundError, OptionError, nearest
from lockgate.framework.options import parse_names, parse_some_size, parse_whole
from lockgate.framework.store.confidential.confidential_columns import confidential_in
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataType, Kind
from lockgate.pushdown.index import INDEX_KINDS, ValueKind

_PREFIX = "file-index."
_COLUMNS = re.compile(r"file-index\.([^.]+)\.columns")
_PARAMETER = re.compile(r"file-index\.([^.]+)\.([^.]+)\.([^.]+)")
_OF_MAP = re.compile(r"(.+)\[(.*)\]")

_KINDS = {
    Kind.BOOLEAN: ValueKind.BOOLEAN,
    Kind.TINYINT: ValueKind.TINYINT,
    Kind.SMALLINT: ValueKind.SMALLINT,
    Kind.INT: ValueKind.INT,
    Kind.BIGINT: ValueKind.BIGINT,
    Kind.FLOAT: ValueKind.FLOAT,
    Kind.DOUBLE: ValueKind.DOUBLE,
    # Of CHAR, writers do not agree whether its padding is indexed.
    Kind.VARCHAR: ValueKind.TEXT,
    Kind.BINARY: ValueKind.BYTES,
    Kind.VARBINARY: ValueKind.BYTES,
    Kind.DATE: ValueKind.INT,
    Kind.TIME: ValueKind.INT,
}
_LONGEST_DECIMAL, _MILLIS, _MICROS = 18, 3, 6


def value_kind_of(data_type: DataType) -> ValueKind | None:
    """Return how values of a type are indexed; None if they are not."""
    precision = data_type.precision or 0
    if data_type.kind is Kind.DECIMAL:
        return ValueKind.DECIMAL if precision <= _LONGEST_DECIMAL else None
    if data_type.is_timestamp:
        return (
            ValueKind.MILLIS if precision <= _MILLIS else ValueKind.MICROS if precision <= _MICROS else None
        )
    return _KINDS.get(data_type.kind)


@dataclass(frozen=True)
class WantedIndex:
    """An index that is asked for: its name in a file, the column, the key if that is a map, and its kind."""

    name: str
    column: str
    key: str | None
    kind: str
    parameters: Mapping[str, Any] = field(hash=False)

    def values_of(self, schema: TableSchema) -> DataType:
        """Return the type of the indexed values; OptionError if the column has none that can be."""
        found = schema.field(self.column).type
        if self.key is None:
            return found
        if found.kind is not Kind.MAP or not found.key_type().is_string:
            raise OptionError(
                f"{self.name!r} cannot be indexed: {self.column!r} is not a MAP with texts as keys"
            )
        return found.value_type()

    def is_possible(self, schema: TableSchema) -> bool:
        """Say whether files of a schema can have the index.

        Options of tables that other engines made are not checked as those of ours are.
        """
        if self.column not in schema.field_names or self.column in confidential_in(schema).top_level(schema):
            return False
        try:
            return value_kind_of(self.values_of(schema)) in INDEX_KINDS[self.kind].values
        except OptionError:
            return False


def wanted_indexes(options: Mapping[str, str]) -> list[WantedIndex]:
    """Return the indexes that options ask for; OptionError for what cannot be meant.

    Kinds that only others write are left out: see `check_file_indexes`.
    """
    given = dict(_parameters(options))
    return [
        _wanted(name, kind, {**given.get((kind, _split(name)[0]), {}), **given.get((kind, name), {})})
        for kind, name in _named(options)
        if kind in INDEX_KINDS
    ]


def _named(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in sorted(options.items()):
        match = _COLUMNS.fullmatch(key)
        for name in parse_names(value) if match else ():
            yield str(match[1] if match else ""), name


def _parameters(options: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], dict[str, str]]]:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for key, value in options.items():
        match = _PARAMETER.fullmatch(key)
        if match:
            found.setdefault((match[1], match[2]), {})[match[3]] = value
    yield from found.items()


def _split(name: str) -> tuple[str, str | None]:
    match = _OF_MAP.fullmatch(name)
    return (match[1], match[2]) if match else (name, None)


def _wanted(name: str, kind: str, given: Mapping[str, str]) -> WantedIndex:
    column, key = _split(name)
    parameters = INDEX_KINDS[kind].parameters
    parsed = {}
    for parameter, text in given.items():
        option = f"{_PREFIX}{kind}.{name}.{parameter}"
        if parameter not in parameters:
            raise OptionError(f"option {option!r} is not known{nearest(parameter, list(parameters))}")
        try:
            parsed[parameter] = _PARSERS[parameter](text)
        except ValueError as error:
            raise OptionError(f"option {option!r} cannot be {text!r}: {error}") from None
    return WantedIndex(name, column, key, kind, parsed)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise ValueError("expected a number between 0 and 1")
    return share


def _items(text: str) -> int:
    items = parse_whole(text)
    if not 1 <= items <= 10**9:
        raise ValueError("expected 1 to 1000000000")
    return items


def _version(text: str) -> int:
    version = parse_whole(text)
    if version not in (1, 2):
        raise ValueError("expected 1 or 2")
    return version


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "items": _items,
    "fpp": _share,
    "version": _version,
    "index-block-size": parse_some_size,
    "chunk-size": parse_some_size,
}


def check_file_indexes(schema: TableSchema) -> None:
    """Check `file-index.*` against the columns of a table that is created or altered.

    Raises OptionError for kinds, parameters and types that are not known or cannot be indexed, and for
    columns that are encrypted; ColumnNotFoundError for others that are not there.
    """
    options = schema.options
    named = list(_named(options))
    for kind, name in named:
        if kind not in INDEX_KINDS:
            raise OptionError(
                f"option '{_PREFIX}{kind}.columns': there is no such kind{nearest(kind, list(INDEX_KINDS))}"
            )
        column = _split(name)[0]
        if column not in schema.field_names:
            raise ColumnNotFoundError(
                f"option '{_PREFIX}{kind}.columns': there is no column {column!r}"
                f"{nearest(column, schema.field_names)}"
            )
    for (kind, name), _ in _parameters(options):
        if not any(kind == each and name in (full, _split(full)[0]) for each, full in named):
            raise OptionError(f"options '{_PREFIX}{kind}.{name}.*': '{_PREFIX}{kind}.columns' lacks {name!r}")
    for wanted in wanted_indexes(options):
        _check_type(schema, wanted)
    _check_encryption(schema)


def _check_type(schema: TableSchema, wanted: WantedIndex) -> None:
    values = wanted.values_of(schema)
    kind = value_kind_of(values)
    if kind is None or kind not in INDEX_KINDS[wanted.kind].values:
        raise OptionError(
            f"option '{_PREFIX}{wanted.kind}.columns': {wanted.name!r} is {values.bare_name}, which such an "
            "index cannot hold"
        )
    if wanted.column in schema.partition_keys:
        raise OptionError(
            f"option '{_PREFIX}{wanted.kind}.columns': {wanted.column!r} is a partition column, which has "
            "one value in each file"
        )


def _check_encryption(schema: TableSchema) -> None:
    secret = confidential_in(schema).top_level(schema)
    for kind, name in _named(schema.options):
        if _split(name)[0] in secret:
            raise OptionError(
                f"option '{_PREFIX}{kind}.columns': {name!r} is encrypted, and without the key an index "
                "would show its values, or let anyone guess them: remove the column from one of the two "
                "options"
            )
