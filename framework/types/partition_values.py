"""The values of a partition as a key of dictionaries and sets, equal where the stored bytes are equal.

Python takes -0.0 for 0.0, and NaN for nothing that is equal to itself. Files of the two zeros lie in two
partitions (`p=0.0` and `p=-0.0`), in Paimon's Java core too, which compares the bytes of a BinaryRow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def has_partition_values(keys: Sequence[str], values: Mapping[str, Any]) -> Callable[[Sequence[Any]], bool]:
    """Return the predicate whether a partition of the columns `keys` has `values` in some of them.

    >>> list(map(has_partition_values(["day", "p"], {"p": -0.0}), [(1, -0.0), (1, 0.0)]))
    [True, False]
    """
    indices = [keys.index(name) for name in values]
    wanted = partition_key(values.values())
    return lambda partition: partition_key(partition[index] for index in indices) == wanted


def _signs(values: tuple[Any, ...]) -> tuple[bool, ...]:
    """Return which values are -0.0."""
    return tuple(
        [isinstance(value, float) and value == 0.0 and math.copysign(1, value) < 0 for value in values]
    )
