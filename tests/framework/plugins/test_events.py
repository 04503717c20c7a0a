"""Events reach observers in order and later; no error or delay of an observer reaches a publisher."""

from __future__ import annotations

import logging
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate import procedures
from lockgate.framework.plugins import (
    Event,
    KeyUnwrapped,
    PluginManager,
    ProcedureCalled,
    RowsCommitted,
    ScanPlanned,
    TableChanged,
    hookimpl,
    plugins,
)
from lockgate.framework.plugins.observers import EventQueues
from lockgate.framework.store import Catalog
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.schema.schema import Schema


def observer(seen: Any) -> types.SimpleNamespace:
    @hookimpl
    def lockgate_event(event: Event) -> None:
        seen(event)

    return types.SimpleNamespace(lockgate_event=lockgate_event)


def numbered_event(number: int) -> KeyUnwrapped:
    return KeyUnwrapped(user="ada", key="k", version=number, granted=True)


@pytest.fixture
def events() -> Iterator[list[Event]]:
    """The events that an observer of this process receives."""
    seen: list[Event] = []
    plugins().register(observer(seen.append), "observer")
    yield seen
    plugins().unregister("observer")


def test_events_arrive_in_order_on_another_thread() -> None:
    manager = PluginManager()
    seen: list[tuple[Event, str]] = []
    manager.register(observer(lambda event: seen.append((event, threading.current_thread().name))), "one")
    for number in range(100):
        manager.event(numbered_event(number))
    assert manager.events.flush()
    assert [event.version for event, _ in seen] == list(range(100))  # type: ignore[attr-defined]  # the events have one class here
    assert {name for _, name in seen} == {"lockgate observer 'one'"}
    assert manager.events.counts().delivered == 100


def test_nothing_starts_without_an_observer() -> None:
    manager = PluginManager()
    manager.event(numbered_event(1))
    assert manager.events.counts().delivered == 0
    assert manager.events._queues == {}


def test_a_failing_observer_stops_neither_the_others_nor_the_publisher(
    caplog: pytest.LogCaptureFixture,
) -> None:
    manager = PluginManager()
    seen: list[Event] = []

    def fail(event: Event) -> None:
        raise OSError("no space")

    manager.register(observer(fail), "broken")
    manager.register(observer(seen.append), "good")
    with caplog.at_level(logging.WARNING, "lockgate.events"):
        manager.event(numbered_event(1))
        manager.event(numbered_event(2))
        assert manager.events.flush()
    assert len(seen) == 2
    assert manager.events.counts().failed == 2
    assert [record.getMessage() for record in caplog.records] == [
        "plugin 'broken' failed to observe KeyUnwrapped: OSError: no space; later failures are only counted"
    ]


def test_a_slow_observer_drops_its_own_events_and_delays_nobody() -> None:
    gate, entered = threading.Event(), threading.Event()
    seen: list[Event] = []

    def observe(name: str, event: Event) -> list[tuple[str, BaseException]]:
        if name == "slow":
            entered.set()
            gate.wait(30)
        else:
            seen.append(event)
        return []

    queues = EventQueues(observe, capacity=3)
    queues.publish(numbered_event(0), ["slow", "quick"])
    assert entered.wait(30)
    for number in range(1, 20):
        queues.publish(numbered_event(number), ["slow"])
    queues.publish(numbered_event(1), ["slow", "quick"])
    assert queues._queues["quick"].flush(30)
    assert [event.version for event in seen] == [0, 1]  # type: ignore[attr-defined]  # the events have one class here
    assert queues.flush(0.05) is False
    gate.set()
    assert queues.flush()
    counts = queues.counts()
    assert (counts.delivered, counts.dropped) == (6, 17)


def test_wrappers_run_for_each_observer_and_not_after_removal() -> None:
    manager = PluginManager()
    seen: list[str] = []

    @hookimpl(wrapper=True)
    def lockgate_event(event: Event) -> Iterator[None]:
        seen.append("before")
        yield
        seen.append("after")

    manager.register(types.SimpleNamespace(lockgate_event=lockgate_event), "wrapper")
    manager.event(numbered_event(0))
    assert manager.events.flush()
    assert seen == [], "there is no observer"
    manager.register(observer(lambda event: seen.append("observed")), "one")
    manager.event(numbered_event(1))
    assert manager.events.flush()
    assert seen == ["before", "observed", "after"]
    manager.unregister("one")
    manager.event(numbered_event(2))
    assert manager.events.flush()
    assert len(seen) == 3


def test_events_of_a_table(tmp_path: Path, events: list[Event]) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("d")
    table = catalog.create_table(
        "d.t", Schema.from_arrow(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    )
    table.append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    table.read(columns=["id"])
    catalog.alter_table("d.t", [SetOption("snapshot.num-retained.max", "7")])
    catalog.rename_table("d.t", "d.u")
    catalog.drop_table("d.u")
    assert plugins().events.flush()
    created, committed, scanned, altered, renamed, dropped = events
    assert isinstance(created, TableChanged)
    assert (created.table, created.change, created.schema_id) == (table.location, "created", 0)
    assert isinstance(committed, RowsCommitted)
    assert (committed.snapshot_id, committed.rows, committed.kind) == (1, 2, "APPEND")
    assert isinstance(scanned, ScanPlanned)
    assert (scanned.snapshot_id, scanned.columns, scanned.files) == (1, ("id",), 1)
    assert isinstance(altered, TableChanged)
    assert (altered.change, altered.schema_id) == ("altered", 1)
    assert isinstance(renamed, TableChanged)
    assert (renamed.change, renamed.table) == ("renamed", table.location[:-1] + "u")
    assert isinstance(dropped, TableChanged)
    assert dropped.change == "dropped"


def test_events_of_a_replaced_table(tmp_path: Path, events: list[Event]) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("d")
    catalog.create_table("d.t", Schema.from_arrow(pa.schema([("id", pa.int64())])))
    replacement = catalog.replace_table("d.t", Schema.from_arrow(pa.schema([("name", pa.string())])))
    replacement.hold(replacement.write(pa.table({"name": ["a"]})))
    replacement.publish()
    assert plugins().events.flush()
    assert [type(event).__name__ for event in events] == ["TableChanged", "RowsCommitted", "TableChanged"]
    assert events[-1].change == "replaced"  # type: ignore[attr-defined]  # the events have one class here


def test_events_of_a_procedure(tmp_path: Path, events: list[Event]) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("d")
    catalog.create_table("d.t", Schema.from_arrow(pa.schema([("id", pa.int64())])))
    context = procedures.ProcedureContext(catalog)
    procedures.call(context, "compact", table="d.t", dry_run=True)
    with pytest.raises(LookupError):
        procedures.call(context, "compact", table="d.other")
    assert plugins().events.flush()
    good, bad = (event for event in events if isinstance(event, ProcedureCalled))
    assert (good.procedure, good.table, good.dry_run, good.error) == ("compact", "d.t", True, None)
    assert (bad.error, bad.dry_run) == ("TableNotFoundError", False)
    assert "table" in good.arguments
