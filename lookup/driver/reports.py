"""Counts of rows looked up and found per batch: counted in the workers, reported by the driver.

Spark's accumulators bring the counts, task by task, under a number (`token`) that the driver gave the batch
when it was planned. Once no task counts for a batch any longer, it gets its line in the log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lockgate.lookup.spec.status import BatchReport

if TYPE_CHECKING:
    from lockgate.lookup.driver.batch_counts import Counter
    from lockgate.lookup.spec.status import LookupStatus

_log = logging.getLogger("lockgate.lookup")

# The log takes a batch as over when nothing was counted for this time.
_QUIET_SECONDS = 1.0
# A batch without counts for this time has ended, in whatever way.
_ENDED_SECONDS = 3600.0
# Tokens are less than this, and never 0.
_TOKENS = 1 << 22
# Batches remembered, of all lookups together.
_MOST_BATCHES = 512


def report_of(
    status: LookupStatus, query_id: str | None, batch_id: int | None, snapshot_id: int
) -> BatchReport:
    """Begin the report of a batch, with the present status of its lookup."""
    return BatchReport(
        status.table,
        query_id,
        batch_id,
        snapshot_id,
        status.lag_millis,
        status.rows,
        status.bytes,
        status.build_seconds,
        failures=status.failures,
    )


@dataclass
class _ReportedBatch:
    lookup_id: str
    report: BatchReport
    changed_at: float
    told_rows: int = 0


class Reports:
    """The batches of this driver; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0
        self._batches: OrderedDict[int, _ReportedBatch] = OrderedDict()
        self._last: dict[str, BatchReport] = {}
        self._counter: Counter | None = None
        self._context: Any = None
        self._work = threading.Event()
        self._thread: threading.Thread | None = None

    def planned(self, lookup_id: str, report: BatchReport) -> int:
        """Note a batch that is about to run; returns the token under which its tasks count."""
        with self._lock:
            self._next = self._next % (_TOKENS - 1) + 1
            token = self._next
            self._batches[token] = _ReportedBatch(lookup_id, report, time.monotonic())
            while len(self._batches) > _MOST_BATCHES:
                self._batches.popitem(last=False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lockgate-reports", daemon=True)
                self._thread.start()
        self._work.set()
        return token

    def counter(self, context: Any) -> Counter:
        """Return the counter of a SparkContext, made when it is first asked for."""
        from lockgate.lookup.driver.batch_counts import make_counter

        with self._lock:
            if self._context is not context:
                self._context, self._counter = context, make_counter(context)
            assert self._counter is not None
            return self._counter

    def last(self, lookup_id: str) -> BatchReport | None:
        """Return the newest batch with rows of a lookup, as far as its tasks have counted."""
        self.collect()
        with self._lock:
            return self._last.get(lookup_id)

    def collect(self) -> None:
        """Collect the tasks' new counts, and pass them to the lookups."""
        if self._counter is None:
            return
        from lockgate.lookup.driver.batch_counts import counts_in_jvm, counts_of
        from lockgate.lookup.driver.lookup_registry import lookups_of

        deltas: list[tuple[str, int, int]] = []
        counts = counts_in_jvm(self._context)
        if counts:
            self._counter.add(counts)
        with self._lock:
            counted = counts_of(self._counter, set(self._batches))
            for token, (rows, matched, retried, nanos) in counted.items():
                batch = self._batches[token]
                if rows == batch.report.rows:
                    continue
                before = batch.report
                batch.report = replace(
                    before, rows=rows, matched=matched, retried=retried, seconds=nanos / 1e9
                )
                batch.changed_at = time.monotonic()
                deltas.append((batch.lookup_id, rows - before.rows, matched - before.matched))
                self._last[batch.lookup_id] = batch.report
        for lookup_id, rows, matched in deltas:
            for lookup in lookups_of(lookup_id):
                lookup.note_answers(rows, matched)

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
