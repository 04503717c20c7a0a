"""Granules, ranges and threads: a read checks complete granules and nothing else."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tagged_files import KEYS, flipped, opened

from lockgate.errors import (
    IntegrityError,
)
from lockgate.framework.orc import (
    EncryptedOrcFile,
    verify_file,
)
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.format.tail import Tail, read_tail
from lockgate.framework.orc.integrity.authenticate import authenticate
from lockgate.framework.orc.integrity.mac import GRANULE
from lockgate.framework.orc.integrity.verified_source import VerifyingSource
from lockgate.framework.orc.sources.file_source import MemorySource, open_source

# --- granules --------------------------------------------------------------------------------------


def longest(source: VerifyingSource, tail: Tail, stripe: int, *, encrypted: bool) -> tuple[int, int]:
    streams = read_stripe(source, tail, stripe).streams
    return max(
        ((each.offset, each.length) for each in streams if (each.variant is not None) is encrypted),
        key=lambda found: found[1],
    )


def swap(data: bytes, one: int, other: int, length: int) -> bytes:
    changed = bytearray(data)
    changed[one : one + length] = data[other : other + length]
    changed[other : other + length] = data[one : one + length]
    return bytes(changed)


def test_swapped_granules_are_detected(large: bytes) -> None:
    """Within a stream, between columns, and between stripes, at granule boundaries."""
    source, tail = opened(large)
    (a, first), (b, _) = (longest(source, tail, 0, encrypted=each) for each in (True, False))
    c, _ = longest(source, tail, 1, encrypted=True)
    assert first > 2 * GRANULE
    for one, other in ((a, a + GRANULE), (a, b), (a, c), (a + GRANULE, b + GRANULE)):
        report = verify_file(swap(large, one, other, GRANULE), KEYS)
        assert [damage.start for damage in report.damage] == sorted([one, other])
        assert all(damage.end - damage.start == GRANULE for damage in report.damage)
        with (
            EncryptedOrcFile(swap(large, one, other, GRANULE), KEYS, threads=1) as file,
            pytest.raises(IntegrityError, match=f"bytes {min(one, other)} to"),
        ):
            file.read()


def test_a_read_checks_only_its_granules(large: bytes) -> None:
    class Counting(MemorySource):
        asked: list[tuple[int, int]]

        def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
            self.asked = [each for each in ranges if each[1]]
            return super().read_ranges(ranges)

    counting = Counting(large, "<counting>")
    source, tail = opened(counting)  # type: ignore[arg-type]  # a source that counts
    start, length = longest(source, tail, 0, encrypted=True)
    assert source.read_at(start + GRANULE + 10, 5) == large[start + GRANULE + 10 : start + GRANULE + 15]
    assert counting.asked == [(start + GRANULE, GRANULE)]
    source.read_ranges([(start + GRANULE - 1, 2), (start + 5, 1), (start + 2 * GRANULE + 1, 1)])
    assert counting.asked == [(start, 2 * GRANULE), (start + 2 * GRANULE, GRANULE)]
    source.read_at(start + length - 1, 1)
    assert counting.asked == [(start + length // GRANULE * GRANULE, length % GRANULE)]
    # Damage elsewhere in the stream is not seen, damage in the granule is.
    changed, _ = opened(flipped(large, start + GRANULE + 77))
    assert changed.read_at(start, 5) == large[start : start + 5]
    with pytest.raises(IntegrityError, match="stream"):
        changed.read_at(start + 2 * GRANULE - 1, 1)
    with pytest.raises(IntegrityError):
        changed.read_at(start + GRANULE - 1, 2)


@pytest.mark.parametrize("how", ["memory", "file", "path"])
def test_ranges_return_the_bytes_of_the_file(large: bytes, tmp_path: Path, how: str) -> None:
    (tmp_path / "large.orc").write_bytes(large)
    source, _ = opened({"memory": large, "file": io.BytesIO(large), "path": tmp_path / "large.orc"}[how])  # type: ignore[arg-type]  # sources of several types
    rng = random.Random(3)
    for _ in range(40):
        ranges = []
        for _ in range(rng.randint(1, 6)):
            start = rng.choice([0, rng.randrange(len(large)), len(large) - rng.randint(0, 3000)])
            ranges.append((start, min(rng.choice([0, 1, 3000, 10**6]), len(large) - start)))
        assert [bytes(each) for each in source.read_ranges(ranges)] == [
            large[start : start + length] for start, length in ranges
        ]
    assert source.read_at(0, len(large)) == large
    source.close()


def test_stripes_read_by_many_threads(large: bytes) -> None:
    source, tail = opened(large)
    places = [(stripe.offset + i * 1000, 500) for stripe in tail.footer.stripes for i in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda place: bytes(source.read_at(*place)), places))
    assert found == [large[start : start + length] for start, length in places]


def test_a_file_replaced_during_opening_is_refused(small: bytes) -> None:
    """For remote files, the parsed tail must be the one that was checked."""

    class Remote:
        size = len(small)

        def read_at(self, offset: int, length: int) -> bytes:
            return small[offset : offset + length]

    source = open_source(Remote())
    tail = read_tail(source)
    variants = Variants(tail, KEYS)
    tail.footer.row_index_stride += 1
    with pytest.raises(IntegrityError, match="changed while it was opened"):
        authenticate(source, tail, variants)
