"""What batches asked of the caches and what they found: counted in the workers, told by the driver.

Spark's accumulators bring the counts, task by task, under a number (`token`) that the driver gave the batch
when it was planned. A batch that no task counts for any more gets its line in the log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lockgate.lookup.counting import TOKENS, counts_of, make_counter

if TYPE_CHECKING:
    from lockgate.lookup.counting import Counter
    from lockgate.lookup.standing import LookupStatus

_log = logging.getLogger("lockgate.lookup")

# A batch is over, for the log, when nothing was counted for so long.
_QUIET_SECONDS = 1.0
# A batch that nothing was counted for in so long has ended, whatever became of it.
_ENDED_SECONDS = 3600.0
# Batches remembered, of all lookups together.
_MOST_BATCHES = 512


@dataclass(frozen=True)
class BatchReport:
    """One batch as far as it has run.

    `rows` were asked for and `matched` of them have a match, `retried` of these only after a retry; `seconds`
    is the time that all workers together spent looking up. `lag_millis` is how long the newest snapshot had
    been waiting when the batch was planned. Without a stream `query_id` and `batch_id` are None.
    """

    table: str
    query_id: str | None
    batch_id: int | None
    snapshot_id: int
    lag_millis: int
    cache_rows: int
    cache_bytes: int
    build_seconds: float
    rows: int = 0
    matched: int = 0
    retried: int = 0
    seconds: float = 0.0

    @property
    def hit_rate(self) -> float:
        """The share of the rows that have a match; 0 of none."""
        return self.matched / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        which = "a batch" if self.batch_id is None else f"batch {self.batch_id}"
        retried = f" ({self.retried} by a retry)" if self.retried else ""
        speed = f"{self.seconds:.3f} s in the workers"
        return (
            f"{self.table}: {which} asked for {self.rows} rows, {self.hit_rate:.1%} matched{retried}, "
            f"snapshot {self.snapshot_id} ({self.lag_millis} ms behind), {speed}; "
            f"cache: {self.cache_rows} rows, {self.cache_bytes} bytes, built in {self.build_seconds:.3f} s"
        )


def report_of(
    status: LookupStatus, query_id: str | None, batch_id: int | None, snapshot_id: int
) -> BatchReport:
    """Begin the report of a batch that is to be answered by a lookup as it stands."""
    return BatchReport(
        status.table,
        query_id,
        batch_id,
        snapshot_id,
        status.lag_millis,
        status.rows,
        status.bytes,
        status.build_seconds,
    )


@dataclass
class _Known:
    lookup_id: str
    report: BatchReport
    changed_at: float
    told_rows: int = 0


@dataclass(frozen=True)
class Totals:
    """What all batches of one lookup asked for in this driver, and its newest batch that asked anything."""

    batches: int = 0
    rows: int = 0
    matched: int = 0
    last: BatchReport | None = None


class Reports:
    """The batches of this driver; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0
        self._batches: OrderedDict[int, _Known] = OrderedDict()
        self._totals: dict[str, Totals] = {}
        self._counter: Counter | None = None
        self._context: Any = None
        self._work = threading.Event()
        self._thread: threading.Thread | None = None

    def planned(self, lookup_id: str, report: BatchReport) -> int:
        """Note a batch that is about to run; returns the token under which its tasks count."""
        with self._lock:
            self._next = self._next % (TOKENS - 1) + 1
            token = self._next
            self._batches[token] = _Known(lookup_id, report, time.monotonic())
            while len(self._batches) > _MOST_BATCHES:
                self._batches.popitem(last=False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lockgate-reports", daemon=True)
                self._thread.start()
        self._work.set()
        return token

    def counter(self, context: Any) -> Counter:
        """The counter of a SparkContext, made when it is first asked for."""
        with self._lock:
            if self._context is not context:
                self._context, self._counter = context, make_counter(context)
            assert self._counter is not None
            return self._counter

    def of(self, lookup_id: str) -> Totals:
        """What the batches of a lookup asked for, up to this moment."""
        self.collect()
        with self._lock:
            return self._totals.get(lookup_id, Totals())

    def collect(self) -> None:
        """Take over what the tasks have counted since."""
        with self._lock:
            counted = {} if self._counter is None else counts_of(self._counter, set(self._batches))
            for token, (rows, matched, retried, nanos) in counted.items():
                known = self._batches[token]
                if rows == known.report.rows:
                    continue
                before = known.report
                known.report = replace(
                    before, rows=rows, matched=matched, retried=retried, seconds=nanos / 1e9
                )
                known.changed_at = time.monotonic()
                totals = self._totals.get(known.lookup_id, Totals())
                self._totals[known.lookup_id] = Totals(
                    totals.batches + (before.rows == 0),
                    totals.rows + rows - before.rows,
                    totals.matched + matched - before.matched,
                    known.report,
                )

    # --- the log -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._work.wait()
            time.sleep(_QUIET_SECONDS / 2)
            self.tell()

    def tell(self, quiet_seconds: float = _QUIET_SECONDS) -> None:
        """Write the line of each batch for which nothing was counted for so long."""
        self.collect()
        now = time.monotonic()
        with self._lock:
            ready = [
                each
                for each in self._batches.values()
                if each.report.rows != each.told_rows and each.changed_at <= now - quiet_seconds
            ]
            for each in ready:
                each.told_rows = each.report.rows
            if all(each.changed_at < now - _ENDED_SECONDS for each in self._batches.values()):
                self._work.clear()
        for each in ready:
            _log.info("%s", each.report)


REPORTS = Reports()
