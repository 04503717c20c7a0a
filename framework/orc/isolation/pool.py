"""A pool of child processes that decode untrusted files: started on demand, reused, and always ended."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading

from lockgate.errors import IsolationError
from lockgate.framework.orc.isolation.decode_worker import READY

_MODULE = "lockgate.framework.orc.isolation.decode_worker"
_START_SECONDS = 60.0
# Environment variables, by name or prefix, that Python and Arrow need. Others may hold secrets.
_ENVIRONMENT_PREFIXES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_",
    "TZ",
    "LD_",
    "DYLD_",
    "PYTHON",
    "VIRTUAL_ENV",
    "CONDA",
    "ARROW_",
)
# More idle children than cores would only use memory.
_MAX_IDLE = os.cpu_count() or 1


class Worker:
    """A child process and the socket to it; `requests` counts its requests."""

    def __init__(self) -> None:
        self.requests = 0
        if not sys.executable:
            raise IsolationError(
                "this program embeds Python, so there is no Python executable to start a process with"
            )
        self.link, child_socket = socket.socketpair()
        try:
            with child_socket:
                self._process = subprocess.Popen(  # noqa: S603 - starts this package's module in this Python
                    # -P: a module in the current folder must not shadow one of Python's.
                    [sys.executable, "-P", "-m", _MODULE, str(child_socket.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=(child_socket.fileno(),),
                    env=_environment(),
                    start_new_session=True,
                )
        except OSError as error:
            self.link.close()
            raise IsolationError(f"the process that decodes files cannot be started: {error}") from error
        self._wait_until_ready()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def end(self, patience: float = 0.0) -> int:
        """End the process; return its exit code, or the negative number of the signal that ended it.

        A process that is ending by itself gets `patience` seconds, so that its exit code shows the cause.
        """
        self.link.close()
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def forget(self) -> None:
        """Release the worker in a forked process, since it belongs to the parent."""
        self.link.close()
        self._process.returncode = 0

    def _wait_until_ready(self) -> None:
        assert self._process.stderr is not None
        self.link.settimeout(_START_SECONDS)
        with self._process.stderr as errors:
            try:
                ready = self.link.recv(1) == READY
            except OSError:
                ready = False
            if not ready:
                self._process.kill()
                message = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
                self.end()
                raise IsolationError(
                    f"the process that decodes files does not start: {message or 'it ended'}"
                )


class Pool:
    """The children of this process; each serves one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()

    def take(self) -> Worker:
        """Return an idle child, or a new one; `IsolationError` if none can be started."""
        while True:
            with self._lock:
                if not self._idle:
                    break
                worker = self._idle.pop()
            if worker.alive:
                return worker
            self.discard(worker)
        worker = Worker()
        with self._lock:
            self._all.add(worker)
        return worker

    def give(self, worker: Worker) -> None:
        """Return a healthy child to the pool."""
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(worker)
                return
        self.discard(worker)

    def discard(self, worker: Worker, patience: float = 0.0) -> int:
        """End a child that must not be used again, and return its exit code as `Worker.end` does."""
        with self._lock:
            self._all.discard(worker)
        return worker.end(patience)

    def close(self) -> None:
        """End all children; the next file starts new ones."""
        with self._lock:
            workers = list(self._all)
            self._idle.clear()
            self._all.clear()
        for worker in workers:
            worker.end()

    def forget(self) -> None:
        """Empty the pool in a forked process, whose copies of the sockets would keep the children alive."""
        workers = self._all
        self._lock, self._idle, self._all = threading.Lock(), [], set()
        for worker in workers:
            worker.forget()


def _environment() -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT_PREFIXES)}
    return {**variables, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


POOL = Pool()
atexit.register(POOL.close)
os.register_at_fork(after_in_child=POOL.forget)
