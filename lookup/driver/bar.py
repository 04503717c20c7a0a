"""A bar on standard error while a batch waits for its cache to be loaded."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_FIRST_SECONDS = 1.0
_WIDTH = 30


class LoadBar:
    """Shows rows done and expected: nothing in the first second, nothing without a viewer.

    Standard error counts as viewed if it is a terminal, or a notebook's, which understands carriage
    returns as well.
    """

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._seen = self._stream.isatty() or type(self._stream).__module__.startswith("ipykernel.")
        self._started = time.monotonic()
        self._width = 0

    def close(self) -> None:
        """Wipe the bar away."""
        if self._width:
            self._write("")

    def show(self, done: int | None, expected: int | None) -> None:
        """Draw the bar; `done` is None while nothing is loaded, `expected` while that is unknown."""
        if not self._seen or done is None or time.monotonic() - self._started < _FIRST_SECONDS:
            return
        if not expected:
            self._write(f"{self._label}: {done} rows")
            return
        share = min(done / expected, 1.0)
        filled = int(share * _WIDTH)
        bar = "#" * filled + "." * (_WIDTH - filled)
        self._write(f"{self._label} [{bar}] {share:4.0%} of {expected} rows")

    def _write(self, line: str) -> None:
        # Blanks over the old text: notebooks know no other way to erase it.
        self._stream.write(f"\r{line.ljust(self._width)}" + ("" if line else "\r"))
        self._stream.flush()
        self._width = len(line)
