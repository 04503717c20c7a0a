"""Journal of a process: records that wait to be written as segments, with the batches of a stream folded into
one.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockgate.framework.lineage.model.lineage_records import Record, Run, Shape, folded
from lockgate.framework.lineage.store.lineage_segments import Segments

# With the second that the connector collects them, 10 at most.
FLUSH_SECONDS = 9.0
FLUSH_RECORDS = 500
# Runs of one shape that keep their details between two flushes; of a stream only the first and the last.
_DETAILS = 100
# Shapes that wait while a store cannot be reached; the oldest go first.
_MOST_WAITING = 20_000

_log = logging.getLogger("lockgate.lineage")


@dataclass
class _PendingRuns:
    shape: Shape
    runs: list[Run] = field(default_factory=list)

    def add(self, run: Run) -> None:
        keeps = 2 if self.shape.kind == "STREAM" else _DETAILS
        if len(self.runs) >= keeps:
            self.runs[-1] = folded(self.runs[-1], run)
        else:
            self.runs.append(run)


class Journal:
    """Collects the records of this process for one warehouse and writes them now and then.

    Safe to use from several threads. What cannot be written is kept and tried again.
    """

    def __init__(self, segments: Segments, application: str = "python") -> None:
        self._segments = segments
        self._application = application
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[str, _PendingRuns] = {}
        self._noted = 0
        self._timer: threading.Timer | None = None
        self._complained = False
        self.recorded = 0
        self.lost = 0
        # Told of what is written, after it is.
        self.written: Callable[[Sequence[Record]], None] | None = None
        atexit.register(self.close)

    def add(self, record: Record) -> None:
        """Note a record; it is in the warehouse after the next flush, 10 seconds later at most."""
        with self._lock:
            self._put(record.shape, [record.run])
            self.recorded += record.run.count
            self._noted += 1
            full = self._noted >= FLUSH_RECORDS
            if not full and self._timer is None:
                self._timer = threading.Timer(FLUSH_SECONDS, self.flush)
                self._timer.daemon = True
                self._timer.start()
        if full:
            self.flush()

    def flush(self) -> bool:
        """Write what waits as one segment; False if that failed, which is logged once."""
        with self._writing:
            with self._lock:
                taken, self._waiting, self._noted = self._waiting, {}, 0
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
            return not taken or self._write(taken)

    def close(self) -> None:
        """Write the rest before the process ends."""
        self.flush()

    def waiting(self) -> int:
        """Return how many shapes wait to be written."""
        with self._lock:
            return len(self._waiting)

    def lines(self) -> list[dict[str, Any]]:
        """Return what waits as lines of a segment, without writing it."""
        with self._writing, self._lock:
            return lines_of((each.shape, list(each.runs)) for each in self._waiting.values())

    def _write(self, taken: dict[str, _PendingRuns]) -> bool:
        try:
            self._segments.write(
                lines_of((each.shape, each.runs) for each in taken.values()), self._application
            )
        except Exception as error:  # of any store; the query that is described here has ended long ago
            self._keep(taken)
            if not self._complained:
                self._complained = True
                _log.warning(
                    "lineage cannot be written to %s (%s: %s): Lockgate keeps it and retries",
                    *(self._segments.folder, type(error).__name__, error),
                )
            return False
        self._complained = False
        if self.written is not None:
            self.written([Record(each.shape, run) for each in taken.values() for run in each.runs])
        return True

    def _keep(self, taken: dict[str, _PendingRuns]) -> None:
        with self._lock:
            newer, self._waiting = self._waiting, taken
            for each in newer.values():
                self._put(each.shape, each.runs)
            while len(self._waiting) > _MOST_WAITING:
                oldest = self._waiting.pop(next(iter(self._waiting)))
                self.lost += sum(run.count for run in oldest.runs)

    def _put(self, shape: Shape, runs: Iterable[Run]) -> None:
        waiting = self._waiting.setdefault(shape.hash, _PendingRuns(shape))
        for run in runs:
            waiting.add(run)


def lines_of(found: Iterable[tuple[Shape, Iterable[Run]]]) -> list[dict[str, Any]]:
    """Return the lines of a segment: one for each shape, with its runs."""
    return [
        {"hash": shape.hash, "shape": shape.to_json(), "runs": [run.to_json() for run in runs]}
        for shape, runs in found
    ]


def now_millis() -> int:
    """Return the time in milliseconds since the epoch."""
    return int(time.time() * 1000)
