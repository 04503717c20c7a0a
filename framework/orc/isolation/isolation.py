"""Decoding of ORC in this process, or in a child process, so that a damaged file cannot crash this one.

Arrow's decoder trusts its input: one flipped byte can crash it or keep it busy for ever. Everything around it
(metadata, keys, decryption, predicates) is Python and stays here. So isolation changes one step only: the
plain image of a stripe goes to a child as bytes, and its rows come back as Arrow IPC, which this process
checks before use. The child gets neither key nor path.
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

# A file may take its deadline and a second more for each so many bytes, stored and decoded: what is slower
# than that is stuck, not large.
BYTES_A_SECOND = 16 * 1024 * 1024
_LONGEST_SECONDS = 2**31 / 1000
# How long a process may take to die once it has closed its socket: a large one takes a while.
_DYING_SECONDS = 5.0


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
        if not 0 < self.deadline < _LONGEST_SECONDS / 2:
            raise InputError(f"deadline must be a number of seconds above 0, not {self.deadline!r}")
        if not 256 * 1024**2 <= self.memory < 2**63:
            raise InputError(f"memory must be at least 256 MiB, in bytes, not {self.memory!r}")


class DecoderDiedError(pa.ArrowException):  # type: ignore[misc]  # pyarrow has no types
    """Raised when decoding crashed, hung or burst its process; the reader says of which file and stripe."""


class IsolatedDecoder:
    """Decodes one file in child processes that all files share, as many at once as threads ask.

    A crash in a child that had decoded other files before is tried again in a fresh one, so that no file is
    blamed for what another left behind.
    """

    def __init__(self, limits: Isolation) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._left = limits.deadline

    def table(self, image: pa.Buffer) -> pa.Table:
        content = self._ask(TABLE, image)
        table = pa.ipc.open_stream(content).read_all()
        # The child may have been led astray: neither lengths nor offsets nor text are to be trusted.
        table.validate(full=True)
        self._account(-content.size / BYTES_A_SECOND)
        return table

    def schema(self, image: pa.Buffer) -> pa.Schema:
        return pa.ipc.open_stream(self._ask(SCHEMA, image)).schema

    def _account(self, seconds: float) -> float:
        with self._lock:
            self._left -= seconds
            return self._left

    def _ask(self, kind: int, image: pa.Buffer) -> pa.Buffer:
        left = self._account(-image.size / BYTES_A_SECOND)
        while True:
            worker = POOL.take()
            used = worker.requests > 0
            started = time.monotonic()
            try:
                status, content = self._exchange(worker, kind, image, started + left)
            except TimeoutError:
                POOL.discard(worker)
                raise self._late() from None
            except (EOFError, ConnectionError):
                end = POOL.discard(worker, patience=_DYING_SECONDS)
                if end == -signal.SIGALRM:
                    raise self._late() from None
                if used:
                    continue
                raise DecoderDiedError(f"it crashed the process that decoded it: {_ending(end)}") from None
            except BaseException:
                POOL.discard(worker)
                raise
            left = self._account(time.monotonic() - started)
            POOL.give(worker)
            if status == DONE:
                return content
            raise self._error(status, content.to_pybytes().decode(errors="replace"))

    def _exchange(self, worker: Worker, kind: int, image: pa.Buffer, end: float) -> tuple[int, pa.Buffer]:
        worker.requests += 1
        link = worker.link
        seconds = min(max(end - time.monotonic(), 0.001), _LONGEST_SECONDS)
        link.settimeout(seconds)
        link.sendall(REQUEST.pack(kind, int(seconds * 1000), self._limits.memory, image.size))
        link.sendall(image)
        head = _receive(link, pa.allocate_buffer(RESPONSE.size), end)
        status, length = RESPONSE.unpack(head)
        if length > self._limits.memory:
            raise EOFError
        return status, _receive(link, pa.allocate_buffer(length), end)

    def _late(self) -> DecoderDiedError:
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


def decoder_of(isolate: bool | Isolation) -> Decoder:
    """Return the decoder that the option `isolate` asks for; `InputError` for anything but a bool or
    `Isolation`.
    """
    if isinstance(isolate, Isolation):
        return IsolatedDecoder(isolate)
    if not isinstance(isolate, bool):
        raise InputError(f"isolate must be True, False or an Isolation(...), not {isolate!r}")
    return IsolatedDecoder(Isolation()) if isolate else ArrowDecoder()


def _receive(link: socket.socket, buffer: Any, end: float) -> Any:
    view = memoryview(buffer)
    while view:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        link.settimeout(left)
        count = link.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return buffer


def _ending(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"{name}, perhaps for want of memory" if -code == signal.SIGKILL else name
