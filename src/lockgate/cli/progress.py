"""A progress bar on standard error, for commands that take longer than a second."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from lockgate.framework.orc import Source

if TYPE_CHECKING:
    from lockgate.framework.orc.format.stripe import Stripe

_FIRST_SECONDS = 1.0
_BETWEEN_SECONDS = 0.1
_WIDTH = 30


class Progress:
    """Shows how much is done; nothing in the first second, and nothing without a terminal.

    `show` may be called from any thread, as often as needed.
    """

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self._label = "".join(each if each.isprintable() else "?" for each in label)
        self._stream = sys.stderr if stream is None else stream
        self._state = (0, 1)
        self._started = time.monotonic()
        self._drawn = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True) if self._stream.isatty() else None

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def show(self, done: int, total: int) -> None:
        """Tell how much is done, of what there is to do."""
        self._state = (done, total)

    def draw(self) -> None:
        """Draw the bar as it is now, if it is time for one."""
        seconds = time.monotonic() - self._started
        if seconds < _FIRST_SECONDS:
            return
        done, total = self._state
        line = self._line(min(done / max(total, 1), 1.0), seconds)
        if line != self._drawn:
            self._drawn = line
            self._stream.write(f"\r{line}\x1b[K")
            self._stream.flush()

    def _run(self) -> None:
        # By a thread of its own, since who does the work may be silent for long.
        while not self._ended.wait(_BETWEEN_SECONDS):
            self.draw()

    def _line(self, share: float, seconds: float) -> str:
        filled = int(share * _WIDTH)
        left = f", {_clock(seconds / share - seconds)} left" if share > 0 else ""
        line = f"{self._label} [{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}{left}"
        return line[: shutil.get_terminal_size().columns - 1]


class WatchedSource(Source):
    """A source that reports how many of its bytes were read, and how many there are."""

    def __init__(self, source: Source, listener: Callable[[int, int], object]) -> None:
        self._source = source
        self._listener = listener
        self._done = 0
        self._lock = threading.Lock()
        self.name = source.name
        self.size = source.size
        self.free = source.free

    def read_at(self, offset: int, length: int) -> memoryview:
        data = self._source.read_at(offset, length)
        self._count(length)
        return data

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        data = self._source.read_ranges(ranges)
        self._count(sum(length for _, length in ranges))
        return data

    def expect_tail(self, length: int) -> None:
        self._source.expect_tail(length)

    def describe_stripe(self, stripe: Stripe) -> None:
        self._source.describe_stripe(stripe)

    def close(self) -> None:
        self._source.close()

    def _count(self, length: int) -> None:
        with self._lock:
            self._done += length
        self._listener(self._done, self.size)


@contextmanager
def watched(path: str, verb: str) -> Iterator[Source | str]:
    """Give the file at `path`, to be read once, while a progress bar shows how far it is.

    Without a terminal it is the path itself, which costs nothing.
    """
    if not sys.stderr.isatty():
        yield path
        return
    from lockgate.framework.orc import open_source

    source = open_source(path)
    try:
        with Progress(f"{verb} {path}") as progress:
            yield WatchedSource(source, progress.show)
    finally:
        source.close()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
