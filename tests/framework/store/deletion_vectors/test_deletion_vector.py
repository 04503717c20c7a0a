"""Bytes of deletion vectors, by vectors that the connector runs too, and damaged ones."""

from __future__ import annotations

import json
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import CorruptFileError, UnsupportedError
from lockgate.framework.store.deletion_vectors.deletion_vector import DeletedRows, decode, encode, is_wide

FIXTURES = Path(__file__).parents[3] / "fixtures"
CASES = json.loads((FIXTURES / "vectors" / "deletion_vectors.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_vectors_are_read(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["bytes"])
    if "error" in case:
        with pytest.raises(CorruptFileError, match=f"the vector is .*{case['error']}"):
            decode(data, case["rows"], "the vector")
    else:
        assert decode(data, case["rows"], "the vector").positions.tolist() == case["positions"]


@given(st.sets(st.integers(0, 200_000), max_size=200), st.booleans())
@settings(max_examples=examples(50))
def test_what_is_written_is_read(positions: set[int], wide: bool) -> None:
    data = encode(DeletedRows.of(list(positions)), wide=wide)
    assert is_wide(data) is wide
    assert decode(data, 200_001, "v").positions.tolist() == sorted(positions)


@given(st.sets(st.integers(0, 40)), st.integers(0, 50), st.integers(0, 20))
@settings(max_examples=examples(50))
def test_rows_of_a_part_are_kept(positions: set[int], first: int, rows: int) -> None:
    kept = DeletedRows.of(list(positions)).kept(first, rows)
    wanted = [row not in positions for row in range(first, first + rows)]
    assert (kept is None and all(wanted)) or (kept is not None and kept.tolist() == wanted)


def test_rows_that_a_narrow_vector_cannot_mark_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="bitmap64"):
        encode(DeletedRows.of([2**31]), wide=False)


@pytest.mark.parametrize("wide", [False, True])
def test_any_damage_is_an_error_or_harmless(wide: bool) -> None:
    """With a check sum that fits, so that the bitmap itself is damaged: no crash, no row too many."""
    chosen = random.Random(7)
    good = encode(DeletedRows.of([*range(0, 300, 7), *range(70_000, 70_050)]), wide=wide)
    errors = 0
    for _ in range(examples(400)):
        body = bytearray(good[4:-4])
        for _ in range(chosen.randrange(1, 4)):
            body[chosen.randrange(len(body))] = chosen.randrange(256)
        del body[len(body) - chosen.choice((0, 0, 0, chosen.randrange(1, len(body) - 4))) :]
        data = struct.pack(">i", len(body)) + bytes(body) + struct.pack(">I", zlib.crc32(bytes(body)))
        try:
            found = decode(data, 80_000, "v")
            assert np.all(found.positions < 80_000)
        except CorruptFileError:
            errors += 1
    assert errors > examples(400) // 8
