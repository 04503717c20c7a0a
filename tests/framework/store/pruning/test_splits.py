"""Splits hold each file once, in order, and no more than they should."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.framework.store.manifests.manifest import DataFileMeta, FileKind, ManifestEntry
from lockgate.framework.store.pruning.split import Section, append_sections, by_bucket, pack_sections


def _entries(sizes: Sequence[int]) -> list[ManifestEntry]:
    files = [DataFileMeta(f"{number}.orc", size, 1) for number, size in enumerate(sizes)]
    return [ManifestEntry(FileKind.ADD, (), 0, 1, file) for file in files]


def _paths(entries: Sequence[ManifestEntry]) -> tuple[str, ...]:
    return tuple(f"folder/{entry.file.file_name}" for entry in entries)


def _greedy(sections: Sequence[Section], cost: int, target: int) -> list[list[str]]:
    packed: list[list[Section]] = []
    for section in sections:
        if packed and sum(each.size(cost) for each in [*packed[-1], section]) <= target:
            packed[-1].append(section)
        else:
            packed.append([section])
    return [[entry.file.file_name for each in group for entry in each.entries] for group in packed]


@settings(max_examples=examples(200))
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), max_size=8),
    st.lists(st.integers(0, 9), max_size=8),
    st.integers(0, 4),
    st.integers(1, 12),
    st.booleans(),
)
def test_sections_are_packed_in_order(
    merged: list[list[int]], plain: list[int], cost: int, target: int, merge_apart: bool
) -> None:
    entries = _entries([*itertools.chain(*merged), *plain])
    left = iter(entries)
    sections = [Section(tuple(itertools.islice(left, len(sizes))), merge=True) for sizes in merged]
    apart = append_sections([*left])
    splits = pack_sections([*sections, *apart], {}, _paths, target, cost, merge_apart=merge_apart)
    found = {
        merge: [[file.file_name for file in split.files] for split in splits if split.merge is merge]
        for merge in (False, True)
    }
    assert found[False] == _greedy(apart, cost, target)
    assert found[True] == _greedy(sections, cost, 1 if merge_apart else target)
    for split in splits:
        assert split.paths == tuple(f"folder/{file.file_name}" for file in split.files)
        assert split.vectors == (None,) * len(split.files)


@given(st.lists(st.tuples(st.sampled_from([("a",), ("b",), (None,)]), st.integers(0, 2)), max_size=12))
def test_files_of_a_bucket_meet_wherever_they_are(places: list[tuple[tuple[str | None], int]]) -> None:
    file = DataFileMeta("a.orc", 1, 1)
    # Equal partitions are objects of their own, as those of several manifests are.
    entries = [ManifestEntry(FileKind.ADD, (*values,), bucket, 3, file) for values, bucket in places]
    buckets = by_bucket(entries)
    found = [[(entry.partition, entry.bucket) for entry in bucket] for bucket in buckets]
    assert found == [[place] * places.count(place) for place in dict.fromkeys(places)]
    assert [*map(id, sorted(itertools.chain(*buckets), key=id))] == sorted(map(id, entries))
