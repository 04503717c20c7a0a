"""Decoding in a child process: the same rows, and errors if the child crashes, hangs or needs too much
memory.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pytest

from lockgate.errors import (
    CorruptFileError,
    InputError,
    KeyMissingError,
    UnsupportedTypeError,
)
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, Isolation
from lockgate.framework.orc.isolation.isolation import IsolatedDecoder
from lockgate.framework.orc.isolation.pool import POOL, Worker
from lockgate.pushdown import col


@pytest.fixture
def fresh_pool() -> Iterator[None]:
    """No children before, none after."""
    POOL.close()
    yield
    POOL.close()


@pytest.fixture
def lent(fresh_pool: None) -> Iterator[Worker]:
    """The child that the next file is decoded in."""
    worker = POOL.take()
    POOL.give(worker)
    yield worker
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker.pid, signal.SIGCONT)


def both(data: Any, keys: Any, act: Callable[[EncryptedOrcFile], Any], **options: Any) -> list[Any]:
    """What `act` returns and warns of, without isolation and with it."""
    found = []
    for isolate in (False, True):
        with (
            warnings.catch_warnings(record=True) as heard,
            EncryptedOrcFile(data, keys, isolate=isolate, name="people.orc", **options) as file,
        ):
            warnings.simplefilter("always")
            try:
                result = act(file)
            except Exception as error:
                result = (type(error), str(error))
        found.append((result, [(each.category, str(each.message), each.filename) for each in heard]))
    return found


def same(data: Any, keys: Any, act: Callable[[EncryptedOrcFile], Any], **options: Any) -> Any:
    (plain, heard), (isolated, heard_isolated) = both(data, keys, act, **options)
    if isinstance(plain, (pa.Table, pa.Schema)):
        assert isolated.equals(plain, check_metadata=True)
    else:
        assert isolated == plain
    assert heard_isolated == heard
    return plain, heard


# --- everything is as it is without isolation ---


@pytest.mark.parametrize("compression", ["zstd", "snappy", "zlib", "lz4", "none"])
@pytest.mark.parametrize("encrypt", ["pii:ssn,email;fin:salary", None])
def test_rows_are_the_same(
    compression: str, encrypt: str | None, written: Callable[..., bytes], keys: MemoryKeyProvider
) -> None:
    data = written(compression=compression, encrypt=encrypt, mask=None)
    for unit in ("ns", "us"):
        same(data, keys, lambda file: file.read(), timestamp_unit=unit)
    same(data, keys, lambda file: file.schema)
    same(data, keys, lambda file: list(file.iter_batches(["email", "id"])), threads=3)


@pytest.mark.parametrize(
    ("columns", "predicate"),
    [
        (["tags", "ssn"], None),
        ([], None),
        (["id"], col("ssn") == "000007919"),
        (None, col("salary") > 500),
        (["email"], pc.field("id") < 10),
        (["id"], col("id") < 0),
        (["nothing"], None),
    ],
)
def test_columns_and_predicates(
    columns: list[str] | None, predicate: Any, encrypted: bytes, keys: MemoryKeyProvider
) -> None:
    same(encrypted, keys, lambda file: file.read(columns, predicate))


def test_masks_and_warnings(encrypted: bytes) -> None:
    read, heard = same(encrypted, None, lambda file: file.read())
    assert read.schema.field("ssn").metadata[b"lockgate.masked"] == b"nullify"
    assert len(heard) == 1
    with pytest.raises(KeyMissingError):
        EncryptedOrcFile(encrypted, strict=True, isolate=True)


def test_times_beyond_nanoseconds(written: Callable[..., bytes], keys: MemoryKeyProvider) -> None:
    far = pa.array([253402300799 * 10**6, None, 0], pa.timestamp("us"))
    data = written(pa.table({"ssn": ["a", "b", "c"], "t": far}), encrypt="pii:ssn,t", mask=None)
    same(data, keys, lambda file: file.read(), timestamp_unit="us")
    (error, _), _ = same(data, keys, lambda file: file.read())
    assert error is UnsupportedTypeError


def test_an_empty_file(written: Callable[..., bytes], people: pa.Table, keys: MemoryKeyProvider) -> None:
    same(written(people.slice(0, 0)), keys, lambda file: file.read())


def test_paths_and_file_systems(encrypted: bytes, keys: MemoryKeyProvider, tmp_path: Path) -> None:
    path = tmp_path / "people.orc"
    path.write_bytes(encrypted)
    same(path, keys, lambda file: file.read())
    with EncryptedOrcFile((pa.fs.LocalFileSystem(), str(path)), keys, isolate=True) as file:
        assert file.read(["ssn"]).num_rows == 1000


def test_damage_has_the_same_message(written: Callable[..., bytes]) -> None:
    data = written(encrypt=None, mask=None)
    with EncryptedOrcFile(data) as file:
        stripe = file._tail.footer.stripes[1]
        start = stripe.offset + stripe.index_length
    broken = bytearray(data)
    broken[start : start + 200] = b"\xff" * 200
    # Not in memory, where Arrow reads plain files without our help.
    (error, message), _ = same(io.BytesIO(broken), None, lambda file: file.read())
    assert error is CorruptFileError
    assert "stripe 1 does not decode" in message


# --- the child ---


def test_a_hang_ends_at_the_deadline(lent: Worker, encrypted: bytes, keys: MemoryKeyProvider) -> None:
    os.kill(lent.pid, signal.SIGSTOP)
    with (
        EncryptedOrcFile(encrypted, keys, isolate=Isolation(0.3), name="x.orc") as file,
        pytest.raises(CorruptFileError, match=r"x\.orc is not a valid.* not decoded within 0\.3 s"),
    ):
        file.read()
    assert not lent.alive
    with EncryptedOrcFile(encrypted, keys, isolate=True) as file:
        assert file.read().num_rows == 1000


def die_of(worker: Worker, kill: signal.Signals) -> threading.Timer:
    """Let a child die in the middle of its next answer."""
    os.kill(worker.pid, signal.SIGSTOP)

    def later() -> None:
        os.kill(worker.pid, kill)
        os.kill(worker.pid, signal.SIGCONT)

    timer = threading.Timer(0.2, later)
    timer.start()
    return timer


@pytest.mark.parametrize("kill", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_crash_is_an_error(
    kill: signal.Signals, lent: Worker, encrypted: bytes, keys: MemoryKeyProvider
) -> None:
    timer = die_of(lent, kill)
    with (
        EncryptedOrcFile(encrypted, keys, isolate=True, name="x.orc") as file,
        pytest.raises(CorruptFileError, match=rf"x\.orc .* crashed the process .*{kill.name}"),
    ):
        file.read()
    timer.join()


def test_a_crash_of_an_earlier_file_is_retried(
    lent: Worker, encrypted: bytes, keys: MemoryKeyProvider
) -> None:
    with EncryptedOrcFile(encrypted, keys, isolate=True, threads=1) as file:
        file.read(["id"])
    assert lent.requests
    timer = die_of(lent, signal.SIGSEGV)
    with EncryptedOrcFile(encrypted, keys, isolate=True, threads=1) as file:
        assert file.read().num_rows == 1000
    timer.join()


def test_a_child_that_died_idle_is_replaced(lent: Worker, encrypted: bytes, keys: MemoryKeyProvider) -> None:
    with EncryptedOrcFile(encrypted, keys, isolate=True, threads=1) as file:
        file.read(["id"])
    os.kill(lent.pid, signal.SIGKILL)
    with EncryptedOrcFile(encrypted, keys, isolate=True) as file:
        assert file.read().num_rows == 1000


def test_memory_is_bounded(fresh_pool: None) -> None:
    rows = 36_000_000
    sink = io.BytesIO()
    numbers = np.broadcast_to(np.int64(7), rows)
    with pa.orc.ORCWriter(sink, compression="zstd") as writer:
        for _ in range(36):
            writer.write(pa.table({"n": numbers[: rows // 36]}))
    with (
        EncryptedOrcFile(sink.getvalue(), isolate=Isolation(60, memory=256 * 1024**2), name="x.orc") as file,
        pytest.raises(CorruptFileError, match=r"x\.orc .* needs more than 268,435,456 bytes"),
    ):
        file.read()


@pytest.mark.parametrize("isolate", [True, False])
@pytest.mark.parametrize("shape", ["text", "inside"])
def test_invalid_utf_8_is_an_error(written: Callable[..., bytes], isolate: bool, shape: str) -> None:
    values: Any = ["needle", "ok", "needle"] if shape == "text" else [[{"a": "needle"}], [], None]
    data = written(pa.table({"s": values, "n": [1, 2, 3]}), encrypt=None, mask=None, compression="none")
    broken = data.replace(b"needle", b"need\xff\xfe")
    assert broken != data
    with EncryptedOrcFile(broken, isolate=isolate) as file, pytest.raises(CorruptFileError, match="UTF8"):
        file.read()
    with EncryptedOrcFile(broken, isolate=isolate) as file:
        assert file.read(columns=["n"])["n"].to_pylist() == [1, 2, 3]
    with EncryptedOrcFile(data, isolate=isolate) as file:
        assert file.read()["s"].to_pylist() == values


def test_the_child_gets_no_secret(
    fresh_pool: None, monkeypatch: pytest.MonkeyPatch, encrypted: bytes, keys: MemoryKeyProvider
) -> None:
    monkeypatch.setenv("HADOOP_KEYSTORE_PASSWORD", "shibboleth")
    with EncryptedOrcFile(encrypted, keys, isolate=True) as file:
        file.read()
    for worker in POOL._all:
        process = Path("/proc") / str(worker.pid)
        assert b"shibboleth" not in (process / "environ").read_bytes()
        arguments = (process / "cmdline").read_bytes().split(b"\0")
        assert arguments[1:4] == [b"-P", b"-m", b"lockgate.framework.orc.isolation.decode_worker"]


def test_large_files_have_more_time() -> None:
    decoder = IsolatedDecoder(Isolation(1.0))
    sink = io.BytesIO()
    pa.orc.write_table(pa.table({"s": np.random.default_rng(1).bytes(1_000_000).hex(" ").split()}), sink)
    image = pa.py_buffer(sink.getvalue())
    decoder._remaining_seconds = 0.5
    table = decoder.table(image)
    assert table.num_rows == 1_000_000
    assert decoder._remaining_seconds > 0.5 - 60  # what it took was counted, and what it gave
    decoder._remaining_seconds = -100.0
    with pytest.raises(pa.ArrowException, match="not decoded within 1 s"):
        decoder.table(image)


@pytest.mark.parametrize("isolate", [1, "yes", None, 5.0])
def test_other_values_are_refused(isolate: Any, encrypted: bytes) -> None:
    with pytest.raises(InputError, match=r"EncryptedOrcFile: isolate takes bool . Isolation, not "):
        EncryptedOrcFile(encrypted, isolate=isolate)


@pytest.mark.parametrize("limits", [{"deadline": 0}, {"deadline": -1.0}, {"memory": 1024}])
def test_invalid_limits(limits: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Isolation(**limits)
