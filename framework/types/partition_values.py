"""The values of a partition as a dictionary key; keys are equal exactly if the stored bytes are.

In Python, -0.0 equals 0.0, and NaN does not equal itself. But the two zeros are different partitions (`p=0.0`
and `p=-0.0`), also in Paimon's Java core, which compares the bytes of a BinaryRow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


class _SignedZeros(tuple[Any, ...]):
    """The values of a partition with at least one -0.0; never equal to a plain tuple."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SignedZeros) and super().__eq__(other) and _signs(self) == _signs(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), _signs(self)))


def partition_key(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the values of a partition as a tuple that is equal only for the same partition.

    Convert values by this function before comparing partitions or looking one up.

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


def has_partition_values(keys: Sequence[str], values: Mapping[str, Any]) -> Callable[[Sequence[Any]], bool]:
    """Return a predicate on partitions of the columns `keys`: whether they have these values.

    >>> list(map(has_partition_values(["day", "p"], {"p": -0.0}), [(1, -0.0), (1, 0.0)]))
    [True, False]
    """
    indices = [keys.index(name) for name in values]
    expected = partition_key(values.values())
    return lambda partition: partition_key(partition[index] for index in indices) == expected


def _signs(values: tuple[Any, ...]) -> tuple[bool, ...]:
    """Return for each value whether it is -0.0."""
    return tuple(
        [isinstance(value, float) and value == 0.0 and math.copysign(1, value) < 0 for value in values]
    )
