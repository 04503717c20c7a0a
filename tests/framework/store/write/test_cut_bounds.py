"""Modes of statistics: bounds of texts that are cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import (
    OptionError,
)
from lockgate.framework.store.rows.file_statistics import StatsMode, truncate_max


def test_an_unknown_mode_of_statistics_is_refused() -> None:
    with pytest.raises(OptionError, match=r"truncate\(n\)"):
        StatsMode.parse("truncate(0)")


@given(value=st.one_of(st.text(max_size=6), st.binary(max_size=6)), length=st.integers(1, 4))
def test_a_cut_maximum_is_not_below_the_value(value: Any, length: int) -> None:
    cut = truncate_max(value, length)
    if cut is None:
        assert all(point in (0xFF, "\U0010ffff") for point in value[:length])
    else:
        assert len(cut) <= length
        assert cut >= value
        if isinstance(cut, str):
            assert cut.encode() >= value.encode()  # no surrogates


def test_a_cut_maximum_skips_surrogates() -> None:
    assert truncate_max("\ud7ffx", 1) == "\ue000"
