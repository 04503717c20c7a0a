"""The driver's service with real tables and owner processes: refresh, crashes, pins, encrypted dimensions."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lookup_world import FIELDS, KEY, World, ask, rows, until

from lockgate.errors import (
    KeyMissingError,
    LookupCacheError,
    LookupTimeoutError,
    MaskedDataWarning,
    NotFoundError,
    SnapshotNotFoundError,
)
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.driver import lookup_registry
from lockgate.lookup.driver.lookup_tables import make_spec, open_lookup
from lockgate.lookup.driver.pinned_snapshots import PinnedSnapshots
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.join.lookup_worker import AnswerForm, WantedState, answer
from lockgate.lookup.join.pin_table import CACHE_OPTION, SCHEMA_OPTION, SPEC_OPTION, TABLE_OPTION, PinTable
from lockgate.lookup.join.task_lookup import TaskLookup, look_up_batches
from lockgate.lookup.spec.lookup_spec import cache_id, pin_id


def test_the_cache_follows_the_table_without_being_asked(world: World) -> None:
    table = world.create()
    table.append(rows(range(100), 1))
    lookup = world.lookup()
    first = lookup.pin("query", 0)
    assert (first, ask(lookup, first, [7, None, 700])) == (1, [1, None, None])
    table.append(rows(range(5, 10), 2))
    table.delete(pa.table({"id": pa.array([1], pa.int64())}))
    lookup.wait_for(3, timeout=20)
    status = lookup.status()
    assert (status.served_snapshot, status.target_snapshot, status.lag_millis) == (3, 3, 0)
    assert (status.rows, status.full_load, status.last_error) == (99, False, None)
    assert "snapshot 3" in str(status)
    second = lookup.pin("query", 1)
    assert ask(lookup, second, [1, 4, 7]) == [None, 1, 2]
    assert ask(lookup, first, [1, 4, 7]) == [1, 1, 1]


def test_a_batch_that_is_planned_again_gets_its_snapshot(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    table.append(rows(range(10), 2))
    lookup.wait_for(2, timeout=20)
    assert lookup.pin("query", 0) == 1
    assert lookup.pin("another", 0) == 2
    assert lookup.pin("query", 1) == 2
    assert [(pin.query_id, pin.batch_id, pin.snapshot_id) for pin in lookup.status().pins] == [
        ("query", 0, 1),
        ("query", 1, 2),
        ("another", 0, 2),
    ]
    assert sorted(table.consumers().values()) == [1, 2, 2]
    lookup.pin("query", 2)
    assert sorted(table.consumers().values()) == [2, 2, 2]


def test_the_next_driver_answers_a_retried_batch_from_its_snapshot(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    before = world.lookup()
    assert before.pin("query", 3) == 1
    before.close()
    for n in range(2, 6):
        table.append(rows(range(10), n))
    # Another host: the cache begins empty, and the newest snapshot is cached first.
    after = world.lookup(**{"lookup.cache-dir": str(world.folder / "elsewhere")})
    assert after.pin("other", 0) == 5
    assert after.pin("query", 3) == 1
    assert ask(after, 1, [4]) == [1]
    assert ask(after, 5, [4]) == [5]
    assert after.status().served_snapshot == 5
    assert after.pin("query", 4) == 5


def test_a_pin_on_a_table_without_rows(world: World) -> None:
    table = world.create()
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 0
    assert ask(lookup, 0, [1, 2]) == [None, None]
    table.append(rows(range(3), 1))
    assert lookup.pin("query", 1) == 1
    assert PinnedSnapshots(table, pin_id(table, lookup.spec)).get("query", 0) == 0
    assert PinnedSnapshots(table, pin_id(table, lookup.spec)).get("query", 1) == 1


def test_pinned_states_stay_and_the_rest_goes(world: World) -> None:
    table = world.create()
    table.append(rows(range(3), 0))
    lookup = world.lookup()
    lookup.pin("query", 0)
    for n in range(2, 8):
        table.append(rows(range(3), n))
        lookup.wait_for(n, timeout=20)
    assert ask(lookup, 1, [0]) == [0]
    held = lookup.directory.versions()
    assert (held[0], held[-1]) == (1, 7)
    assert len(held) <= 4


def test_synchronous_refresh_waits_for_the_newest_snapshot(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup(**{"lookup.refresh.async": "false", "lookup.refresh.interval": "1 h"})
    for n in range(2, 5):
        table.append(rows(range(10), n))
        assert lookup.pin("query", n) == n
        assert ask(lookup, n, [3]) == [n]


def test_what_was_waited_for_is_served_until_there_is_something_newer(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup(**{"lookup.refresh.interval": "1 h"})
    assert lookup.pin("query", 0) == 1
    for n in range(2, 6):
        table.append(rows(range(10), n))
        assert lookup.wait_for(None) == n
        assert lookup.status().served_snapshot == n
        assert lookup.pin("query", n) == n


def test_writers_that_overtake_each_other(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    options = {"lookup.cache-dir": str(world.folder / "cache")}
    with open_lookup(table, "id", columns=["n"], options=options) as lookup:
        early, late = table.write(rows(range(5, 8), 2)), table.write(rows(range(8), 3))
        for messages in (late, early):
            table.commit(messages)
            lookup.refresh()
            found = lookup.get(pa.RecordBatch.from_pydict({"id": pa.array(range(10), pa.int64())}))
            scanned = table.read(columns=["id", "n"]).sort_by("id")
            assert found.rows.column("n").to_pylist() == scanned.column("n").to_pylist()


def test_an_error_of_the_first_load_reaches_the_batch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table = world.create()
    table.append(rows(range(2000), 1))
    lookup = world.lookup(**{"lookup.cache-max-disk-size": "1 kb"})
    with pytest.raises(LookupCacheError, match=r"lookup\.cache-max-disk-size"):
        lookup.pin("query", 0)
    status = lookup.status()
    assert status.failures >= 1
    assert status.last_error is not None
    assert "refresh failed" in str(status)


def test_a_failed_refresh_is_shown_and_the_old_state_served(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup()
    lookup.pin("query", 0)
    pid = lookup.status().owner_pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    before = set(Path(table.location).glob("bucket-0/*"))
    table.append(rows(range(10), 2))
    (added,) = set(Path(table.location).glob("bucket-0/*")) - before
    content = added.read_bytes()
    added.write_bytes(b"broken")
    os.kill(pid, signal.SIGCONT)
    until(lambda: lookup.status().failures >= 2)
    status = lookup.status()
    assert (status.served_snapshot, status.target_snapshot) == (1, 2)
    assert status.lag_millis > 0
    assert added.name in str(status.last_error)
    assert ask(lookup, lookup.pin("query", 1), [5]) == [1]
    added.write_bytes(content)
    assert lookup.wait_for(2, timeout=20) == 2
    assert (lookup.status().failures, lookup.status().last_error) == (0, None)


def test_no_module_of_the_current_folder_is_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create().append(rows(range(10), 1))
    strange = world.folder / "strange"
    (strange / "lockgate").mkdir(parents=True)
    (strange / "lockgate" / "__init__.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(strange)
    lookup = world.lookup()
    assert ask(lookup, lookup.pin("query", 0), [5]) == [1]


def test_too_slow_is_an_error_that_says_so(world: World) -> None:
    world.create().append(rows(range(10), 1))
    lookup = world.lookup(**{"lookup.timeout": "1 ms"})
    with pytest.raises(LookupTimeoutError, match=r"snapshot 1 of db\.dim was not cached in time"):
        lookup.pin("query", 0)


def test_a_pinned_snapshot_that_was_removed_by_force(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    table.append(rows(range(10), 2))
    (Path(table.location) / "snapshot" / "snapshot-1").unlink()
    lookup = world.lookup()
    PinnedSnapshots(table, pin_id(table, lookup.spec)).record("query", 0, 1)
    words = r"batch 0 of query query .*snapshot 1 of db\.dim.* is gone.* consumer 'lockgate-query-\w+-0'"
    with pytest.raises(SnapshotNotFoundError, match=words):
        lookup.pin("query", 0)
    assert table.delete_consumer(f"lockgate-query-{pin_id(table, lookup.spec)}-0")
    assert lookup.pin("query", 0) == 2


def ask_for_3(lookup: Lookup, snapshot_id: int) -> list[Any]:
    wanted = WantedState(str(lookup.directory.path), snapshot_id, 1 << 20)
    return list(answer(wanted, [pa.array([3])], AnswerForm(FIELDS, many=False)).to_pylist())


def test_encrypted_columns_are_decrypted_with_keys_from_the_pipe(world: World) -> None:
    world.catalog = Catalog(str(world.folder / "warehouse"), keys=KEY)
    table = world.create(**{"orc.encrypt": "pii:name", "orc.mask": "nullify:name"})
    table.append(rows(range(10), 1))
    lookup = world.lookup()
    lookup.pin("query", 0)
    found = ask_for_3(lookup, 1)
    assert found == [{"name": "name-3", "n": 1}]
    table.append(rows(range(10), 2))
    lookup.wait_for(2, timeout=20)
    found = ask_for_3(lookup, 2)
    assert found == [{"name": "name-3", "n": 2}]
    pid = lookup.status().owner_pid
    for secret in (b"0123456789abcdef", b"MDEyMzQ1Njc4OWFiY2RlZg=="):
        assert secret not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert secret not in Path(f"/proc/{pid}/environ").read_bytes()


def test_without_the_key_the_mask_is_joined_with_a_warning(world: World) -> None:
    folder = str(world.folder / "warehouse")
    world.catalog = Catalog(folder, keys=KEY)
    world.create(**{"orc.encrypt": "pii:name", "orc.mask": "nullify:name"}).append(rows(range(10), 1))
    with_key = world.lookup()
    with_key.pin("query", 0)
    world.catalog = Catalog(folder)
    lookup = world.lookup()
    lookup.pin("query", 0)
    found = ask_for_3(lookup, 1)
    assert found == [{"name": None, "n": 1}]
    assert with_key.directory.path != lookup.directory.path
    options = {"lookup.cache-dir": str(world.folder / "cache")}
    with pytest.warns(MaskedDataWarning, match="the masks of name"):
        opened = open_lookup(lookup.table, "id", options=options)
    opened.close()
    unmasked = open_lookup(lookup.table, "id", columns=["n"], options=options)
    unmasked.close()


def test_lookups_of_the_process(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    spec = make_spec(table, "id", options={"lookup.cache-dir": str(world.folder / "cache")})
    try:
        lookup = lookup_registry.lookup_for(world.catalog, table, spec)
        assert lookup_registry.lookup_for(world.catalog, table, spec) is lookup
        assert lookup_registry.wait_for("lake.db.dim", timeout=20) == 1
        assert [status.table for status in lookup_registry.statuses()] == ["db.dim"]
        assert lookup_registry.status("db.dim").to_dict()["served_snapshot"] == 1
        with pytest.raises(NotFoundError, match=r"did you mean 'db\.dim'"):
            lookup_registry.status("db.dom")
    finally:
        lookup_registry.close_all()
    assert lookup_registry.statuses() == []


def test_the_cache_is_closed_to_others(world: World) -> None:
    world.create().append(rows(range(10), 1))
    lookup = world.lookup()
    lookup.pin("query", 0)
    directory = CacheDirectory(lookup.directory.path)
    for path in (directory.path, directory.path.parent):
        assert path.stat().st_mode & 0o077 == 0


def test_masks_never_get_into_a_cache_of_values(world: World) -> None:
    folder = str(world.folder / "warehouse")
    world.catalog = Catalog(folder, keys=KEY)
    # A file that cannot be checked is refused where tags are required, which is earlier.
    encrypted = {"orc.encrypt": "pii:name", "orc.mask": "nullify:name", "orc.integrity": "verify"}
    world.create(**encrypted).append(rows(range(10), 1))
    options = {"lookup.cache-dir": str(world.folder / "cache")}
    # The key's name is held, its version that the file was written with is not.
    rolled = Catalog(folder, keys=MemoryKeyProvider({"pii@1": b"fedcba9876543210"})).load_table("db.dim")
    missing = pytest.raises(KeyMissingError, match=r"'name' of .* only be read as its mask")
    with missing, pytest.warns(MaskedDataWarning):
        open_lookup(rolled, "id", options=options)
    with open_lookup(world.catalog.load_table("db.dim"), "id", options=options) as lookup:
        found = lookup.get(pa.record_batch({"id": pa.array([3])})).rows
    assert found.column("name").to_pylist() == ["name-3"]


def test_a_batch_keeps_its_snapshot_where_the_table_is_renamed(world: World) -> None:
    world.create().append(rows(range(3), 1))
    assert world.lookup().pin("query", 3) == 1
    for lookup in world.lookups:
        lookup.close()
    world.catalog.rename_table("db.dim", "db.other")
    world.create().append(rows(range(3), 7))
    renamed = world.catalog.load_table("db.other")
    renamed.append(rows(range(3), 2))
    options = {"lookup.cache-dir": str(world.folder / "cache")}
    lookup = Lookup(world.catalog, renamed, make_spec(renamed, "id", options=options))
    world.lookups.append(lookup)
    assert lookup.pin("query", 3) == 1
    assert lookup.pin("query", 4) == 2
    assert ask(lookup, 1, [1]) == [1]
    assert ask(lookup, 2, [1]) == [2]


def test_a_dimension_that_was_created_again_is_not_answered_from_the_old_cache(world: World) -> None:
    planned = world.create()
    spec = make_spec(planned, "id")
    options = {
        SPEC_OPTION: json.dumps(spec.to_json()),
        CACHE_OPTION: cache_id(planned, spec),
        TABLE_OPTION: planned.table_id,
        SCHEMA_OPTION: str(planned.schema.id),
    }
    world.catalog.drop_table("db.dim")
    time.sleep(0.002)
    world.create()
    context: Any = None  # not asked for anything
    with pytest.raises(LookupCacheError, match="dropped and created again"):
        PinTable().rows(context, world.catalog.load_table("db.dim"), options, {})


def test_a_table_that_is_gone_shows(world: World) -> None:
    world.create().append(rows(range(3), 0))
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    world.catalog.drop_table("db.dim")
    until(lambda: "snapshot 1, the table has no snapshot any more" in str(lookup.status()))


def test_snapshots_that_come_during_a_refresh_are_taken_in_together(world: World) -> None:
    table = world.create()
    table.append(rows(range(3), 0))
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    pid = lookup.status().owner_pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    seen_at = time.monotonic()
    for number in range(2, 8):
        table.append(rows(range(3), number))
        until(lambda number=number: lookup.status().target_snapshot == number)
    lag = lookup.status().lag_millis
    assert lag >= 1000 * (time.monotonic() - seen_at) * 0.5, "not that of the newest alone"
    os.kill(pid, signal.SIGCONT)
    assert lookup.wait_for(7, timeout=20) == 7
    assert ask(lookup, 7, [1]) == [7]
    until(lambda: lookup.status().lag_millis == 0)
    # Snapshot 2 was asked for when there was no other.
    built = {path.name for path in lookup.directory.versions_path.iterdir()}
    assert built <= {"1", "2", "7"}


def test_wishes_that_nobody_repeats_are_forgotten(world: World) -> None:
    table = world.create()
    for number in range(1, 4):
        table.append(rows(range(3), number))
    lookup = world.lookup()
    lookup.directory.want(1)
    lookup.directory.want(2)
    os.utime(lookup.directory.path / "wanted" / "1", (1, 1))
    lookup.pin("query", 0)
    until(lambda: not list((lookup.directory.path / "wanted").iterdir()))
    assert lookup.directory.versions() == [2, 3]


def test_a_folder_that_lost_a_part_is_mended(world: World) -> None:
    table = world.create()
    table.append(rows(range(3), 1))
    lookup = world.lookup()
    lookup.pin("query", 0)
    shutil.rmtree(lookup.directory.versions_path)
    table.append(rows(range(3), 2))
    assert lookup.wait_for(2, timeout=20) == 2
    assert ask(lookup, 2, [1]) == [2]


def test_a_task_waits_for_a_state_that_was_lost_after_its_batch_was_planned(world: World) -> None:
    table = world.create()
    table.append(rows(range(3), 1))
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    table.append(rows(range(3), 2))
    lookup.wait_for(2, timeout=20)
    shutil.rmtree(lookup.directory.path.rename(world.folder / "aside"))
    ids = [pa.array([1, 7], pa.int64())]
    asked = TaskLookup((str(lookup.directory.path),), tuple(FIELDS), False, 1 << 20, wait_seconds=30.0)
    (found,) = look_up_batches(asked, None, pa.array([1, 1], pa.int64()), ids)
    assert found.to_pylist() == [{"name": "name-1", "n": 1}, None]


def test_a_snapshot_that_expires_before_it_is_built_is_not_the_newest_any_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two drivers on a cache, and a writer that expires all but one snapshot."""
    table = world.create()
    table.append(rows(range(3), 1))
    held = world.lookup()
    look, once = held._refresher.look, threading.Lock()

    def late() -> Any:
        found = look()
        if once.acquire(blocking=False):  # and not again: the timer looks, too
            table.append(rows(range(3), 2))
            expire_snapshots(table, retain_max=1, retain_min=1)
        return found

    monkeypatch.setattr(held._refresher, "look", late)
    assert held.pin(None, None) == 2
    opened = open_lookup(table, "id", options={"lookup.cache-dir": str(world.folder / "other")})
    build = opened._build

    def later(snapshot_id: int) -> Any:
        if snapshot_id == 3:
            table.append(rows(range(3), 4))
            expire_snapshots(table, retain_max=1, retain_min=1)
        return build(snapshot_id)

    monkeypatch.setattr(opened, "_build", later)
    table.append(rows(range(3), 3))
    info = opened.refresh()
    assert info is not None
    assert info.snapshot_id == 4
    opened.close()
