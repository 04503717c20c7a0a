"""Writes as the connector asks for them, without Spark."""

from __future__ import annotations

import base64
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from messages import declared, request

from lockgate.errors import CommitConflictError, InputError, TableNotFoundError, UnsupportedError
from lockgate.framework.plugins import Event, StreamProgressed, hookimpl, plugins
from lockgate.framework.spark.bridge.dispatcher import Dispatcher
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.write import write_session

SCHEMA = Schema.from_arrow(pa.schema([("id", pa.int64()), ("v", pa.string())]))
FIELDS = [{"name": "id", "type": "long"}, {"name": "v", "type": "string"}]


def opened(dispatcher: Dispatcher, folder: Path) -> tuple[Catalog, dict[str, Any]]:
    """A warehouse and what every request about the table `db.t` of it holds."""
    warehouse = str(folder / "warehouse")
    opening = {"catalog": "lake", "options": {"warehouse": warehouse}}
    handle = dispatcher.answer("catalog.open", request("catalog.open", opening))
    assert isinstance(handle, dict)
    catalog = Catalog(warehouse)
    catalog.create_namespace("db")
    named = {"catalog": handle["handle"], "namespace": ["db"], "name": "t", "mode": "append"}
    return catalog, {**named, "query_id": "q"}


def ask(dispatcher: Dispatcher, operation: str, about: dict[str, Any]) -> Any:
    return dispatcher.answer(operation, declared(operation, about))


def test_a_key_of_coarse_times_is_refused(tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    catalog, about = opened(dispatcher, tmp_path)
    columns = pa.schema([("at", pa.timestamp("ms")), ("v", pa.string())])
    catalog.create_table("db.t", Schema.from_arrow(columns, primary_keys=("at",)))
    about["schema"] = {"fields": [{"name": "at", "type": "timestamp_ntz"}, FIELDS[1]]}
    with pytest.raises(UnsupportedError, match="key column 'at' is a TIMESTAMP"):
        ask(dispatcher, "write.begin", about)


def test_a_write_is_not_committed_to_another_table_of_the_same_name(tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    catalog, about = opened(dispatcher, tmp_path)
    catalog.create_table("db.t", SCHEMA)
    about["schema"] = {"fields": FIELDS}
    begun = ask(dispatcher, "write.begin", about)
    assert isinstance(begun, dict)
    catalog.drop_table("db.t")
    time.sleep(0.002)
    catalog.create_table("db.t", SCHEMA)
    file = {"name": "data-gone-0.orc", "size": 1, "rows": 1}
    message = {"bucket": 0, "total_buckets": -1, "file": file}
    end = {**about, "write_id": begun["write_id"], "epoch": None, "messages": [message]}
    with pytest.raises(CommitConflictError, match="created again"):
        ask(dispatcher, "write.commit", end)
    assert catalog.load_table("db.t").latest_snapshot() is None
    assert ask(dispatcher, "write.abort", end) is True
    assert not dispatcher.writes


def test_tasks_name_the_folders_of_partitions_as_the_table_does(tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    catalog, about = opened(dispatcher, tmp_path)
    options = {"partition.default-name": "nothing", "partition.legacy-name": "false"}
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    catalog.create_table("db.t", Schema.from_arrow(columns, partition_keys=("v",), options=options))
    begun = ask(dispatcher, "write.begin", {**about, "schema": {"fields": FIELDS}})
    assert isinstance(begun, dict)
    assert (begun["partition_default_name"], begun["partition_legacy_name"]) == ("nothing", False)


def test_statistics_that_the_options_leave_out_are_not_kept(tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    catalog, about = opened(dispatcher, tmp_path)
    options = {"metadata.stats-mode": "none", "fields.id.stats-mode": "counts"}
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("db.t", Schema.from_arrow(columns, options=options))
    begun = ask(dispatcher, "write.begin", {**about, "schema": {"fields": FIELDS}})
    assert isinstance(begun, dict)
    stats = {
        "id": {"min": 7, "max": 7, "nulls": 1},
        "v": {"min": "hush", "max": "hush", "nulls": 0},
    }
    message = {
        "bucket": 0,
        "total_buckets": -1,
        "file": {"name": "a.orc", "size": 1, "rows": 2, "stats": stats},
    }
    end = {**about, "write_id": begun["write_id"], "epoch": None, "messages": [message]}
    ask(dispatcher, "write.commit", end)
    (entry,) = table.manifests.live_files(table.latest_snapshot())
    assert entry.file.value_stats_cols == ("id",)
    kept = entry.file.value_stats
    assert (kept.min, kept.max, kept.null_counts) == ((None,), (None,), (1,))


def numbers(*values: int) -> str:
    return base64.b64encode(np.array(values, ">i4").tobytes()).decode()


def test_tasks_get_buckets_of_the_driver(tmp_path: Path) -> None:
    """All tasks of a write get one answer for a key, and only buckets that were given can be committed."""
    dispatcher = Dispatcher()
    catalog, about = opened(dispatcher, tmp_path)
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("db.t", Schema.from_arrow(columns, primary_keys=("id",), options=options))
    about["schema"] = {"fields": FIELDS}
    begun = ask(dispatcher, "write.begin", about)
    assert (begun["dynamic_buckets"], begun["bucket"]) == (True, None)
    asked = {"write_id": begun["write_id"], "partition": {}}

    def assigned(*hashes: int) -> list[int]:
        answer = dispatcher.answer("write.assign", {**asked, "hashes": numbers(*hashes)})
        assert isinstance(answer, dict)
        return list(np.frombuffer(base64.b64decode(answer["buckets"]), ">i4"))

    assert assigned(-7, 5, 5, -7) == [0, 0, 0, 0]
    assert assigned(9, 5, 11, 13) == [1, 0, 1, 2]
    assert assigned(13, -7) == [2, 0]
    known = {"min_key": [1], "max_key": [1], "stats": {}}
    file = {"name": "data-x-0.orc", "size": 1, "rows": 1, **known}
    message = {"bucket": 3, "total_buckets": -1, "file": file}
    end = {**about, "write_id": begun["write_id"], "epoch": None, "messages": [message]}
    with pytest.raises(InputError, match="no key was given bucket 3"):
        ask(dispatcher, "write.commit", end)
    assert table.latest_snapshot() is None
    with pytest.raises(InputError, match="has ended"):
        assigned(5)
    catalog.create_table("db.fixed", SCHEMA)
    fixed = ask(dispatcher, "write.begin", {**about, "name": "fixed"})
    with pytest.raises(InputError, match="not dynamic"):
        dispatcher.answer("write.assign", {**asked, "write_id": fixed["write_id"], "hashes": numbers(1)})


def test_writes_that_never_end_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EXPLAIN of an INSERT begins one. A write that is forgotten still knows its table by the about."""
    monkeypatch.setattr(write_session, "_REMEMBERED", 3)
    dispatcher = Dispatcher()
    catalog, about = opened(dispatcher, tmp_path)
    table = catalog.create_table("db.t", SCHEMA)
    about |= {"schema": {"fields": FIELDS}, "table_id": str(table.table_id), "schema_id": 0}
    begun: list[Any] = [ask(dispatcher, "write.begin", about) for _ in range(5)]
    assert len(dispatcher.writes) == 3
    end = {**about, "write_id": begun[0]["write_id"], "messages": []}
    assert ask(dispatcher, "write.commit", end) == {"snapshot_id": None}
    catalog.drop_table("db.t")
    time.sleep(0.002)
    catalog.create_table("db.t", SCHEMA)
    with pytest.raises(TableNotFoundError, match="created again"):
        ask(dispatcher, "write.commit", {**end, "write_id": begun[1]["write_id"]})


def test_a_batch_of_a_stream_is_an_event(tmp_path: Path) -> None:
    seen: list[Event] = []
    dispatcher = Dispatcher()
    catalog, about = opened(dispatcher, tmp_path)
    table = catalog.create_table("db.t", SCHEMA)
    begun = ask(dispatcher, "write.begin", {**about, "schema": {"fields": FIELDS}})
    observer = hookimpl(lambda event: seen.append(event))
    plugins().register(types.SimpleNamespace(lockgate_event=observer), "observer")
    try:
        end = {**about, "write_id": begun["write_id"], "messages": []}
        for _ in range(2):  # Spark runs a batch again whose end it does not know
            assert ask(dispatcher, "write.commit", {**end, "epoch": 7}) == {"snapshot_id": 1}
        assert plugins().events.flush()
    finally:
        plugins().unregister("observer")
    found = [event for event in seen if isinstance(event, StreamProgressed)]
    assert [(each.query, each.batch, each.table, each.use, each.snapshot_id) for each in found] == [
        ("q", 7, table.location, "write", 1)
    ] * 2
