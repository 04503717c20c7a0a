"""Fast distinct values and membership by sorting.

`np.unique` and `np.isin` hash their values. Where almost all values differ, as for hashes of keys and row
positions, that takes about twenty times as long as sorting.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)


def distinct(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the distinct values, ascending; the same array if it has that form already."""
    if np.all(np.greater(values[1:], values[:-1])):
        return values
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def are_in(values: npt.NDArray[Any], ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return for each value whether it is in `ordered`, which ascends."""
    if len(ordered) == 0:
        return np.zeros(len(values), np.bool_)
    is_member: npt.NDArray[np.bool_] = (
        ordered[np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)] == values
    )
    return is_member
