"""Roaring bitmaps of 64 bits: those that Java wrote are read, and written again byte by byte."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.framework.store.codec.roaring64 import Roaring64

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures" / "roaring64.json").read_text(encoding="utf-8"))
LEAST, GREATEST = -(2**63), 2**63 - 1


def numbers_of(ranges: list[list[int]]) -> Iterator[int]:
    for each in ranges:
        yield from range(*each)


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["name"])
def test_java_is_read_and_written(vector: dict[str, Any]) -> None:
    stored = base64.b64decode(vector["java"])
    found = Roaring64.deserialize(stored)
    assert found == Roaring64.of(numbers_of(vector["numbers"]))
    assert set(found) == set(numbers_of(vector["numbers"]))
    if vector["ascending"]:
        assert found.serialize() == stored
    assert Roaring64.deserialize(found.serialize()) == found


near = st.sampled_from([0, 1 << 16, 1 << 32, 1 << 40, 1 << 62, -1 << 63, -1 << 20]).flatmap(
    lambda base: st.integers(0, 70_000).map(lambda step: base + step)
)
numbers = st.one_of(st.integers(LEAST, GREATEST), near)


@settings(max_examples=examples(200))
@given(first=st.lists(numbers, max_size=80), second=st.lists(numbers, max_size=80), shift=st.integers(0, 47))
def test_sets_unite(first: list[int], second: list[int], shift: int) -> None:
    first = [*first, *(number << shift & GREATEST for number in range(len(second)))]
    one, other = Roaring64.of(first), Roaring64.of(second)
    union = Roaring64.deserialize((one | other).serialize())
    assert list(union) == sorted({*first, *second}, key=lambda number: number % 2**64)
    assert len(union) == len({*first, *second})
    assert union.serialize() == (other | one).serialize(), "equal sets have equal bytes"


@settings(max_examples=examples(300))
@given(data=st.data())
def test_damaged_bytes_are_named(data: st.DataObject) -> None:
    whole = bytearray(base64.b64decode(data.draw(st.sampled_from(VECTORS["vectors"]))["java"]))
    if data.draw(st.booleans()):
        whole = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        at = data.draw(st.integers(0, min(400, len(whole) - 1)))
        whole[at] ^= data.draw(st.integers(1, 255))
    try:
        found = Roaring64.deserialize(bytes(whole))
    except ValueError:
        return
    # A number may be another one now, but what is read is a set.
    assert Roaring64.deserialize(found.serialize()) == found


def test_further_bytes_are_ignored_as_in_java() -> None:
    stored = Roaring64.of([1, -1]).serialize()
    assert list(Roaring64.deserialize(stored + b"more")) == [1, -1]
    assert list(Roaring64.deserialize(b"\0more")) == []


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (b"", "too few"),
        (b"\2", "more than 1"),
        (Roaring64.of([1]).serialize()[:-20], "too few"),
        (Roaring64.of([1, 1 << 40]).serialize().replace(b"\xfe\2", b"\xfe\1"), "no container|more than"),
    ],
)
def test_what_is_no_bitmap(stored: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Roaring64.deserialize(stored)
