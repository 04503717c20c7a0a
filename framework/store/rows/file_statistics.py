"""Statistics of the columns of a file being written, as manifests keep them.

Source: Paimon's `SimpleColStatsCollector` and its implementations for `metadata.stats-mode`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, OptionError
from lockgate.framework import options as table_options
from lockgate.framework.orc import parse_encrypt
from lockgate.framework.store.codec.simple_stats import SimpleStats
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataType, Kind

_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True)
class StatsMode:
    """Statistics kept of a column: nothing, null counts, or bounds of at most `length` characters or bytes
    (None: whole).
    """

    counts: bool
    bounds: bool
    length: int | None = None

    @classmethod
    def parse(cls, text: str) -> StatsMode:
        """Read `none`, `counts`, `full` or `truncate(n)`; OptionError otherwise."""
        mode = text.strip().lower()
        match = _TRUNCATE.fullmatch(mode)
        if match and int(match[1]) > 0:
            return cls(True, True, int(match[1]))
        if mode not in ("none", "counts", "full"):
            raise OptionError(f"a statistics mode is none, counts, full or truncate(n), not {text!r}")
        return cls(mode != "none", mode == "full")


def stats_modes(schema: TableSchema) -> dict[str, StatsMode]:
    """Return the columns of which statistics are kept, with their modes, in the order of the schema.

    Encrypted columns have none, since metadata is not encrypted; nested ones have none either.
    """
    options = schema.options
    common = schema.table_options.get_option(table_options.METADATA_STATS_MODE)
    hidden = parse_encrypt(schema.table_options.get_option(table_options.ORC_ENCRYPT), schema.field_names)
    modes = {}
    for field in schema.fields:
        mode = StatsMode.parse(options.get(f"fields.{field.name}.stats-mode", common))
        if mode.counts and not field.type.is_nested and field.name not in hidden:
            modes[field.name] = mode
    return modes


class ColumnCollector:
    """Collects smallest and largest value and the number of nulls of one column."""

    def __init__(self, data_type: DataType, mode: StatsMode) -> None:
        # Nanoseconds have no Python value to keep.
        self._bounded = mode.bounds and not (data_type.is_timestamp and (data_type.precision or 0) > 6)
        self._length = mode.length if data_type.is_string or data_type.is_binary else None
        self._floating = data_type.kind in (Kind.FLOAT, Kind.DOUBLE)
        self._low: Any = None
        self._high: Any = None
        self._nan = False
        self._nulls = 0

    def add(self, column: pa.ChunkedArray) -> None:
        """Take in the values of a column."""
        self._nulls += column.null_count
        if not self._bounded or column.null_count == len(column):
            return
        if self._floating:
            self._nan = self._nan or bool(pc.any(pc.is_nan(column)).as_py())
            column = column.filter(pc.invert(pc.is_nan(column)))
        bounds = pc.min_max(column)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None:
            self._low = low if self._low is None else min(self._low, low)
            self._high = high if self._high is None else max(self._high, high)

    def result(self) -> tuple[Any, Any, int]:
        """Return min, max and null count; None for a bound that is not known."""
        low, high = self._low, self._high
        if self._floating:
            low, high = self._float_bounds()
        if self._length is not None and low is not None:
            low, high = low[: self._length], truncate_max(high, self._length)
            if high is None:
                low = None
        return low, high, self._nulls

    def _float_bounds(self) -> tuple[Any, Any]:
        # As Java orders them: NaN is the greatest, and -0.0 is below 0.0 although a query takes them as
        # equal.
        low = -0.0 if self._low == 0 else self._low
        high = 0.0 if self._high == 0 else self._high
        if not self._nan:
            return low, high
        return (math.nan if low is None else low), math.nan


def truncate_max(value: Any, length: int) -> Any:
    r"""Return a value of at most `length` characters or bytes that is not below `value`; None if there is
    none.

    >>> truncate_max("abcd", 2), truncate_max("ab", 2), truncate_max(bytes([1, 255, 7]), 2)
    ('ac', 'ab', b'\x02')
    """
    if len(value) <= length:
        return value
    kept = value[:length]
    for index in range(length - 1, -1, -1):
        if isinstance(kept, bytes):
            if kept[index] < 0xFF:
                return kept[:index] + bytes([kept[index] + 1])
            continue
        point = ord(kept[index]) + 1
        if point in _SURROGATES:
            point = _SURROGATES.stop
        if point <= _LAST_CODE_POINT:
            return kept[:index] + chr(point)
    return None


class FileStatistics:
    """Collects the statistics of a file's columns, each under the column's name."""

    def __init__(self, types: Mapping[str, DataType], modes: Mapping[str, StatsMode]) -> None:
        self._collectors = {name: ColumnCollector(types[name], mode) for name, mode in modes.items()}

    def add(self, table: pa.Table) -> None:
        """Take in rows; InputError for days and times that have no Python value."""
        for name, collector in self._collectors.items():
            try:
                collector.add(table[name])
            except (OverflowError, ValueError) as error:
                raise InputError(
                    f"column {name!r} holds a day or a time outside of the years 1 to 9999: {error}"
                ) from None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the statistics, in order."""
        return tuple(self._collectors)

    def result(self, names: Sequence[str] | None = None) -> SimpleStats:
        """Return the statistics of the columns `names` (default: all)."""
        results = [self._collectors[name].result() for name in (self.columns if names is None else names)]
        low, high, nulls = zip(*results, strict=True) if results else ((), (), ())
        return SimpleStats(tuple(low), tuple(high), tuple(nulls))
