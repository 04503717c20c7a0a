"""Postings round-trip for all keys and places; a truncated block raises an error."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockgate.pushdown.index import postings as module
from lockgate.pushdown.index.postings import Block, Words, encode, find_keys, sorted_pairs

KEYS = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 300), st.integers(2**36 - 200, 2**36))


@settings(max_examples=examples(150))
@given(st.integers(1, 70), st.dictionaries(KEYS, st.lists(st.integers(0, 10**6), min_size=1), min_size=1))
@example(1, {0: [0]})
@example(64, {0: [1], 2**64 - 1: [*range(64)]})
@example(3, {5: [0, 1], 6: [2], 2**63: [0, 2]})
def test_postings_round_trip(total: int, postings: dict[int, list[int]]) -> None:
    places = {key: sorted({each % total for each in place_list}) for key, place_list in postings.items()}
    pairs = [(key, place) for key, each in places.items() for place in each]
    keys, where = (np.array(each, np.uint64) for each in zip(*pairs, strict=True))
    postings = encode(*sorted_pairs(keys, where), total)
    block = Block(int(postings.first[0]), postings.body[: int(postings.ends[0])], total)
    assert block.keys.tolist() == sorted(places)
    assert [block.places(n).tolist() for n in range(len(places))] == [places[key] for key in sorted(places)]
    assert sorted(zip(*(each.tolist() for each in block.pairs()), strict=True)) == sorted(pairs)
    asked = np.array(sorted({*list(places)[:3], 7}), np.uint64)
    assert len(find_keys(block, asked)) == sum(int(key) in places for key in asked)
    every = np.array(sorted(places), np.uint64)
    for part in (every, every[-40:], every[::2], np.sort(every + np.uint64(1))):
        expected = [n for n, key in enumerate(sorted(places)) if key in part.tolist()]
        assert list(block.numbers_of(part[part >= every[0]])) == expected
    for cut in (1, len(postings.body) // 2, len(postings.body) - 1):
        with pytest.raises((ValueError, struct.error)):
            Block(int(postings.first[0]), postings.body[:cut], total).pairs()


def shortest(places: Words, total: int) -> bytes:
    """Return the bytes of a long list of places: the shorter of a bitmap and the gaps of absent places."""
    bitmap = sum(1 << int(place) for place in places).to_bytes((total + 7) // 8, "little")
    absent, before = bytearray(), 0
    for place in sorted(set(range(total)) - set(places.tolist())):
        gap, before = place - before, place
        while gap > 127:
            absent.append(gap & 127 | 128)
            gap >>= 7
        absent.append(gap)
    return bytes(absent) if len(absent) < len(bitmap) else bitmap


@pytest.mark.parametrize("total", [1, 2, 7, 8, 9, 64, 300, 5000])
@pytest.mark.parametrize("most_flags", [1, 1000, 2**20])
def test_long_lists_use_the_shortest_encoding(
    monkeypatch: pytest.MonkeyPatch, total: int, most_flags: int
) -> None:
    monkeypatch.setattr(module, "_MAX_FLAGS", most_flags)
    chance = np.random.default_rng(total)
    lists = [np.flatnonzero(chance.random(total) < share).astype(np.uint64) for share in (0.1, 0.6, 0.97, 1)]
    lists += [np.arange(2, dtype=np.uint64) % np.uint64(total), np.arange(total, dtype=np.uint64)[::2]]
    lists = [np.unique(each) for each in lists if len(each)]
    keys = np.repeat(np.arange(len(lists), dtype=np.uint64), [len(each) for each in lists])
    encoded = encode(keys, np.concatenate(lists), total)
    block = Block(0, encoded.body, total)
    several = [each for each in lists if len(each) > 1]
    for number, each in enumerate(lists):
        assert block.places(number).tolist() == each.tolist()
    for number, each in enumerate(several):
        data = encoded.body[int(block._ends[number]) : int(block._ends[number + 1])]
        assert len(data) <= len(shortest(each, total))
        if 2 * len(each) > total:
            assert data == shortest(each, total)
