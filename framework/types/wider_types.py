"""Types that a column may change to: those that hold every value it can have had, read from old files alike
by Python and by Spark.
"""

from __future__ import annotations

from dataclasses import replace

from lockgate.framework.types.datatype import DOUBLE, DataType, Kind, decimal, sized

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
_MOST_DIGITS = 38


def _whole_digits(data_type: DataType) -> int:
    if data_type.kind is Kind.DECIMAL:
        return (data_type.precision or 0) - (data_type.scale or 0)
    return _DIGITS.get(data_type.kind, _TOO_MANY)


def _fraction_digits(data_type: DataType) -> int:
    return (data_type.scale or 0) if data_type.kind is Kind.DECIMAL else 0


def _length(data_type: DataType) -> int:
    return data_type.length or 0


# --- types of two sources ---


def common_type(one: DataType, other: DataType) -> DataType | None:
    """Return the type that holds every value of both, None if there is none.

    A ROW has the members of both, those of `one` first; what one of them lacks may be null.
    """
    found = _common(one.with_nullable(True), other.with_nullable(True))
    return None if found is None else found.with_nullable(one.nullable or other.nullable)


def _common(one: DataType, other: DataType) -> DataType | None:
    if can_widen(one, other):
        return other
    if can_widen(other, one):
        return one
    kinds = {one.kind, other.kind}
    if one.is_string and other.is_string:
        return sized(Kind.VARCHAR, max(_length(one), _length(other)))
    if one.is_binary and other.is_binary:
        return sized(Kind.VARBINARY, max(_length(one), _length(other)))
    if Kind.FLOAT in kinds:
        return DOUBLE if can_widen(one, DOUBLE) and can_widen(other, DOUBLE) else None
    if kinds <= {*_INTEGERS, Kind.DECIMAL}:
        return _common_decimal(one, other)
    if len(kinds) == 1 and (one.is_timestamp or one.kind is Kind.TIME):
        return replace(one, precision=max(one.precision or 0, other.precision or 0))
    return _common_nested(one, other) if len(kinds) == 1 else None


def _common_decimal(one: DataType, other: DataType) -> DataType | None:
    scale = max(_fraction_digits(one), _fraction_digits(other))
    digits = max(_whole_digits(one), _whole_digits(other)) + scale
    return decimal(digits, scale) if digits <= _MOST_DIGITS else None


def _common_nested(one: DataType, other: DataType) -> DataType | None:
    if one.kind is Kind.ROW:
        return _common_row(one, other)
    if one.kind is Kind.ARRAY:
        element = common_type(one.element_type(), other.element_type())
        return None if element is None else replace(one, element=element)
    if one.kind is Kind.MAP:
        key = common_type(one.key_type(), other.key_type())
        value = common_type(one.value_type(), other.value_type())
        return None if key is None or value is None else replace(one, key=key, value=value)
    return None


def _common_row(one: DataType, other: DataType) -> DataType | None:
    others = {field.name: field for field in other.fields}
    members = []
    for field in one.fields:
        match = others.pop(field.name, None)
        kind = field.type.with_nullable(True) if match is None else common_type(field.type, match.type)
        if kind is None:
            return None
        members.append(replace(field, type=kind))
    added = [replace(field, type=field.type.with_nullable(True)) for field in others.values()]
    return replace(one, fields=(*members, *added))
