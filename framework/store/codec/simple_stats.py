"""Statistics of columns in a file: smallest value, largest value, number of nulls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from lockgate.framework.store.codec.binary_row import decode_field, decode_row, encode_row
from lockgate.framework.types import DataType


@dataclass(frozen=True)
class SimpleStats:
    """`min`, `max` and `null_counts` of some columns in order; None: not known, or nothing but nulls.

    Statistics from a manifest are decoded on first use, because scans skip most files by their partition.
    """

    # Made by factories, so that the class has no attribute of these names: see `__getattr__`.
    min: tuple[Any, ...] = field(default_factory=tuple)
    max: tuple[Any, ...] = field(default_factory=tuple)
    null_counts: tuple[int | None, ...] = field(default_factory=tuple)

    @classmethod
    def encoded(
        cls, minimum: bytes, maximum: bytes, null_counts: tuple[int | None, ...], types: tuple[DataType, ...]
    ) -> SimpleStats:
        """Make statistics from serialized BinaryRows of columns of `types`."""
        stats = object.__new__(cls)
        stats.__dict__.update(null_counts=null_counts, _encoded=(minimum, maximum), _types=types)
        return stats

    def __getattr__(self, name: str) -> Any:
        # Reached only for what is not set yet, so once at most for each of the two.
        if name not in ("min", "max") or "_encoded" not in self.__dict__:
            raise AttributeError(name)
        minimum, maximum = self.__dict__["_encoded"]
        types = self.__dict__["_types"]
        values = decode_row(minimum if name == "min" else maximum, types)
        self.__dict__[name] = values = _exact(values, types) if name == "max" else values
        return values

    def bound(self, which: Literal["min", "max"], position: int) -> Any:
        """Return one column's smallest or largest value; None if not known. The others are not decoded."""
        if which in self.__dict__:
            values = self.__dict__[which]
            return values[position] if position < len(values) else None
        types = self.__dict__["_types"]
        if position >= len(types) or (which == "max" and _cut_off(types[position])):
            return None
        return decode_field(self.__dict__["_encoded"][which == "max"], types, position)

    def to_binary(self, types: tuple[DataType, ...]) -> tuple[bytes, bytes]:
        """Return min and max as serialized BinaryRows of columns of `types`."""
        if "_encoded" in self.__dict__:
            minimum, maximum = self.__dict__["_encoded"]
            return minimum, maximum
        return encode_row(self.min, types), encode_row(self.max, types)


def bounds_of_all(stats: Iterable[SimpleStats], which: Literal["min", "max"]) -> Iterator[tuple[Any, ...]]:
    """Yield `min` or `max` of each; what is decoded for that is not kept."""
    for each in stats:
        if which in each.__dict__:
            yield each.__dict__[which]
            continue
        types = each.__dict__["_types"]
        values = decode_row(each.__dict__["_encoded"][which == "max"], types)
        yield _exact(values, types) if which == "max" else values


def _exact(values: tuple[Any, ...], types: tuple[DataType, ...]) -> tuple[Any, ...]:
    """Return largest values without those that decoding has made too small."""
    if not any(map(_cut_off, types)):
        return values
    return tuple(None if _cut_off(kind) else value for kind, value in zip(types, values, strict=False))


def _cut_off(data_type: DataType) -> bool:
    """Say whether decoding drops digits, which makes a largest value too small."""
    return data_type.is_timestamp and (data_type.precision or 0) > 6


EMPTY_STATS = SimpleStats()
