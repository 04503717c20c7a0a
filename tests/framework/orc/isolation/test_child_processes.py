"""The child processes that decode: they end with their parent, and start again when needed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.errors import (
    IsolationError,
)
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.isolation import pool
from lockgate.framework.orc.isolation.pool import POOL


@pytest.fixture
def fresh_pool() -> Iterator[None]:
    """No children before, none after."""
    POOL.close()
    yield
    POOL.close()


def test_children_are_reused(fresh_pool: None, encrypted: bytes, keys: MemoryKeyProvider) -> None:
    pids = set()
    for _ in range(5):
        with EncryptedOrcFile(encrypted, keys, isolate=True, threads=1) as file:
            file.read()
        pids |= {worker.pid for worker in POOL._all}
    assert len(pids) == 1


def test_a_child_that_cannot_start(
    fresh_pool: None, monkeypatch: pytest.MonkeyPatch, encrypted: bytes
) -> None:
    monkeypatch.setattr(pool, "_MODULE", "lockgate.no_such_module")
    with (
        EncryptedOrcFile(encrypted, isolate=True) as file,
        pytest.raises(IsolationError, match=r"does not start: .*no_such_module"),
    ):
        _ = file.schema
    assert not POOL._all


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_children_end_with_their_parent(ending: str, tmp_path: Path) -> None:
    path = tmp_path / "x.orc"
    pa.orc.write_table(pa.table({"a": [1, 2, 3]}), str(path))
    script = f"""
        import os, sys
        from lockgate.framework.orc import EncryptedOrcFile
        from lockgate.framework.orc.isolation.pool import POOL
        assert EncryptedOrcFile({str(path)!r}, isolate=True).read().num_rows == 3
        print(*[worker.pid for worker in POOL._all], flush=True)
        {ending}
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert not done.stderr
    pids = [int(pid) for pid in done.stdout.split()]
    assert pids
    until = time.monotonic() + 10
    while any(map(running, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(running, pids))


def running(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet waited for by its foster parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_a_busy_child_ends_with_its_parent(tmp_path: Path) -> None:
    """A child that hangs in the decoder ends by its alarm, without its parent."""
    path = tmp_path / "x.orc"
    pa.orc.write_table(pa.table({"a": [1, 2, 3]}), str(path))
    script = f"""
        import os, signal, threading, time
        from lockgate.framework.orc import EncryptedOrcFile, Isolation
        from lockgate.framework.orc.isolation.pool import POOL
        file = EncryptedOrcFile({str(path)!r}, isolate=Isolation(30))
        file.schema
        (worker,) = POOL._all
        os.kill(worker.pid, signal.SIGSTOP)
        threading.Thread(target=file.read, daemon=True).start()
        time.sleep(0.2)
        print(worker.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    pid = int(done.stdout)
    with contextlib.suppress(ProcessLookupError):  # the system may have let it go on already
        os.kill(pid, signal.SIGCONT)
    until = time.monotonic() + 10
    while running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not running(pid)


def test_a_forked_process_starts_its_own_children(
    fresh_pool: None, encrypted: bytes, keys: MemoryKeyProvider
) -> None:
    script = """
        import io, os, pyarrow as pa, pyarrow.orc
        from lockgate.framework.orc import EncryptedOrcFile
        from lockgate.framework.orc.isolation.pool import POOL
        sink = io.BytesIO()
        pa.orc.write_table(pa.table({"a": [1, 2, 3]}), sink)
        read = lambda: EncryptedOrcFile(sink.getvalue(), isolate=True).read().num_rows
        read()
        mine = {worker.pid for worker in POOL._all}
        child = os.fork()
        if not child:
            assert not POOL._all
            assert read() == 3
            assert not mine & {worker.pid for worker in POOL._all}
            POOL.close()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert read() == 3
        assert mine == {worker.pid for worker in POOL._all}
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_parent_that_ignores_alarms(fresh_pool: None, encrypted: bytes, keys: MemoryKeyProvider) -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    try:
        worker = POOL.take()
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.kill(worker.pid, signal.SIGALRM)
    assert worker.end(10.0) == -signal.SIGALRM


def test_without_a_python_to_start(
    fresh_pool: None, encrypted: bytes, keys: MemoryKeyProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with (
        EncryptedOrcFile(encrypted, keys, isolate=True) as file,
        pytest.raises(IsolationError, match="no Python"),
    ):
        file.read()
