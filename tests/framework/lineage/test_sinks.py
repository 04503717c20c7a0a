"""Sinks of lineage: delivery in order after the warehouse, with retries, without delay for others."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from lockgate.errors import RecordsRefusedError
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.sinks import Sinks, process_sinks
from lockgate.framework.lineage.warehouse_lineage import address_of, lineage_of
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.store import Catalog

RECORD = Record(Shape("INSERT", Dataset.table("hr", "copy"), (), columns=("x",)), Run(1, 2))


class Keeps:
    """A sink that fails `fails` times before it accepts records."""

    def __init__(self, fails: int = 0) -> None:
        self.fails = fails
        self.taken: list[tuple[str, Record]] = []

    def write(self, warehouse: str, records: Sequence[Record]) -> None:
        if self.fails:
            self.fails -= 1
            raise ConnectionError("nobody listens")
        self.taken += [(warehouse, record) for record in records]


def test_a_sink_receives_the_records_of_the_warehouse(tmp_path: Path) -> None:
    keeps = Keeps()
    hook = hookimpl(lambda: {"keeps": keeps}, specname="lockgate_lineage_sinks")
    plugins().register(SimpleNamespace(lockgate_lineage_sinks=hook), "keeps")
    try:
        catalog = Catalog(str(tmp_path / "lake"))
        journal = lineage_of(catalog).journal
        journal.add(RECORD)
        assert not keeps.taken
        assert journal.flush()
        sinks = process_sinks()
        assert sinks is not None
        assert sinks.flush(10)
        assert keeps.taken == [(address_of(catalog), RECORD)]
    finally:
        plugins().unregister("keeps")


def test_a_failing_sink_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    fails, other = Keeps(fails=2), Keeps()
    sinks = Sinks({"fails": fails, "other": other}, waits=(0.0, 0.0))
    sinks.offer("w", [RECORD])
    assert sinks.flush(10)
    assert fails.taken == other.taken == [("w", RECORD)]
    assert (sinks.delivered, sinks.dropped) == (2, 0)
    fails.fails = 7
    for _ in range(3):
        sinks.offer("w", [RECORD])
        assert sinks.flush(10)
    assert (len(fails.taken), len(other.taken), sinks.dropped) == (2, 4, 2)
    assert caplog.text.count("nobody listens") == 2, "once until it takes records again"


def test_a_slow_sink_delays_no_other() -> None:
    held, quick = threading.Event(), Keeps()
    sinks = Sinks({"slow": SimpleNamespace(write=lambda *_: held.wait(30)), "quick": quick})
    for _ in range(3):
        sinks.offer("w", [RECORD])
    assert sinks._queues["quick", "w"].flush(30)
    assert len(quick.taken) == 3
    assert not sinks.flush(0.01)
    held.set()
    assert sinks.flush(30)
    assert (sinks.delivered, sinks.dropped) == (6, 0)


def test_a_full_queue_drops_and_never_waits() -> None:
    held = threading.Event()
    sinks = Sinks({"slow": SimpleNamespace(write=lambda *_: held.wait(10))}, capacity=2)
    for _ in range(10):
        sinks.offer("w", [RECORD, RECORD])
    assert sinks.dropped >= 14
    assert not sinks.flush(0.05)
    held.set()
    assert sinks.flush(10)


def test_a_refused_record_does_not_block_others(caplog: pytest.LogCaptureFixture) -> None:
    refused = Record(Shape("DELETE", Dataset.table("hr", "copy"), ()), Run(1, 2))

    class Picky(Keeps):
        def write(self, warehouse: str, records: Sequence[Record]) -> None:
            if refused in records:
                raise RecordsRefusedError("status 400")
            super().write(warehouse, records)

    picky = Picky()
    # A wait would never end: what is refused for good is not tried again.
    sinks = Sinks({"picky": picky}, waits=(1e9,))
    sinks.offer("w", [RECORD, refused, RECORD])
    assert sinks.flush(10)
    assert picky.taken == [("w", RECORD), ("w", RECORD)]
    assert (sinks.delivered, sinks.dropped) == (2, 1)
    assert "refuses 1 records" in caplog.text
