"""Decoding of ORC in a child process, so that a damaged file cannot crash this one.

Arrow's decoder trusts its input: one flipped byte can crash it or make it run for ever. Metadata, keys,
decryption and predicates are handled in Python in this process. Isolation changes a single step: the plain
image of a stripe goes to a child as bytes, and its rows come back as Arrow IPC, which this process checks
before use. The child gets neither keys nor paths.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.framework.orc.isolation.decode_worker import (
    DONE,
    INVALID,
    NO_MEMORY,
    REQUEST,
    RESPONSE,
    SCHEMA,
    TABLE,
)
from lockgate.framework.orc.isolation.decoder import ArrowDecoder, Decoder
from lockgate.framework.orc.isolation.pool import POOL, Worker

# A file has its deadline plus a second for each of these many bytes, stored and decoded; slower decoding is
# stuck.
BYTES_PER_SECOND = 16 * 1024 * 1024
_MAX_SECONDS = 2**31 / 1000
# Time in which a process must end after it closed its socket; a large process needs a while.
_EXIT_SECONDS = 5.0


@checked_arguments
@dataclass(frozen=True)
class Isolation:
    """Limits for a file that is decoded in a child process.

    `deadline` is in seconds of decoding for the whole file; large files get a second more for each 16 MiB.
    `memory` is how many bytes the child may allocate, the rows of one stripe included.
    """

    deadline: float = 5.0
    memory: int = 4 * 1024**3

    def __post_init__(self) -> None:
        if not 0 < self.deadline < _MAX_SECONDS / 2:
            raise InputError(f"deadline must be a number of seconds above 0, not {self.deadline!r}")
        if not 256 * 1024**2 <= self.memory < 2**63:
            raise InputError(f"memory must be at least 256 MiB, in bytes, not {self.memory!r}")


class DecoderDiedError(pa.ArrowException):  # type: ignore[misc]  # pyarrow has no types
    """Raised when decoding crashed, hung or ran out of memory; the reader adds file and stripe."""


class IsolatedDecoder:
    """Decodes one file in child processes, which all files share; each thread uses one at a time.

    After a crash of a child that had decoded other files before, decoding is retried in a new child, so that
    the error is not another file's.
    """

    def __init__(self, limits: Isolation) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._remaining_seconds = limits.deadline

    def table(self, image: pa.Buffer) -> pa.Table:
        content = self._request(TABLE, image)
        table = pa.ipc.open_stream(content).read_all()
        # The image may have taken over the child, so lengths, offsets and texts must be validated.
        table.validate(full=True)
        self._add_seconds(-content.size / BYTES_PER_SECOND)
        return table

    def schema(self, image: pa.Buffer) -> pa.Schema:
        return pa.ipc.open_stream(self._request(SCHEMA, image)).schema

    def _add_seconds(self, seconds: float) -> float:
        with self._lock:
            self._remaining_seconds -= seconds
            return self._remaining_seconds

    def _request(self, kind: int, image: pa.Buffer) -> pa.Buffer:
        remaining = self._add_seconds(-image.size / BYTES_PER_SECOND)
        while True:
            worker = POOL.take()
            was_used = worker.requests > 0
            started = time.monotonic()
            try:
                status, content = self._exchange(worker, kind, image, started + remaining)
            except TimeoutError:
                POOL.discard(worker)
                raise self._timed_out() from None
            except (EOFError, ConnectionError):
                exit_code = POOL.discard(worker, patience=_EXIT_SECONDS)
                if exit_code == -signal.SIGALRM:
                    raise self._timed_out() from None
                if was_used:
                    continue
                raise DecoderDiedError(
                    f"it crashed the process that decoded it: {_exit_reason(exit_code)}"
                ) from None
            except BaseException:
                POOL.discard(worker)
                raise
            remaining = self._add_seconds(time.monotonic() - started)
            POOL.give(worker)
            if status == DONE:
                return content
            raise self._error(status, content.to_pybytes().decode(errors="replace"))

    def _exchange(self, worker: Worker, kind: int, image: pa.Buffer, end: float) -> tuple[int, pa.Buffer]:
        worker.requests += 1
        link = worker.link
        seconds = min(max(end - time.monotonic(), 0.001), _MAX_SECONDS)
        link.settimeout(seconds)
        link.sendall(REQUEST.pack(kind, int(seconds * 1000), self._limits.memory, image.size))
        link.sendall(image)
        head = _receive(link, pa.allocate_buffer(RESPONSE.size), end)
        status, length = RESPONSE.unpack(head)
        if length > self._limits.memory:
            raise EOFError
        return status, _receive(link, pa.allocate_buffer(length), end)

    def _timed_out(self) -> DecoderDiedError:
        return DecoderDiedError(
            f"it was not decoded within {self._limits.deadline:g} s (the deadline of isolated files)"
        )

    def _error(self, status: int, text: str) -> pa.ArrowException:
        if status == INVALID:
            return pa.ArrowInvalid(text)
        if status == NO_MEMORY:
            return DecoderDiedError(
                f"decoding needs more than {self._limits.memory:,} bytes (the memory of isolated files)"
            )
        return pa.ArrowException(text)


def decoder_for(isolate: bool | Isolation) -> Decoder:
    """Return the decoder for the option `isolate`; `InputError` unless it is a bool or an `Isolation`."""
    if isinstance(isolate, Isolation):
        return IsolatedDecoder(isolate)
    if not isinstance(isolate, bool):
        raise InputError(f"isolate must be True, False or an Isolation(...), not {isolate!r}")
    return IsolatedDecoder(Isolation()) if isolate else ArrowDecoder()


def _receive(link: socket.socket, buffer: Any, end: float) -> Any:
    view = memoryview(buffer)
    while view:
        remaining = end - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        link.settimeout(remaining)
        count = link.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return buffer


def _exit_reason(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"{name}, perhaps because memory ran out" if -code == signal.SIGKILL else name
