"""Numbers in ascending order: distinct ones, and whether others are among them.

`np.unique` and `np.isin` hash their values, which takes some twenty times as long as a sort where almost all
values differ, as hashes of keys and positions of rows do.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)


def distinct(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return values, each once, ascending; the same array if they are so already."""
    if np.all(np.greater(values[1:], values[:-1])):
        return values
    ordered = np.sort(values)
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


def are_in(values: npt.NDArray[Any], ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell of each value whether it is among others, which ascend."""
    if len(ordered) == 0:
        return np.zeros(len(values), np.bool_)
    found: npt.NDArray[np.bool_] = (
        ordered[np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)] == values
    )
    return found
