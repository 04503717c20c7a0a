"""Types that a column may change to: those that hold every value it can have had, read from old files alike
by Python and by Spark.
"""

from __future__ import annotations

from lockgate.framework.types import DataType, Kind

_INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 19}
# Whole numbers up to 2**24 and 2**53 are exact in these.
_EXACT_IN = {Kind.FLOAT: (Kind.TINYINT, Kind.SMALLINT), Kind.DOUBLE: (Kind.TINYINT, Kind.SMALLINT, Kind.INT)}


def can_widen(old: DataType, new: DataType) -> bool:
    """Say whether every value of `old` is one of `new`; nullability aside."""
    if old.with_nullable(True) == new.with_nullable(True):
        return True
    if new.kind in _INTEGERS:
        return old.kind in _INTEGERS and _INTEGERS.index(old.kind) <= _INTEGERS.index(new.kind)
    if new.kind in _EXACT_IN:
        return old.kind in _EXACT_IN[new.kind] or (old.kind is Kind.FLOAT and new.kind is Kind.DOUBLE)
    if new.kind is Kind.DECIMAL:
        return _whole_digits(old) <= _whole_digits(new) and _fraction_digits(old) <= _fraction_digits(new)
    if old.is_string and new.is_string:
        # CHAR pads, so nothing but a CHAR of the same length becomes one.
        return new.kind is Kind.VARCHAR and _length(old) <= _length(new)
    if old.is_binary and new.is_binary:
        return new.kind is Kind.VARBINARY and _length(old) <= _length(new)
    return False


def statistics_hold(old: DataType, new: DataType) -> bool:
    """Say whether bounds and null counts of a column written as `old` hold for it as `new`.

    They do where the values stay and their order too; text that became numbers sorts otherwise ("10" < "9"),
    and some of it is null now.
    """
    if old.with_nullable(True) == new.with_nullable(True):
        return True
    same_order = (
        (old.kind in _INTEGERS and new.kind in _INTEGERS)
        or old.kind is new.kind is Kind.DECIMAL
        or (old.is_string and new.is_string)
    )
    return same_order and can_widen(old, new)


_TOO_MANY = 99


def _whole_digits(data_type: DataType) -> int:
    if data_type.kind is Kind.DECIMAL:
        return (data_type.precision or 0) - (data_type.scale or 0)
    return _DIGITS.get(data_type.kind, _TOO_MANY)


def _fraction_digits(data_type: DataType) -> int:
    return (data_type.scale or 0) if data_type.kind is Kind.DECIMAL else 0


def _length(data_type: DataType) -> int:
    return data_type.length or 0
