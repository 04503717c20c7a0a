"""The cache of ranges over a store that answers as slowly as one far away."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from harness import emit, timed

from lockgate.framework.io import LocalFileSystem
from lockgate.framework.io.cache.cached_files import CachedFileSystem
from lockgate.framework.io.cache.range_cache import RangeCache

BENCH = "index"
FIRST_BYTE_SECONDS, BYTES_PER_SECOND = 0.015, 90e6
RANGES_A_FILE, FILES = 6, 40
LENGTHS = (4_000, 60_000, 200_000)


class FarFiles(LocalFileSystem):
    """Files on this disk, each range of which takes the time of a request to an object store."""

    def open_input(self, path: str) -> BinaryIO:
        """Open a file; that itself takes a request."""
        time.sleep(FIRST_BYTE_SECONDS)
        return cast("BinaryIO", _FarInput(super().open_input(path)))


class _FarInput:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.close = file.seek, file.close

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        found = []
        for offset, length in ranges:
            time.sleep(FIRST_BYTE_SECONDS + length / BYTES_PER_SECOND)
            self._file.seek(offset)
            found.append(self._file.read(length))
        return found


def measure(files: Sequence[Path], folder: Path, repetitions: int) -> None:
    """Print what ranges of data files take from the cache, over what they take from the store."""
    store = FarFiles()
    cached = CachedFileSystem(store, RangeCache(folder, 1 << 40))
    chance = random.Random(1)
    wanted = []
    for file in files[:FILES]:
        size = file.stat().st_size
        for _ in range(RANGES_A_FILE):
            length = min(chance.choice(LENGTHS), size)
            wanted.append((str(file), chance.randrange(size - length + 1), length))

    def read(system: Any) -> None:
        for path, offset, length in wanted:
            with system.open_input(path) as file:
                assert len(file.read_at(offset, length)) == length

    def far() -> None:
        for path, offset, length in wanted:
            assert len(store.open_input(path).read_many([(offset, length)])[0]) == length

    cold = timed(lambda: read(cached))
    warm = min(timed(lambda: read(cached)) for _ in range(repetitions))
    plain = timed(far)
    emit(BENCH, "range_cache_cold_ratio", cold / plain, "ratio")
    emit(BENCH, "range_cache_warm_ratio", warm / plain, "ratio", 0.1)
