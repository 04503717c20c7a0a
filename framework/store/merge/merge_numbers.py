"""Sums and products of numbers, for many keys at a time; each step checks for overflow.

Source: Paimon's `FieldSumAgg` and `FieldProductAgg`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework.store.merge.group_codes import Codes

if TYPE_CHECKING:
    from lockgate.framework.store.merge.merge_plan import ColumnMerge

# Products whose size as a floating number is below this fit into 64 bits for certain.
_SURELY_FITS = float(2**62)


class Number(ABC):
    """A number a key; null until a row has one."""

    def __init__(self, plan: ColumnMerge, column: pa.ChunkedArray, keys: int) -> None:
        self._name = plan.name
        self._type = column.type
        self._arithmetic = _arithmetic(plan.name, column.type)
        self._valid = column.is_valid().to_numpy() if column.null_count else np.ones(len(column), np.bool_)
        self._values = self._arithmetic.values(column)
        self._state = np.zeros(keys, self._values.dtype)
        self._filled = np.zeros(keys, np.bool_)

    def add(self, at: Codes, rows: Codes) -> None:
        """Take in a row; a null changes nothing."""
        at, rows = self._counting(at, rows)
        filled = self._filled[at]
        self.replace(at[~filled], rows[~filled])
        at, rows = at[filled], rows[filled]
        self._state[at] = self._combined(self._state[at], self._values[rows])

    def add_late(self, at: Codes, rows: Codes) -> None:
        """Take in a row that comes late; neither sums nor products depend on that."""
        self.add(at, rows)

    def retract_late(self, at: Codes, rows: Codes) -> None:
        """Take back a row that comes late."""
        self.retract(at, rows)

    def replace(self, at: Codes, rows: Codes) -> None:
        """Begin with a row's value."""
        self._state[at] = self._values[rows]
        self._filled[at] = self._valid[rows]

    def result(self) -> pa.Array:
        """Return the value of each key."""
        return self._arithmetic.array(self._state, self._filled, self._type)

    def _counting(self, at: Codes, rows: Codes) -> tuple[Codes, Codes]:
        valid = self._valid[rows]
        return at[valid], rows[valid]

    @abstractmethod
    def retract(self, at: Codes, rows: Codes) -> None:
        """Take back a row."""

    @abstractmethod
    def _combined(self, left: Any, right: Any) -> Any: ...


class Sum(Number):
    """`sum`."""

    def retract(self, at: Codes, rows: Codes) -> None:
        """Subtract; of nothing that is the negative value."""
        at, rows = self._counting(at, rows)
        filled = self._filled[at]
        self._state[at[~filled]] = self._arithmetic.negative(self._values[rows[~filled]])
        self._filled[at] = True
        at, rows = at[filled], rows[filled]
        self._state[at] = self._arithmetic.difference(self._state[at], self._values[rows])

    def _combined(self, left: Any, right: Any) -> Any:
        return self._arithmetic.total(left, right)


class Product(Number):
    """`product`."""

    def retract(self, at: Codes, rows: Codes) -> None:
        """Divide; nothing stays nothing."""
        at, rows = self._counting(at, rows)
        filled = self._filled[at]
        at, rows = at[filled], rows[filled]
        self._state[at] = self._arithmetic.quotient(self._state[at], self._values[rows])

    def _combined(self, left: Any, right: Any) -> Any:
        return self._arithmetic.product(left, right)


def _arithmetic(name: str, data_type: pa.DataType) -> _Floats | _Integers | _Decimals:
    if pa.types.is_floating(data_type):
        return _Floats()
    if pa.types.is_signed_integer(data_type):
        return _Integers(name, data_type.bit_width)
    if pa.types.is_decimal(data_type):
        return _Decimals(name, data_type.precision, data_type.scale)
    raise UnsupportedTypeError(f"column {name!r} of type {data_type} cannot be summed or multiplied")


class _Floats:
    def values(self, column: pa.ChunkedArray) -> Any:
        return column.fill_null(0.0).to_numpy()

    def array(self, state: Any, filled: Any, data_type: pa.DataType) -> pa.Array:
        return pa.array(state, data_type, mask=~filled)

    def total(self, left: Any, right: Any) -> Any:
        with np.errstate(all="ignore"):
            return left + right

    def difference(self, left: Any, right: Any) -> Any:
        with np.errstate(all="ignore"):
            return left - right

    def negative(self, values: Any) -> Any:
        return -values

    def product(self, left: Any, right: Any) -> Any:
        with np.errstate(all="ignore"):
            return left * right

    def quotient(self, left: Any, right: Any) -> Any:
        with np.errstate(all="ignore"):
            return left / right


class _Integers:
    """Whole numbers in 64 bits, each result within `bits`."""

    def __init__(self, name: str, bits: int) -> None:
        self._name = name
        self._bits = bits
        self._low, self._high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def values(self, column: pa.ChunkedArray) -> Any:
        return column.cast(pa.int64()).fill_null(0).to_numpy()

    def array(self, state: Any, filled: Any, data_type: pa.DataType) -> pa.Array:
        return pa.array(state, pa.int64(), mask=~filled).cast(data_type)

    def total(self, left: Any, right: Any) -> Any:
        found = left + right
        self._check(((left ^ found) & (right ^ found)) < 0)
        return self._fitting(found)

    def difference(self, left: Any, right: Any) -> Any:
        found = left - right
        self._check(((left ^ right) & (left ^ found)) < 0)
        return self._fitting(found)

    def negative(self, values: Any) -> Any:
        return self.difference(np.zeros_like(values), values)

    def product(self, left: Any, right: Any) -> Any:
        large = np.abs(left.astype(np.float64) * right.astype(np.float64)) >= _SURELY_FITS
        self._check(
            [
                not self._low <= int(a) * int(b) <= self._high
                for a, b in zip(left[large], right[large], strict=True)
            ]
        )
        with np.errstate(over="ignore"):
            return self._fitting(left * right)

    def quotient(self, left: Any, right: Any) -> Any:
        if (right == 0).any():
            raise InputError(f"column {self._name!r}: a row retracts 0, by which a product cannot be divided")
        self._check((left == self._low) & (right == -1))
        # Towards zero, where numpy rounds down.
        whole = left // right
        return whole + ((whole < 0) & (whole * right != left))

    def _fitting(self, found: Any) -> Any:
        self._check((found < self._low) | (found > self._high))
        return found

    def _check(self, overflows: Any) -> None:
        if np.any(overflows):
            raise InputError(f"column {self._name!r}: a merged value does not fit into {self._bits} bits")


class _Decimals:
    """Decimals as whole numbers of the last digit."""

    def __init__(self, name: str, precision: int, scale: int) -> None:
        self._name = name
        self._most = 10**precision
        self._unit = 10**scale
        self._scale = scale
        self._precision = precision

    def values(self, column: pa.ChunkedArray) -> Any:
        found = np.zeros(len(column), dtype=object)
        found[:] = [0 if value is None else _unscaled(value, self._scale) for value in column.to_pylist()]
        return found

    def array(self, state: Any, filled: Any, data_type: pa.DataType) -> pa.Array:
        values = [
            Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -self._scale)) if sure else None
            for value, sure in zip(state, filled, strict=True)
        ]
        return pa.array(values, data_type)

    def total(self, left: Any, right: Any) -> Any:
        return self._fitting(left + right)

    def difference(self, left: Any, right: Any) -> Any:
        return self._fitting(left - right)

    def negative(self, values: Any) -> Any:
        return -values

    def product(self, left: Any, right: Any) -> Any:
        return self._fitting(_rounded(left * right, self._unit))

    def quotient(self, left: Any, right: Any) -> Any:
        if any(value == 0 for value in right):
            raise InputError(f"column {self._name!r}: a row retracts 0, by which a product cannot be divided")
        return self._fitting(_rounded(left * self._unit, right))

    def _fitting(self, found: Any) -> Any:
        if any(abs(value) >= self._most for value in found):
            raise InputError(
                f"column {self._name!r}: a merged value does not fit into {self._precision} digits"
            )
        return found


def _unscaled(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole: int = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -whole if sign else whole


def _rounded(dividend: Any, divisor: Any) -> Any:
    """Divide, rounding halves away from zero."""
    sign = np.where((dividend < 0) ^ (divisor < 0), -1, 1).astype(object)
    large = abs(divisor)
    return sign * ((2 * abs(dividend) + large) // (2 * large))
