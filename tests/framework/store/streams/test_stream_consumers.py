"""Consumers of running streams: noted, kept, renewed, and left alone once a query has stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lockgate.errors import InputError
from lockgate.framework.store import Table
from lockgate.framework.store.streams.stream_consumers import StreamConsumers

MakeTable = Callable[..., Table]


@pytest.fixture
def streams() -> StreamConsumers:
    return StreamConsumers(renewal_seconds=3600)


def test_progress_is_noted_in_the_table(make_table: MakeTable, streams: StreamConsumers) -> None:
    table = make_table()
    streams.record("q", table, "stream-q", 3)
    streams.record("other", table, "stream-other", 1)
    streams.keep("q", table, "stream-q", 2)  # it has read more
    assert table.consumers() == {"stream-q": 3, "stream-other": 1}
    streams.record("q", table, "stream-q", 4)
    assert table.consumers()["stream-q"] == 4
    with pytest.raises(InputError, match="cannot be a consumer id"):
        streams.record("q", table, "../../orders", 1)


def test_a_consumer_that_somebody_removed_comes_back_while_its_query_runs(
    make_table: MakeTable, streams: StreamConsumers
) -> None:
    table = make_table()
    streams.record("q", table, "stream-q", 3)
    table.delete_consumer("stream-q")
    table.record_consumer("mine", 9)
    streams.renew()
    assert table.consumers() == {"stream-q": 3, "mine": 9}
    streams.forget("q")
    assert streams.names() == []
    table.delete_consumer("stream-q")
    streams.renew()
    assert table.consumers() == {"mine": 9}


def test_a_full_disk_does_not_keep_others_from_being_renewed(
    make_table: MakeTable, streams: StreamConsumers, caplog: pytest.LogCaptureFixture
) -> None:
    broken, table = make_table("broken"), make_table("t")
    for each in (broken, table):
        streams.record("q", each, "stream-q", 1)
    table.delete_consumer("stream-q")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broken.consumer_files, "record", _fail)
        streams.renew()
    assert table.consumers() == {"stream-q": 1}
    assert "was not renewed" in caplog.text


def _fail(*_: object) -> None:
    raise OSError("no space left on device")


def test_a_thread_renews_as_often_as_the_tables_option_asks(make_table: MakeTable) -> None:
    table = make_table(**{"consumer.expiration__time": "150 ms"})
    streams = StreamConsumers()
    streams.record("q", table, "stream-q", 1)
    table.record_consumer("idle", 1)
    renewed, idle = (Path(table.location, "consumer", f"consumer-{name}") for name in ("stream-q", "idle"))
    for path in (renewed, idle):
        os.utime(path, (1, 1))
    # Without the option it would be renewed after 20 s.
    deadline = time.monotonic() + 15
    while renewed.stat().st_mtime == 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert idle.stat().st_mtime == 1
    streams.forget("q")
