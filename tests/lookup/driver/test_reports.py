"""The line that a batch gets in the log, and what is known of the last one."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from lockgate.lookup.driver.reports import Reports
from lockgate.lookup.spec.status import BatchReport


def test_each_batch_has_a_line_once_its_tasks_are_done(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lockgate.lookup")
    reports = Reports()
    counter: Any = SimpleNamespace(value={})
    reports._counter = counter
    first = reports.planned(
        "cache", BatchReport("db.dim", "query", 7, 3, 120, 3312, 402132, 0.021, failures=2)
    )
    second = reports.planned("cache", BatchReport("db.dim", None, None, 4, 0, 3312, 402132, 0.021))
    counter.value = {first: (10_000, 8_430, 30, 41_000_000)}
    reports.tell(quiet_seconds=60)
    assert caplog.messages == []
    reports.tell(quiet_seconds=0)
    assert caplog.messages == [
        "db.dim: batch 7 asked for 10000 rows, 84.3% matched (30 by a retry), snapshot 3 (120 ms behind), "
        "0.041 s in the workers; cache: 3312 rows, 402132 bytes, built in 0.021 s; "
        "the last 2 refreshes failed"
    ]
    reports.tell(quiet_seconds=0)
    assert len(caplog.messages) == 1
    counter.value[second] = (4, 4, 0, 1_000_000)
    last = reports.last("cache")
    assert last is not None
    assert (last.rows, last.matched, last.hit_rate, last.snapshot_id) == (4, 4, 1.0, 4)
    reports.tell(quiet_seconds=0)
    assert caplog.messages[1].startswith("db.dim: a batch asked for 4 rows, 100.0% matched, snapshot 4 (0 ms")
