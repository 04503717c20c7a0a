"""Stripes on several threads: results in order, bounded memory, and no thread left running."""

from __future__ import annotations

import gc
import io
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import CorruptFileError, InputError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.orc.read.stripe_decoder import StripeDecoder
from lockgate.framework.orc.sources.parallel import in_order, thread_count
from lockgate.pushdown import col


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("lockgate-orc")]


def take(items: Iterator[Any], into: list[Any]) -> None:
    """Like `into.extend(items)`, but keeps the items before an error."""
    for item in items:
        into.append(item)


@pytest.fixture(autouse=True)
def _no_worker_is_left() -> Iterator[None]:
    assert not workers()
    yield
    assert not workers()


@pytest.fixture(scope="module")
def many(keys: MemoryKeyProvider) -> bytes:
    """40,000 rows in some twenty stripes."""
    table = pa.table({"id": range(40_000), "ssn": [f"{i:09d}" for i in range(40_000)]})
    sink = io.BytesIO()
    write_table(table, sink, encrypt="pii:ssn", keys=keys, stripe_size=20_000)
    with EncryptedOrcFile(sink) as file:
        assert file.num_stripes > 10
    return sink.getvalue()


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 100])
def test_rows_keep_their_order(many: bytes, keys: MemoryKeyProvider, threads: int) -> None:
    with EncryptedOrcFile(many, keys, threads=threads) as file:
        assert file.read(["id"])["id"].to_pylist() == list(range(40_000))
        rows = [row for batch in file.iter_batches() for row in batch["ssn"].to_pylist()]
        assert rows == [f"{i:09d}" for i in range(40_000)]
        found = file.read(["id"], predicate=(col("ssn") < "000000100") | (col("id") >= 39_900))
        assert found["id"].to_pylist() == [*range(100), *range(39_900, 40_000)]


def test_memory_is_released_between_the_stripes_of_huge_files(
    many: bytes, keys: MemoryKeyProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[int] = []
    pool = pa.default_memory_pool()

    class Pool:
        def release_unused(self) -> None:
            released.append(pool.bytes_allocated())
            pool.release_unused()

    monkeypatch.setattr("lockgate.framework.orc.read.reader.pa.default_memory_pool", Pool)
    with EncryptedOrcFile(many, keys) as file:
        assert sum(batch.num_rows for batch in file.iter_batches()) == 40_000
        assert not released
        monkeypatch.setattr("lockgate.framework.orc.read.reader.HUGE", len(many))
        assert [row for batch in file.iter_batches() for row in batch["id"].to_pylist()] == list(
            range(40_000)
        )
        assert len(released) == file.num_stripes


class Held(bytearray):
    """Memory of a column that reports when it is freed."""


class Live:
    """Counts stripes that are being decoded, or were and are still held by anyone in whatever form."""

    def __init__(self, original: Callable[[StripeDecoder, int], pa.Table]) -> None:
        self._original = original
        self._lock = threading.Lock()
        self.now = self.most = 0

    def decode(self, decoder: StripeDecoder, index: int) -> pa.Table:
        self._add(1)
        column = self._original(decoder, index).column("id").combine_chunks()
        memory = Held(column.buffers()[1])
        weakref.finalize(memory, self._add, -1)
        buffers = [None, pa.py_buffer(memory)]
        return pa.table({"id": pa.Array.from_buffers(pa.int64(), len(column), buffers)})

    def _add(self, by: int) -> None:
        with self._lock:
            self.now += by
            self.most = max(self.most, self.now)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_at_most_one_stripe_for_each_thread_and_one_are_in_memory(
    many: bytes, keys: MemoryKeyProvider, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(StripeDecoder.decode)
    monkeypatch.setattr(StripeDecoder, "decode", lambda decoder, index: live.decode(decoder, index))
    with EncryptedOrcFile(many, keys, threads=threads) as file:
        count = 0
        for batch in file.iter_batches(["id"]):
            count += batch.num_rows
            time.sleep(0.002)  # Time for threads to run ahead, if they did.
        del batch
    assert count == 40_000
    assert 2 <= live.most <= threads + 1
    gc.collect()
    assert live.now == 0


def test_threads_work_at_the_same_time() -> None:
    together = threading.Barrier(4)

    def work(item: int) -> int:
        together.wait(timeout=30)
        return item * item

    assert list(in_order(work, range(12), 4)) == [item * item for item in range(12)]


def test_closing_early_leaves_no_thread(many: bytes, keys: MemoryKeyProvider) -> None:
    with EncryptedOrcFile(many, keys, threads=3) as file:
        batches = file.iter_batches()
        first = next(batches)
        assert workers()
        batches.close()
        assert not workers()
        assert first["id"][0].as_py() == 0
        for _ in file.iter_batches():
            break
        gc.collect()
        assert not workers()
        assert file.last_read.stripes_read <= 4


def test_an_unused_iterator_starts_no_thread(many: bytes, keys: MemoryKeyProvider) -> None:
    with EncryptedOrcFile(many, keys, threads=3) as file:
        batches = file.iter_batches()
        assert not workers()
        del batches


def test_an_error_is_raised_in_order_and_ends_the_work() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 5:
            raise CorruptFileError("five")
        return item

    found: list[int] = []
    with pytest.raises(CorruptFileError, match="five"):
        found.extend(in_order(work, range(1000), 3))
    assert not workers()
    assert max(begun) < 5 + 3
    found.clear()
    with pytest.raises(CorruptFileError, match="five"):
        take(in_order(work, range(1000), 3), found)
    assert found == [0, 1, 2, 3, 4]


def test_a_damaged_stripe_ends_a_read_on_threads(many: bytes, keys: MemoryKeyProvider) -> None:
    with EncryptedOrcFile(many) as file:
        place = file._tail.footer.stripes[7]
    damaged = bytearray(many)
    damaged[place.offset + place.index_length + place.data_length + 2] ^= 0xFF
    with EncryptedOrcFile(bytes(damaged), keys, threads=4) as file:
        seen: list[pa.RecordBatch] = []
        with pytest.raises(CorruptFileError):
            take(file.iter_batches(), seen)
        assert not workers()
        assert 0 < sum(batch.num_rows for batch in seen) < 40_000


def test_the_number_of_threads() -> None:
    assert thread_count(None) >= 1
    assert thread_count(7) == 7
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(InputError, match="threads must be 1 or more"):
            thread_count(wrong)  # type: ignore[arg-type]  # wrong on purpose
    sink = io.BytesIO()
    write_table(pa.table({"a": [1]}), sink)
    with pytest.raises(InputError, match="not 0"):
        EncryptedOrcFile(sink, threads=0)
