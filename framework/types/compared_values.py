"""Values as bounds of columns are compared: whole numbers in units of their type, or texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from lockgate.framework.types.datatype import DataType, Kind
from lockgate.framework.types.value_json import days_of, micros_of

_WHOLE = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DATE})
_NANOS_IN_MICRO = 1000
_COMPACT_DIGITS = 18


def is_bounded(data_type: DataType) -> bool:
    """Say whether bounds of columns of this type are known here at all."""
    if data_type.is_timestamp:
        return (data_type.precision or 0) <= 6
    if data_type.kind is Kind.DECIMAL:
        return (data_type.precision or 0) <= _COMPACT_DIGITS
    return data_type.kind in _WHOLE or data_type.is_string


def scale_of(data_type: DataType) -> Fraction | None:
    """Return how many units of the stored numbers make 1 of the plain values; None for text."""
    if data_type.is_timestamp:
        return Fraction(1, _NANOS_IN_MICRO)
    if data_type.kind is Kind.DECIMAL:
        return Fraction(10) ** (data_type.scale or 0)
    return None if data_type.is_string else Fraction(1)


def stored_values(
    decoded: Sequence[Any], data_type: DataType
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return values as they are compared, and which of them are not None."""
    valid = np.fromiter((value is not None for value in decoded), np.bool_, len(decoded))
    if data_type.is_string:
        texts = np.empty(len(decoded), object)
        texts[:] = ["" if value is None else value for value in decoded]
        return texts, valid
    stored = _STORED[_family(data_type)]
    scale = data_type.scale or 0
    whole = (0 if value is None else stored(value, scale) for value in decoded)
    return np.fromiter(whole, np.int64, len(decoded)), valid


def _family(data_type: DataType) -> str:
    if data_type.is_timestamp:
        return "timestamp"
    return {Kind.DECIMAL: "decimal", Kind.DATE: "date"}.get(data_type.kind, "whole")


_STORED: dict[str, Callable[[Any, int], int]] = {
    "whole": lambda value, _: int(value),
    "date": lambda value, _: days_of(value),
    "timestamp": lambda value, _: micros_of(value),
    "decimal": lambda value, scale: int(value.scaleb(scale)),
}
