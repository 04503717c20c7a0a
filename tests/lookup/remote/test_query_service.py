"""Query services: answers, kills under load, other secrets, forged registrations, and refused tables."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lookup_world import KEY, SCHEMA, World, ask, rows, until
from pyarrow import flight
from service_world import (
    BYTES,
    REMOTE,
    Serve,
    asked_once,
    found,
    guest_of,
    keys_of,
    reader_of,
    registration,
    remote,
)

from lockgate.errors import (
    AccessDeniedError,
    InputError,
    LockgateError,
    LookupCacheError,
    SnapshotNotFoundError,
    UnsafePathError,
    UnsupportedError,
)
from lockgate.framework.store.ddl.schema_changes import AddColumn, DropColumn, RenameColumn, SetOption
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.types import STRING
from lockgate.lookup.driver import query_services
from lockgate.lookup.driver.lookup_tables import make_spec, open_lookup
from lockgate.lookup.partial.partial_cache import SnapshotName
from lockgate.lookup.remote import query_client
from lockgate.lookup.remote.certificate import fingerprint_of, make_certificate
from lockgate.lookup.remote.query_client import ServiceReader
from lockgate.lookup.remote.questions import descriptor_of
from lockgate.lookup.remote.registration import Registration, registered
from lockgate.lookup.remote.secret import VARIABLE, Secret
from lockgate.lookup.spec.lookup_rights import CacheRights
from lockgate.lookup.spec.lookup_spec import layout_of
from lockgate.procedures import ProcedureContext, call
from lockgate.pushdown import col


def test_a_service_answers_each_snapshot_and_condition(world: World, serve: Serve) -> None:
    table = world.create(bucket="2")
    table.append(rows(range(1000), 1))
    known = serve(table)
    lookup, some = remote(table), open_lookup(table, "id", where=col("n") > 1, options=REMOTE)
    assert found(lookup, [0, 999, 1000]) == [1, 1, None]
    assert found(some, [0]) == [None]
    assert lookup.status().snapshot_id == 1
    table.append(rows(range(990, 1001), 2))
    lookup.refresh()
    some.refresh()
    assert found(lookup, [0, 999, 1000, 1001]) == [1, 2, 2, None]
    assert found(some, [0, 999]) == [None, 2]
    lookup.refresh(1)
    assert found(lookup, [999, 1000]) == [1, None], "an older snapshot"
    assert registered(table, Secret(BYTES)) == known
    assert BYTES.decode() not in registration(table).read_text()
    lookup.close()
    some.close()


def test_a_service_answers_what_was_planned_before_an_alter(world: World, serve: Serve) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    serve(table)
    before = remote(table)
    changed = world.catalog.alter_table("db.dim", [RenameColumn(("n",), "m"), AddColumn(("n",), STRING)])
    changed.append(pa.table({"id": [1], "name": ["x"], "m": [7], "n": ["z"]}))
    after = open_lookup(changed, "id", columns=["m"], options=REMOTE)
    before.refresh()
    assert found(before, [1, 2]) == [7, 1]
    assert after.get(pa.record_batch({"id": pa.array([1, 2], pa.int64())})).rows.to_pylist() == [
        {"m": 7},
        {"m": 1},
    ]
    changed = world.catalog.alter_table("db.dim", [DropColumn(("m",))])
    changed.append(pa.table({"id": [1], "name": ["y"], "n": ["z"]}))
    before.refresh()
    with pytest.raises(LookupCacheError, match=r"column 'n' of db\.dim, which a lookup reads, was dropped"):
        found(before, [1])
    before.close()
    after.close()


def test_owners_ask_a_service_in_place_of_files(world: World, serve: Serve) -> None:
    """The whole way of a batch: driver, owner, service."""
    table = world.create()
    table.append(rows(range(100), 1))
    serve(table)
    lookup = world.lookup(**REMOTE)
    first = lookup.pin("q", 0)
    # What the service has read, it knows. Without the files nobody else can read it.
    reader = reader_of(table)
    assert len(reader.read(table.snapshot(1), keys_of(table, [1, 99, 100]))) == 2
    files, away = Path(table.location) / "bucket-0", Path(table.location) / "away"
    files.rename(away)
    assert ask(lookup, first, [1, 99, 100]) == [1, 1, None]
    away.rename(files)
    table.append(rows(range(50), 2))
    until(lambda: lookup.status().served_snapshot == 2)
    assert ask(lookup, first, [1, 99]) == [1, 1]
    assert ask(lookup, lookup.pin("q", 1), [1, 99]) == [2, 1]
    reader.close()


@pytest.mark.long
def test_no_answer_is_lost_or_wrong_while_services_are_killed(world: World) -> None:
    table = world.create(bucket="2")
    table.append(rows(range(2000), 1))
    query_services.start(world.catalog, table)
    wrong: list[Any] = []
    asked = [0] * 3
    ended = threading.Event()

    def asker(number: int) -> None:
        lookup, rng = remote(table, **{"lookup.partial-max-size": "10 kb"}), random.Random(number)
        try:
            while not ended.is_set():
                snapshot = lookup.refresh()
                assert snapshot is not None
                ids = [rng.randrange(2500) for _ in range(200)]
                expected = [snapshot.snapshot_id if each < 2000 else None for each in ids]
                if found(lookup, ids) != expected:
                    wrong.append((number, snapshot.snapshot_id))
                asked[number] += 1
        except Exception as error:
            wrong.append(error)
        finally:
            lookup.close()

    threads = [threading.Thread(target=asker, args=(number,)) for number in range(len(asked))]
    for thread in threads:
        thread.start()
    service = query_services._services[table.location]
    for round_ in range(4):
        before = list(asked)
        until(lambda before=before: all(now > was for now, was in zip(asked, before, strict=True)), 60)
        os.kill(service.wait()["pid"], signal.SIGKILL)
        table.append(rows(range(2000), round_ + 2))
        time.sleep(0.3)
    before = list(asked)
    until(lambda: all(now > was for now, was in zip(asked, before, strict=True)), 60)
    ended.set()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_an_asker_with_another_secret_gets_nothing(world: World, serve: Serve) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    known = serve(table)
    with pytest.raises(LookupCacheError, match="has another secret") as caught:
        reader_of(table, b"x" * 40).read(table.snapshot(1), keys_of(table, [1]))
    assert "x" * 40 not in str(caught.value)
    # Somebody who knows the registration, but not the secret, talks to the service itself.
    other = Secret(b"y" * 40).token(known.certificate)
    for shown in ([], [(b"authorization", f"Bearer {other}".encode())]):
        with guest_of(known) as guest, pytest.raises(flight.FlightUnauthenticatedError):
            asked_once(guest, b"", b"", pa.record_batch({"id": pa.array([1])}), shown)


def test_a_service_that_pretends_is_not_asked(
    world: World, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forged registration, one of another table, and a server with another certificate at the address."""
    table = world.create()
    table.append(rows(range(10), 1))
    serve(table)
    true = json.loads(registration(table).read_text())
    forged = make_certificate()
    registration(table).write_text(json.dumps({**true, "certificate": forged.certificate}))
    with pytest.raises(LookupCacheError, match="another secret, or was registered for another table"):
        reader_of(table).read(table.snapshot(1), keys_of(table, [1]))
    # Proven, but the process at the address has another certificate, as after a port was taken over.
    monkeypatch.setattr(query_client, "WAIT_SECONDS", 0.5)
    Registration(true["address"], forged.certificate, "other").write(table, Secret(BYTES))
    with pytest.raises(LookupCacheError, match="no query service answers"):
        reader_of(table).read(table.snapshot(1), keys_of(table, [1]))
    for text in ("", "[]", "{", json.dumps({**true, "port": 1}), "[" * 100_000):
        registration(table).write_text(text)
        with pytest.raises(LookupCacheError, match="is no registration of a query service"):
            reader_of(table).read(table.snapshot(1), keys_of(table, [1]))


def test_questions_that_are_none_are_answered_by_an_error(world: World, serve: Serve) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    known = serve(table)
    spec = make_spec(table, "id")
    right = descriptor_of(table, spec, layout_of(spec, table.schema))
    shown = [(b"authorization", f"Bearer {Secret(BYTES).token(known.certificate)}".encode())]
    good = json.dumps({"snapshot": 1, "fingerprint": SnapshotName.of(table.snapshot(1)).fingerprint}).encode()
    ids = pa.record_batch({"id": pa.array([1], pa.int64())})
    cases: list[tuple[bytes, bytes, pa.RecordBatch, str]] = [
        (b"", good, ids, "does not speak its protocol"),
        (b"[" * 100_000, good, ids, "does not speak its protocol"),
        (right + b" " * (1 << 20), good, ids, "bytes, which nobody needs"),
        (right.replace(b'"id"', b'"nn"'), good, ids, "has no column"),
        (right.replace(table.table_id.encode(), b"other"), good, ids, "dropped and created again"),
        (right.replace(b'"layout": "', b'"layout": "0'), good, ids, "another schema or version"),
        (right, b"{}", ids, "does not speak its protocol"),
        (right, b'{"snapshot": 9, "fingerprint": ""}', ids, "snapshot 9"),
        (right, b'{"snapshot": 1, "fingerprint": ""}', ids, "was rolled back"),
        (right, good, pa.record_batch({"id": pa.array(["1"])}), "is asked by"),
        (right, good, pa.record_batch({"id": pa.array([None], pa.int64())}), "is null"),
    ]
    with guest_of(known) as guest:
        for command, metadata, batch, expected in [*cases, (right, good, ids, "")]:
            chunk = asked_once(guest, command, metadata, batch, shown)
            told = json.loads(chunk.app_metadata.to_pybytes())
            assert ("error" in told) == bool(expected)
            assert expected in str(told)
            assert chunk.data.num_rows == (0 if expected else 1)


def test_a_snapshot_that_was_rolled_back_is_an_error(world: World, serve: Serve) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    table.append(rows(range(10), 2))
    serve(table)
    reader, before = reader_of(table), table.snapshot(2)
    assert reader.read(before, keys_of(table, [1]))
    call(ProcedureContext(world.catalog), "rollback", table="db.dim", version="1")
    table.append(rows(range(10), 3))
    with pytest.raises(SnapshotNotFoundError):
        reader.read(before, keys_of(table, [2]))
    assert reader.read(table.snapshot(2), keys_of(table, [1, 2]))
    reader.close()


def test_a_service_starts_and_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a killed one is replaced by one with another certificate, which the asker finds."""
    table = world.create()
    table.append(rows(range(10), 1))
    monkeypatch.setattr(query_client, "WAIT_SECONDS", 0.2)
    reader, snapshot = reader_of(table), table.snapshot(1)
    with pytest.raises(LookupCacheError, match=r"no service is registered.*CALL sys.query_service"):
        reader.read(snapshot, keys_of(table, [1]))
    first = query_services.start(world.catalog, table)
    written = json.loads(registration(table).read_text())
    assert written["address"] == first["address"]
    assert fingerprint_of(written["certificate"]) == first["fingerprint"]
    assert len(reader.read(snapshot, keys_of(table, [3, 30]))) == 1
    monkeypatch.setattr(query_client, "WAIT_SECONDS", 60)
    os.kill(first["pid"], signal.SIGKILL)
    assert len(reader.read(snapshot, keys_of(table, [4, 40]))) == 1
    second = query_services._services[table.location].wait()
    assert second["pid"] != first["pid"]
    assert second["fingerprint"] != first["fingerprint"]
    assert query_services.stop(table)
    assert not registration(table).exists(), "a service that ends takes its registration away"
    assert not query_services.stop(table)
    reader.close()


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (BYTES, 0o644, "chmod 600"),
        (BYTES, 0o620, "chmod 600"),
        (b"short", 0o600, "has 5 bytes"),
        (None, 0o600, "cannot be read"),
    ],
)
def test_a_secret_that_cannot_be_used(
    world: World, secret: Path, content: bytes | None, mode: int, message: str
) -> None:
    table = world.create()
    if content is None:
        secret.unlink()
    else:
        secret.write_bytes(content)
        secret.chmod(mode)
    with pytest.raises((InputError, UnsafePathError), match=message):
        query_services.start(world.catalog, table)
    with pytest.raises((InputError, UnsafePathError), match=message):
        remote(table)


def test_the_secret_is_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert BYTES.decode() not in repr(Secret.from_environment())
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(InputError, match=f"{VARIABLE} names no file"):
        Secret.from_environment()
    assert Secret(BYTES).token("a") != Secret(BYTES).token("b") != Secret(b"z" * 40).token("b")


def test_tables_that_no_service_serves(world: World) -> None:
    catalog = type(world.catalog)(str(world.folder / "warehouse"), keys=KEY)
    catalog.create_namespace("db", ignore_if_exists=True)
    options = {"bucket": "1", "orc.encrypt": "pii:name", "orc.mask": "nullify:name"}
    sealed = catalog.create_table(
        "db.sealed", Schema.from_arrow(SCHEMA, primary_keys=("id",), options=options)
    )
    with pytest.raises(AccessDeniedError, match=r"db\.sealed encrypts name"):
        query_services.start(catalog, sealed)
    with pytest.raises(
        UnsupportedError, match="name is encrypted, and a query service does not know who asks"
    ):
        remote(sealed)
    plain = catalog.create_table("db.plain", Schema.from_arrow(SCHEMA))
    with pytest.raises(UnsupportedError, match="no primary key"):
        query_services.start(catalog, plain)
    table = world.create()
    with pytest.raises(UnsupportedError, match=r"lookup\.cache=full a whole table"):
        remote(table, **{"lookup.cache": "full"})
    for host, port, message in (("", 0, "no name"), ("a b", 0, "no name"), ("127.0.0.1", 70_000, "no port")):
        with pytest.raises(InputError, match=message):
            query_services.start(world.catalog, table, host, port)


@pytest.mark.parametrize("asked_before", [False, True])
def test_a_table_that_is_encrypted_later_is_served_no_longer(
    world: World, serve: Serve, asked_before: bool
) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    serve(table)
    asked = make_spec(table, "id", ["n"], options=REMOTE)
    reader = ServiceReader(table, asked, layout_of(asked, table.schema), Secret(BYTES))
    if asked_before:
        assert reader.read(table.snapshot(1), keys_of(table, [1]))
    keyed = type(world.catalog)(str(world.folder / "warehouse"), keys=KEY)
    changes = [SetOption("orc.encrypt", "pii:name"), SetOption("orc.mask", "nullify:name")]
    keyed.alter_table("db.dim", changes).append(rows(range(10), 2))
    with pytest.raises(AccessDeniedError, match="encrypts name"):
        reader.read(table.snapshot(2), keys_of(table, [1]))
    reader.close()


def test_rights_that_hide_something_are_no_question_for_a_service(world: World) -> None:
    from dataclasses import replace

    from lockgate.lookup.partial.choice import is_partial

    table = world.create()
    spec = replace(make_spec(table, "id", options=REMOTE), rights=CacheRights(col("n") > 1, {}))
    with pytest.raises(UnsupportedError, match="policies hide rows or values"):
        is_partial(table, spec, 0)


def test_the_procedures(world: World) -> None:
    table = world.create()
    with pytest.raises(LockgateError, match="as long as the driver"):
        call(ProcedureContext(world.catalog), "query_service", table="db.dim")
    Registration("127.0.0.1:1", make_certificate().certificate, "killed").write(table, Secret(BYTES))
    dry = call(ProcedureContext(world.catalog), "stop_query_service", table="db.dim", dry_run=True)
    assert dry.rows == ((0, 1),)
    for expected in ((0, 1), (0, 0)):
        assert call(ProcedureContext(world.catalog), "stop_query_service", table="db.dim").rows == (expected,)


def test_no_service_under_policies(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockgate.framework.plugins import plugins

    monkeypatch.setattr(type(plugins()), "decides_access", lambda self: True)
    with pytest.raises(AccessDeniedError, match=r"policies decide who reads db\.dim"):
        query_services.start(world.catalog, world.create())
