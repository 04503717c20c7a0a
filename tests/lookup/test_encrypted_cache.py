"""The cache of a table with encrypted columns: nothing in the clear on disk, opened with the key only."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import KeyMissingError, LookupCacheError, WrongKeyError
from lockgate.framework.keys import KeyProvider, MemoryKeyProvider, NoKeys
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.lookup.cache import builder, external_sort
from lockgate.lookup.cache.cache_key import CacheKey, make_cache_key
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.codec.cache_cipher import KEY_BYTES
from lockgate.lookup.driver.lookup_tables import make_spec, open_lookup
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.join import lookup_worker
from lockgate.lookup.server.key_server import KeyServer, fetch_cipher

KEY = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("n", pa.int64())])
FIELDS = [pa.field("name", pa.string()), pa.field("n", pa.int64())]
MakeTable = Callable[..., Any]


@pytest.fixture
def storage() -> str:
    """Encrypted caches are not kept in mapped files."""
    return "auto"


ENCRYPTED = {"bucket": "1", "orc.encrypt": "pii:name", "orc.mask": "nullify:name"}


def secret_rows(ids: range) -> list[dict[str, Any]]:
    return [{"id": 0x5EC2E7_000000 + i, "name": f"Secret-{i:05}", "n": i} for i in ids]


def assert_nothing_in_the_clear(folder: Path) -> int:
    """Search every file below a folder for names and ids; returns how many bytes were searched."""
    searched = 0
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # a spill that was sorted concurrently
            continue
        searched += len(content)
        assert b"Secret-" not in content, path
        # The ids begin with these bytes, in one order of bytes or the other.
        assert b"\x00\xe7\xc2\x5e" not in content, path
        assert b"\x5e\xc2\xe7\x00" not in content, path
    return searched


@pytest.mark.parametrize(("primary", "on"), [(("id",), "id"), (("id",), "name"), ((), "name")])
def test_no_file_ever_has_a_value_in_the_clear(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, primary: Any, on: str
) -> None:
    monkeypatch.setattr(external_sort, "ROWS_PER_RUN", 50)
    monkeypatch.setattr(external_sort, "SPILL_BYTES", 2000)
    table = make_table(SCHEMA, primary, keys=KEY, **ENCRYPTED)
    table.commit([("+I", row) for row in secret_rows(range(400))])
    spied: list[str] = []

    def spy(rows: int, expected: int) -> None:
        spied.extend(path.name for path in (tmp_path / "cache").rglob("*.spill"))
        assert_nothing_in_the_clear(tmp_path / "cache")

    original = builder.CacheBuilder.__init__

    def spying(self: Any, table: Any, spec: Any, directory: Any, progress: Any = None) -> None:
        original(self, table, spec, directory, spy)

    monkeypatch.setattr(builder.CacheBuilder, "__init__", spying)
    lookup = open_lookup(table, on)
    assert len(set(spied)) > 3, "nothing was spilled"
    table.commit([("+I", row) for row in secret_rows(range(350, 450))])
    lookup.refresh()
    assert assert_nothing_in_the_clear(tmp_path / "cache") > 10_000
    wanted = secret_rows(range(420, 425))
    keys = pa.RecordBatch.from_pylist([{on: row[on]} for row in wanted], schema=pa.schema([SCHEMA.field(on)]))
    assert lookup.get(keys).rows.column("n").to_pylist() == [420, 421, 422, 423, 424]
    lookup.close()
    folder = Path(lookup.status().directory)
    for path in folder.rglob("*"):
        if path.name == "KEYS.json":
            assert "Secret" not in path.read_text()
    assert folder.stat().st_mode & 0o077 == 0
    monkeypatch.undo()
    stripped = make_table(SCHEMA, primary, keys=KEY)
    stripped.commit([("+I", row) for row in secret_rows(range(400))])
    plain = open_lookup(stripped, on)
    plain.close()
    assert plain.status().directory != lookup.status().directory
    with pytest.raises(AssertionError):  # the search finds what is there to be found
        assert_nothing_in_the_clear(Path(plain.status().directory))


@pytest.mark.parametrize("options", [ENCRYPTED, {"lookup.cache": "full"}, {"lookup.cache": "memory"}])
@pytest.mark.parametrize("primary", [("name",), ("id",), ()])
def test_text_keys_of_any_length(make_table: MakeTable, options: dict[str, str], primary: Any) -> None:
    lengths = [1, 65_200, 65_300, 70_000, 300_000]
    table = make_table(SCHEMA, primary, keys=KEY, **options)
    table.commit([("+I", {"id": n, "name": "x" * n, "n": n}) for n in lengths[:4]])
    with open_lookup(table, "name") as lookup:
        table.commit([("+U" if primary else "+I", {"id": n, "name": "x" * n, "n": n}) for n in lengths])
        lookup.refresh()
        asked = pa.record_batch({"name": ["x" * n for n in (300_000, 65_300, 65_299, 1)]})
        times = 1 if primary else 2
        assert lookup.get(asked).rows.column("n").to_pylist() == [300_000] + [65_300] * times + [1] * times


def test_the_same_cache_serves_after_the_key_was_rolled(make_table: MakeTable) -> None:
    keys = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    table = make_table(SCHEMA, ("id",), keys=keys, **ENCRYPTED)
    table.commit([("+I", row) for row in secret_rows(range(10))])
    first = open_lookup(table, "id")
    keys.roll_key("pii")
    table.commit([("+I", row) for row in secret_rows(range(5, 20))])
    second = open_lookup(table, "id")
    assert second.status().directory == first.status().directory
    assert table.reads == [1], "the table was read again"
    asked = pa.record_batch({"id": [secret_rows(range(15, 16))[0]["id"]]})
    assert second.get(asked).rows.column("name").to_pylist() == ["Secret-00015"]
    for lookup in (first, second):
        lookup.close()
    # Without its version of the key the cache is worth nothing, and is rebuilt under what is held.
    table.keys = MemoryKeyProvider({"pii@1": b"fedcba9876543210"})
    third = open_lookup(table, "id")
    assert table.reads == [1, 2]
    assert third.get(asked).rows.column("name").to_pylist() == ["Secret-00015"]
    third.close()


def test_another_key_of_the_same_name_opens_nothing_and_destroys_nothing(make_table: MakeTable) -> None:
    table = make_table(SCHEMA, ("id",), keys=KEY, **ENCRYPTED)
    table.commit([("+I", row) for row in secret_rows(range(10))])
    open_lookup(table, "id").close()
    table.keys = MemoryKeyProvider({"pii@0": b"another key 1234"})
    with pytest.raises(WrongKeyError, match="another key than the pii@0 held here"):
        open_lookup(table, "id")
    table.keys = KEY
    open_lookup(table, "id").close()
    assert table.reads == [1]


def test_a_cache_without_its_key_is_built_again(make_table: MakeTable) -> None:
    table = make_table(SCHEMA, ("id",), keys=KEY, **ENCRYPTED)
    table.commit([("+I", row) for row in secret_rows(range(10))])
    lookup = open_lookup(table, "id")
    lookup.close()
    (Path(lookup.status().directory) / "KEYS.json").unlink()
    open_lookup(table, "id").close()
    assert table.reads == [1, 1]


# --- owners and workers --------------------------------------------------------------------------------


class Counted(KeyProvider):
    """Counts what is asked for: a cache is opened by one unwrapped key, however many readers there are."""

    def __init__(self) -> None:
        self.made = 0

    def key_names(self) -> list[str]:
        return KEY.key_names()

    def current_key(self, name: str) -> Any:
        return KEY.current_key(name)

    def decrypt_local_key(self, key: Any, encrypted: bytes) -> bytes:
        return KEY.decrypt_local_key(key, encrypted)

    def create_local_key(self, key: Any) -> Any:
        self.made += 1
        return KEY.create_local_key(key)


@pytest.fixture
def lookup(tmp_path: Path) -> Iterator[Lookup]:
    catalog = Catalog(str(tmp_path / "warehouse"), keys=Counted())
    catalog.create_namespace("db")
    table = catalog.create_table("db.dim", Schema.from_arrow(SCHEMA, primary_keys=("id",), options=ENCRYPTED))
    table.append(pa.Table.from_pylist(secret_rows(range(100)), schema=SCHEMA))
    options = {"lookup.cache-dir": str(tmp_path / "cache"), "lookup.refresh.interval": "50 ms"}
    made = Lookup(catalog, table, make_spec(table, "id", options=options))
    yield made
    made.close()


def ask(lookup: Lookup, snapshot_id: int, number: int) -> str | None:
    keys = [pa.array([secret_rows(range(number, number + 1))[0]["id"]])]
    path = str(lookup.directory.path)
    found = lookup_worker.answer(
        lookup_worker.WantedState(path, snapshot_id, 1 << 20),
        keys,
        lookup_worker.AnswerForm(FIELDS, many=False),
    ).to_pylist()[0]
    return None if found is None else str(found["name"])


def test_workers_get_the_key_from_the_owner(lookup: Lookup, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lookup.pin("query", 0) == 1
    assert ask(lookup, 1, 7) == "Secret-00007"
    assert ask(lookup, 1, 700) is None
    assert assert_nothing_in_the_clear(lookup.directory.path) > 1000
    # The socket is the user's own, in a folder that is.
    (address,) = (lookup.directory.path / "keys").glob("*.sock")
    assert address.stat().st_mode & 0o077 == 0
    secret = fetch_cipher(lookup.directory).secret
    pid = lookup.status().owner_pid
    for place in (f"/proc/{pid}/cmdline", f"/proc/{pid}/environ"):
        assert secret not in Path(place).read_bytes()
        assert secret.hex().encode() not in Path(place).read_bytes()
    for path in [path for path in lookup.directory.path.rglob("*") if path.is_file()]:
        assert secret not in path.read_bytes()

    # A killed owner leaves its socket; the next one answers, and a new worker waits for it.
    lookup_worker._ciphers.clear()
    lookup_worker.close_states()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert ask(lookup, 1, 8) == "Secret-00008"
    lookup.table.append(pa.Table.from_pylist(secret_rows(range(100, 110)), schema=SCHEMA))
    lookup.wait_for(2, timeout=20)
    assert ask(lookup, 2, 105) == "Secret-00105"
    deadline = time.monotonic() + 10
    while len(list((lookup.directory.path / "keys").glob("*.sock"))) > 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_cache_that_is_removed_gets_a_new_key(lookup: Lookup, tmp_path: Path) -> None:
    lookup.pin("query", 0)
    assert ask(lookup, 1, 3) == "Secret-00003"
    before = fetch_cipher(lookup.directory).secret
    # Its owner may write into it concurrently.
    shutil.rmtree(lookup.directory.path.rename(tmp_path / "aside"))
    assert lookup.pin("query", 1) == 1
    assert ask(lookup, 1, 3) == "Secret-00003"
    assert fetch_cipher(lookup.directory).secret != before


def test_nobody_hands_out_the_key_when_the_driver_has_ended(lookup: Lookup) -> None:
    lookup.pin("query", 0)
    lookup.close()
    with pytest.raises(LookupCacheError, match="no owner of it hands out its key"):
        fetch_cipher(lookup.directory, wait_seconds=0.1)


def test_the_error_of_an_owner_without_the_key_reaches_the_worker(tmp_path: Path) -> None:
    directory = CacheDirectory.create(tmp_path, "cache")
    directory.write_key(make_cache_key(KEY, ["pii"])[0])
    server = KeyServer(directory, CacheKey(directory, NoKeys()).secret)
    with pytest.raises(KeyMissingError, match="pii"):
        fetch_cipher(directory, 0)
    server.close()

    def fail() -> bytes:
        raise ZeroDivisionError("seven")

    server = KeyServer(directory, fail)
    with pytest.raises(LookupCacheError, match="ZeroDivisionError: seven"):
        fetch_cipher(directory, 0)
    server.close()


OTHERWISE = [b"x" * KEY_BYTES, b"{}", b'{"key": 7}', b'{"error": "plain"}', b'{"key": ']


@pytest.mark.parametrize("answer", OTHERWISE)
def test_an_owner_that_answers_otherwise_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    directory = CacheDirectory.create(tmp_path, "cache")
    server = KeyServer(directory, lambda: None)
    try:
        with pytest.raises(LookupCacheError, match="no owner of it hands out its key"):
            fetch_cipher(directory, 0)
        monkeypatch.setattr(server, "_reply", lambda: answer)
        with pytest.raises(LookupCacheError, match="answers otherwise than declared"):
            fetch_cipher(directory, 0)
    finally:
        server.close()


def test_the_socket_of_a_folder_with_a_long_name(tmp_path: Path) -> None:
    directory = CacheDirectory.create(tmp_path / ("long" * 30), "cache")
    content, cipher = make_cache_key(KEY, ["pii"])
    directory.write_key(content)
    dead = directory.path / "keys" / "1.sock"
    with socket.socket(socket.AF_UNIX) as left:
        folder = os.open(dead.parent, os.O_RDONLY)
        left.bind(f"/proc/self/fd/{folder}/1.sock")
        os.close(folder)
    server = KeyServer(directory, CacheKey(directory, KEY).secret)
    assert not dead.exists()
    assert fetch_cipher(directory, 5).secret == cipher.secret
    server.close()
    with pytest.raises(LookupCacheError):
        fetch_cipher(directory, 0)
