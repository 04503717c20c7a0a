"""Answers of owners of partial caches: to tasks, after kills, and to noise at their socket."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from lookup_world import KEY, SCHEMA, World, ask, rows, until

from lockgate.errors import LookupCacheError, SnapshotNotFoundError, UnsafePathError
from lockgate.framework.access import Mask
from lockgate.framework.store.schema.schema import Schema
from lockgate.lookup.codec.byte_rows import Rows
from lockgate.lookup.driver.lookup_tables import make_spec
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.join import lookup_worker
from lockgate.lookup.partial.partial_cache import SnapshotName
from lockgate.lookup.server import partial_service
from lockgate.lookup.server.key_server import socket_address
from lockgate.lookup.server.partial_service import RemoteReader, receive, send
from lockgate.lookup.spec.lookup_rights import CacheRights
from lockgate.pushdown import col

PARTIAL = {"lookup.cache": "partial"}


@contextlib.contextmanager
def connected(lookup: Lookup) -> Iterator[socket.socket]:
    (path,) = (lookup.directory.path / "partial").glob("*.sock")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        with socket_address(path) as address:
            connection.connect(address)
        yield connection


def test_owners_answer_batches_from_their_snapshots_without_a_load(world: World) -> None:
    table = world.create()
    table.append(rows(range(100), 1))
    lookup = world.lookup(**PARTIAL)
    first = lookup.pin("q", 0)
    assert ask(lookup, first, [1, 99, 100, None]) == [1, 1, None, None]
    assert lookup.status().rows == 100
    table.append(rows(range(90, 101), 2))
    until(lambda: lookup.status().served_snapshot == 2)
    assert ask(lookup, first, [1, 99, 100]) == [1, 1, None], "a batch keeps its snapshot"
    assert ask(lookup, lookup.pin("q", 1), [1, 99, 100, 101]) == [1, 2, 2, None]
    assert not list(lookup.directory.path.rglob("*.sst")), "no row is on the disk"


def test_a_killed_owner_is_replaced_and_answers_all_snapshots(world: World) -> None:
    table = world.create()
    table.append(rows(range(100), 1))
    lookup = world.lookup(**PARTIAL)
    first = lookup.pin("q", 0)
    assert ask(lookup, first, [7]) == [1]
    table.append(rows(range(50), 2))
    until(lambda: lookup.status().served_snapshot == 2)
    owner = lookup.status().owner_pid
    assert owner is not None
    os.kill(owner, signal.SIGKILL)
    assert ask(lookup, first, [7, 70]) == [1, 1]
    assert ask(lookup, 2, [7, 70]) == [2, 1]


def test_another_owner_takes_over_what_was_published(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    one, other = world.lookup(**PARTIAL), world.lookup(**PARTIAL)
    snapshot = one.pin(None, None)
    assert other.pin(None, None) == snapshot
    one.close()
    assert ask(other, snapshot, [3, 30]) == [1, None]


def test_many_tasks_ask_at_the_same_time(world: World) -> None:
    table = world.create(bucket="2")
    table.append(rows(range(5000), 1))
    lookup = world.lookup(**PARTIAL)
    info = lookup.directory.version(lookup.pin(None, None))
    assert info is not None
    name = SnapshotName(info.snapshot_id, info.fingerprint)
    codec = lookup.directory.layout().key_codec
    wrong: list[Any] = []

    def task(number: int) -> None:
        reader = RemoteReader(lookup.directory, name)
        for start in range(0, 6000, 500):
            ids = pa.array(range(start + number, start + 500))
            keys = codec.encode([ids])
            found = reader.find(keys.rows.take(keys.distinct().first))
            there = sum(len(part.at) for part in found)
            if there != min(max(5000 - start - number, 0), 500 - number):
                wrong.append((number, start, there))
        reader.close()

    threads = [threading.Thread(target=task, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_nothing_of_an_encrypted_table_is_on_the_disk(world: World) -> None:
    catalog = type(world.catalog)(str(world.folder / "warehouse"), keys=KEY)
    options = {"bucket": "1", "orc.encrypt": "pii:name", "orc.mask": "nullify:name"}
    catalog.create_namespace("db", ignore_if_exists=True)
    table = catalog.create_table("db.dim", Schema.from_arrow(SCHEMA, primary_keys=("id",), options=options))
    table.append(pa.table({"id": [1], "name": ["Secret-name"], "n": [5]}, schema=SCHEMA))
    given = {"lookup.cache-dir": str(world.folder / "cache"), **PARTIAL}
    lookup = Lookup(catalog, table, make_spec(table, "id", options=given))
    world.lookups.append(lookup)
    snapshot = lookup.pin(None, None)
    wanted = lookup_worker.WantedState(str(lookup.directory.path), snapshot, 0)
    fields = [pa.field("name", pa.string()), pa.field("n", pa.int64())]
    found = lookup_worker.answer(wanted, [pa.array([1])], lookup_worker.AnswerForm(fields, many=False))
    assert found.to_pylist() == [{"name": "Secret-name", "n": 5}]
    for path in (world.folder / "cache").rglob("*"):
        assert not path.is_file() or b"Secret" not in path.read_bytes(), path
    masked = world.lookup(**PARTIAL)  # a driver without the key has a cache of its own
    assert masked.directory.path != lookup.directory.path
    asked = lookup_worker.WantedState(str(masked.directory.path), masked.pin(None, None), 0)
    found = lookup_worker.answer(asked, [pa.array([1])], lookup_worker.AnswerForm(fields, many=False))
    assert found.to_pylist() == [{"name": None, "n": 5}]


def test_rights_hold_while_rows_enter_and_leave_the_filter(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    rights = CacheRights(col("n") > 1, {"name": Mask("nullify")})
    given = {"lookup.cache-dir": str(world.folder / "cache"), "lookup.refresh.async": "false", **PARTIAL}
    spec = replace(make_spec(table, "id", options=given), rights=rights)
    lookup = Lookup(world.catalog, table, spec)
    world.lookups.append(lookup)
    fields = [pa.field("name", pa.string()), pa.field("n", pa.int64())]

    def seen(batch: int) -> Any:
        wanted = lookup_worker.WantedState(str(lookup.directory.path), lookup.pin("q", batch), 0)
        return lookup_worker.answer(
            wanted, [pa.array([1, 2, 30])], lookup_worker.AnswerForm(fields, many=False)
        ).to_pylist()

    assert seen(0) == [None, None, None]
    table.append(rows(range(2), 5))
    assert seen(1) == [{"name": None, "n": 5}, None, None]
    table.append(rows(range(2), 0))
    table.append(rows(range(2, 31), 7))
    assert seen(2) == [None, {"name": None, "n": 7}, {"name": None, "n": 7}]


NOISE = (
    b"",
    b"GET / HTTP/1.0\r\n\r\n" + bytes(64),
    b"LGP1" + b"\xff" * 20,
    b"LGP1" + bytes(20),
    b"\x17" * 200,
)


def test_an_owner_survives_what_is_no_message(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup(**PARTIAL)
    snapshot = lookup.pin(None, None)
    for noise in NOISE:
        with connected(lookup) as connection:
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):  # it has not read all
                assert connection.recv(1) == b""
        assert ask(lookup, snapshot, [3]) == [1]


def test_questions_are_checked_and_errors_come_back(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup(**PARTIAL)
    lookup.pin(None, None)
    with connected(lookup) as connection:
        odd: Any = {"snapshot": "1; drop", "fingerprint": "x"}
        send(connection, odd, Rows.empty())
        content, _ = receive(connection)
        assert "asks otherwise than declared" in content["error"]["message"]
    keys = lookup.directory.layout().key_codec.encode([pa.array([1])]).rows
    with pytest.raises(SnapshotNotFoundError, match="another has its number"):
        RemoteReader(lookup.directory, SnapshotName(1, "another")).find(keys)


def test_without_an_owner_the_error_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup(**PARTIAL)
    lookup.pin(None, None)
    keys = lookup.directory.layout().key_codec.encode([pa.array([1])]).rows
    lookup.close()
    monkeypatch.setattr(partial_service, "_WAIT_SECONDS", 0.2)
    with pytest.raises(LookupCacheError, match="no owner of the lookup cache"):
        RemoteReader(lookup.directory, SnapshotName(1, "x")).find(keys)


def test_a_folder_that_others_can_write_to_is_refused(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup(**PARTIAL)
    lookup.pin(None, None)
    keys = lookup.directory.layout().key_codec.encode([pa.array([1])]).rows
    lookup.directory.path.chmod(0o777)
    with pytest.raises(UnsafePathError):
        RemoteReader(lookup.directory, SnapshotName(1, "x")).find(keys)


ASKER = """
import sys
from pathlib import Path
import pyarrow as pa
from lockgate.lookup.join.lookup_worker import AnswerForm, WantedState, answer
form = AnswerForm([pa.field("name", pa.string()), pa.field("n", pa.int64())], many=False)
print(answer(WantedState(sys.argv[1], int(sys.argv[2]), 0), [pa.array([3])], form))
"""


def test_a_process_that_ends_leaves_no_socket_open(world: World) -> None:
    world.create().append(rows(range(10), 1))
    lookup = world.lookup(**PARTIAL)
    asked = [str(lookup.directory.path), str(lookup.pin(None, None))]
    done = subprocess.run(
        [sys.executable, "-W", "default::ResourceWarning", "-c", ASKER, *asked],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "name-3" in done.stdout
    assert "ResourceWarning" not in done.stderr
