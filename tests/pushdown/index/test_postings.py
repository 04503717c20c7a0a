"""Postings are what was encoded, whatever the keys and places; a block that is cut off is an error."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockgate.pushdown.index.postings import Block, encode, found_in, sorted_pairs

KEYS = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 300), st.integers(2**36 - 200, 2**36))


@settings(max_examples=examples(150))
@given(st.integers(1, 70), st.dictionaries(KEYS, st.lists(st.integers(0, 10**6), min_size=1), min_size=1))
@example(1, {0: [0]})
@example(64, {0: [1], 2**64 - 1: [*range(64)]})
@example(3, {5: [0, 1], 6: [2], 2**63: [0, 2]})
def test_what_is_encoded_is_found(total: int, wanted: dict[int, list[int]]) -> None:
    places = {key: sorted({each % total for each in found}) for key, found in wanted.items()}
    pairs = [(key, place) for key, each in places.items() for place in each]
    keys, where = (np.array(each, np.uint64) for each in zip(*pairs, strict=True))
    postings = encode(*sorted_pairs(keys, where), total)
    block = Block(int(postings.first[0]), postings.body[: int(postings.ends[0])], total)
    assert block.keys.tolist() == sorted(places)
    assert [block.places(n).tolist() for n in range(len(places))] == [places[key] for key in sorted(places)]
    assert sorted(zip(*(each.tolist() for each in block.pairs()), strict=True)) == sorted(pairs)
    asked = np.array(sorted({*list(places)[:3], 7}), np.uint64)
    assert len(found_in(block, asked)) == sum(int(key) in places for key in asked)
    every = np.array(sorted(places), np.uint64)
    for part in (every, every[-40:], every[::2], every + np.uint64(1)):
        expected = [n for n, key in enumerate(sorted(places)) if key in part.tolist()]
        assert list(block.numbers_of(part[part >= every[0]])) == expected
    for cut in (1, len(postings.body) // 2, len(postings.body) - 1):
        with pytest.raises((ValueError, struct.error)):
            Block(int(postings.first[0]), postings.body[:cut], total).pairs()
