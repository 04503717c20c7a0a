"""The store keeps what it was given, atomically by step, and the lists under one key come apart again."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.backends import Storage, is_passing, open_store
from lockgate.lookup.cache.budget import DiskBudget
from lockgate.lookup.cache.rocksdb import ReadOnlyStore, SortedFile, WritableStore
from lockgate.lookup.codec.byte_rows import Rows
from lockgate.lookup.codec.lists import pack, unpack


def write_sorted(path: Path, keys: list[bytes], values: list[bytes]) -> Path:
    file = SortedFile(path)
    file.put(Rows.from_values(keys), Rows.from_values(values))
    return file.finish()


def found_in(store: ReadOnlyStore, keys: list[bytes]) -> dict[bytes, bytes]:
    (found,) = store.find(Rows.from_values(keys))
    return {keys[at]: value for at, value in zip(found.at, found.rows.gather().to_bytes(), strict=True)}


def test_a_step_is_taken_in_with_its_meta(tmp_path: Path) -> None:
    store = WritableStore(tmp_path / "db")
    assert store.meta() is None
    keys = [bytes([n]) * 16 for n in range(1, 9)]
    files = [write_sorted(tmp_path / "a.sst", keys[:4], [b"a" * 8] * 4)]
    files.append(write_sorted(tmp_path / "b.sst", keys[4:], [b"b" * 8] * 4))
    store.ingest(files, {"applied": 1})
    store.checkpoint(tmp_path / "g1")
    store.ingest([write_sorted(tmp_path / "c.sst", keys[:2], [b"", b"c" * 8])], {"applied": 2})
    store.checkpoint(tmp_path / "g2")
    assert store.meta() == {"applied": 2}
    assert store.get_many(keys[:3]) == [None, b"c" * 8, b"a" * 8]
    store.close()
    assert not list(tmp_path.glob("*.sst"))

    first, second = (ReadOnlyStore(tmp_path / name, 1 << 20) for name in ("g1", "g2"))
    assert found_in(first, keys) == dict(zip(keys, [b"a" * 8] * 4 + [b"b" * 8] * 4, strict=True))
    assert found_in(second, [*keys[:3], b"missing "]) == {keys[1]: b"c" * 8, keys[2]: b"a" * 8}
    shutil.rmtree(tmp_path / "g1")
    assert found_in(first, keys[:1]) == {keys[0]: b"a" * 8}

    again = WritableStore(tmp_path / "db")
    assert again.meta() == {"applied": 2}
    with pytest.raises(LookupCacheError, match="cannot open"):
        WritableStore(tmp_path / "db")
    again.close()


def test_readers_have_the_block_cache_they_asked_for(tmp_path: Path) -> None:
    store = WritableStore(tmp_path / "db")
    store.ingest([write_sorted(tmp_path / "a.sst", [b"k" * 8], [b"v" * 8])], {})
    store.checkpoint(tmp_path / "g")
    store.close()
    database = ReadOnlyStore(tmp_path / "g", 123 << 20)._db
    assert int(database.property_value("rocksdb.block-cache-capacity") or 0) == 123 << 20


def test_reads_longer_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockgate.lookup.cache.rocksdb.READ_CHUNK", 3)
    store = WritableStore(tmp_path / "db")
    keys = [b"key%05d" % n for n in range(10)]
    store.ingest([write_sorted(tmp_path / "a.sst", keys, keys)], {})
    assert store.get_many([*keys, b"not here"]) == [*keys, None]
    assert store.get_many([]) == []
    store.close()


@given(st.lists(st.lists(st.binary(max_size=4), max_size=5), max_size=10))
def test_lists_come_apart_again(lists: list[list[bytes]]) -> None:
    flat = [value * 8 for group in lists for value in group]
    counts = np.array([len(group) for group in lists], np.int64)
    packed = pack(Rows.from_values(flat), counts)
    rows, again = unpack(Rows.from_values(packed.to_bytes()))
    assert again.tolist() == counts.tolist()
    assert rows.gather().to_bytes() == flat


def test_a_full_disk_is_no_damage(tmp_path: Path) -> None:
    for number in (errno.ENOSPC, errno.EMFILE, errno.EROFS):
        words = f"cannot open the lookup cache: IO error: {os.strerror(number)}: MANIFEST-000013"
        assert is_passing(LookupCacheError(words))
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "CURRENT").write_text("MANIFEST-000001\n")
    with pytest.raises(LookupCacheError, match="cannot open") as damaged:
        WritableStore(tmp_path / "db")
    assert not is_passing(damaged.value)


def in_memory(path: Path) -> bool:
    """Whether the system has all of a file in memory, asked without reading any of it."""
    size = path.stat().st_size
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as mapped:
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        assert ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), pages) == 0
    return all(page & 1 for page in pages)


@pytest.mark.parametrize("storage", Storage)
def test_what_is_opened_is_soon_in_memory(tmp_path: Path, storage: Storage) -> None:
    rows = 1 << 15
    keys = np.arange(2 * rows, dtype=">u8").view(np.uint64)
    values = np.arange(32 * rows, dtype=np.uint64)
    every = np.arange(rows + 1)
    folder = tmp_path / "db"
    folder.mkdir()
    store = open_store(folder, storage, None, DiskBudget(tmp_path, 0))
    sink = store.sink()
    sink.write("part", [(Rows(keys, every * 2), Rows(values, every * 32))])
    store.ingest(sink.finish(), {"applied": 1})
    store.close()
    largest = max(folder.iterdir(), key=lambda path: path.stat().st_size)
    assert largest.stat().st_size >= values.nbytes
    with open(largest, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if in_memory(largest):
        pytest.skip("this file system is memory")
    store = open_store(folder, storage, None, DiskBudget(tmp_path, 0))
    deadline = time.monotonic() + 20
    while not in_memory(largest):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    store.close()
