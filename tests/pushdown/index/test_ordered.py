"""Distinct numbers and membership, compared with numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from lockgate.pushdown.index.ordered import are_in, distinct


@pytest.mark.parametrize("kind", [np.int32, np.uint64])
@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_results_equal_numpys(kind: type, count: int) -> None:
    random = np.random.default_rng(count)
    values = random.integers(0, 50, count).astype(kind)
    ordered = distinct(random.integers(0, 90, count // 2).astype(kind))
    assert np.array_equal(distinct(values), np.unique(values))
    assert np.array_equal(are_in(values, ordered), np.isin(values, ordered))
    assert distinct(values).dtype == kind
