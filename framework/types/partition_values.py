"""The values of a partition as a key of dictionaries and sets, equal where the stored bytes are equal.

Python takes -0.0 for 0.0, and NaN for nothing that is equal to itself. Files of the two zeros lie in two
partitions (`p=0.0` and `p=-0.0`), in Paimon's Java core too, which compares the bytes of a BinaryRow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class _SignedZeros(tuple[Any, ...]):
    """The values of a partition of which at least one is -0.0; never equal to a plain tuple of values."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SignedZeros) and super().__eq__(other) and _signs(self) == _signs(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), _signs(self)))


def partition_key(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the values of a partition, in order, as a tuple that equals only those of the same partition.

    Pass values through this function before you compare partitions or look one up.

    >>> partition_key([0.0]) == partition_key([-0.0])
    False
    >>> partition_key([float("nan")]) == partition_key([float("nan")])
    True
    """
    if isinstance(values, _SignedZeros):
        return values
    key = tuple(values)
    for value in key:
        if isinstance(value, float) and (value == 0.0 or value != value):
            break
    else:
        return key
    key = tuple([math.nan if value != value else value for value in key])
    return _SignedZeros(key) if any(_signs(key)) else key


def _signs(values: tuple[Any, ...]) -> tuple[bool, ...]:
    """Return which values are -0.0."""
    return tuple(
        [isinstance(value, float) and value == 0.0 and math.copysign(1, value) < 0 for value in values]
    )
