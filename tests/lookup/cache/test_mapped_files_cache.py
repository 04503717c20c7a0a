"""A cache in mapped files: small steps, merges next to them, crashes, budgets, growing out of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lockgate.errors import LookupCacheError, UnsupportedError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.lookup.cache import layers, mapped_files
from lockgate.lookup.cache.budget import DiskBudget
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.cache.mapped_files import MemoryReader, MemoryStore
from lockgate.lookup.codec.byte_rows import Rows
from lockgate.lookup.codec.key_codec import KeyCodec
from lockgate.lookup.driver.lookup_tables import LookupTable, open_lookup

MakeTable = Callable[..., Any]
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
CODEC = KeyCodec(pa.schema([("id", pa.int64())]))


@pytest.fixture
def storage() -> str:
    """Tests say how caches are kept."""
    return "auto"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    (tmp_path / "db").mkdir()
    made = MemoryStore(tmp_path / "db", DiskBudget(tmp_path, 0))
    yield made
    made.close()


def keys_of(numbers: Any) -> Rows:
    encoded = CODEC.encode([pa.array(numbers, pa.int64())])
    return encoded.rows.take(encoded.distinct().first)


def step(store: MemoryStore, values: dict[int, bytes], number: int) -> None:
    names = {keys_of([key]).to_bytes()[0]: value for key, value in values.items()}
    keys = sorted(names)
    store.ingest(store.step_files(keys, [names[key] or None for key in keys]), {"step": number})


def contents(store: MemoryStore | MemoryReader, numbers: range) -> dict[int, bytes]:
    keys = keys_of(numbers)
    back = {keys_of([number]).to_bytes()[0]: number for number in numbers}
    names = [back[key] for key in keys.to_bytes()]
    if isinstance(store, MemoryStore):
        values = store.get_many(keys.to_bytes())
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}
    held = {}
    for found in store.find(keys):
        held.update({names[at]: v for at, v in zip(found.at, found.rows.gather().to_bytes(), strict=True)})
    return held


def test_steps_are_layers_and_states_never_change(store: MemoryStore, tmp_path: Path) -> None:
    assert store.meta() is None
    step(store, dict.fromkeys(range(1000), b"first..."), 1)
    store.checkpoint(tmp_path / "g1")
    step(store, {3: b"second..", 4: b"", 2000: b"new....."}, 2)
    store.checkpoint(tmp_path / "g2")
    expected = {n: b"first..." for n in range(1000) if n != 4} | {3: b"second..", 2000: b"new....."}
    for state in (store, MemoryReader(tmp_path / "g2")):
        assert contents(state, range(2100)) == expected
    assert contents(MemoryReader(tmp_path / "g1"), range(2100)) == dict.fromkeys(range(1000), b"first...")
    assert len(json.loads((tmp_path / "g2" / "LAYERS.json").read_text())["layers"]) == 2
    assert store.meta() == {"step": 2}
    store.close()
    again = MemoryStore(tmp_path / "db", DiskBudget(tmp_path, 0))
    assert (again.meta(), contents(again, range(2100))) == ({"step": 2}, expected)


def test_layers_stay_few_whatever_the_number_of_steps(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mapped_files, "_SMALL_ROWS", 8)
    monkeypatch.setattr(layers, "MERGE_ROWS", 50)
    step(store, dict.fromkeys(range(400), b"base...."), 0)
    expected = dict.fromkeys(range(400), b"base....")
    for number in range(1, 30):
        change = {n: b"" if n % 7 == 0 else number.to_bytes(8) for n in range(number * 3, number * 3 + 5)}
        step(store, change, number)
        expected = {n: value for n, value in {**expected, **change}.items() if value}
        assert len(store._layers) <= 5
        assert contents(store, range(600)) == expected
    assert store.meta() == {"step": 29}
    # What merges left behind is gone: the folder has the files of the layers and nothing else.
    names = {path.name.split(".")[0] for path in (tmp_path / "db").glob("*.hashes")}
    assert names == {layer.name for layer in store._layers}


def test_large_merges_are_made_next_to_the_steps(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mapped_files, "_INLINE_ROWS", 100)
    monkeypatch.setattr(mapped_files, "_SMALL_ROWS", 1)
    go, merging = threading.Event(), threading.Event()
    original = mapped_files.merged

    def slow(*arguments: Any, **named: Any) -> Any:
        for piece in original(*arguments, **named):
            if threading.current_thread().name == "lockgate-merge" and named["bottom"]:
                merging.set()
                assert go.wait(30)
            yield piece

    monkeypatch.setattr(mapped_files, "merged", slow)
    step(store, dict.fromkeys(range(200), b"base...."), 0)
    step(store, dict.fromkeys(range(60), b"changed."), 1)
    assert merging.wait(30)
    assert len(store._layers) == 2, "the step did not wait for the merge"
    step(store, {0: b"", 1: b"later..."}, 2)
    expected = {n: b"changed." if n < 60 else b"base...." for n in range(1, 200)} | {1: b"later..."}
    assert contents(store, range(300)) == expected
    go.set()
    assert store._merge is not None
    store._merge.result()
    step(store, {500: b"newest.."}, 3)
    assert [len(layer) for layer in store._layers] == [200, 3]
    store.checkpoint(tmp_path / "g")
    assert contents(MemoryReader(tmp_path / "g"), range(600)) == {**expected, 500: b"newest.."}


def test_without_disk_for_a_merge_the_layers_stay(
    store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    step(store, dict.fromkeys(range(50), b"base...."), 0)
    store._budget = DiskBudget(tmp_path, 1)
    step(store, dict.fromkeys(range(40), b"changed."), 1)
    assert "could not be merged" in caplog.text
    assert len(store._layers) == 2
    assert contents(store, range(60)) == {n: b"changed." if n < 40 else b"base...." for n in range(50)}


def test_files_that_a_crash_left_are_removed(store: MemoryStore, tmp_path: Path) -> None:
    step(store, dict.fromkeys(range(50), b"base...."), 0)
    store.step_files(keys_of([1]).to_bytes(), [b"never..."])
    again = MemoryStore(tmp_path / "db", DiskBudget(tmp_path, 0))
    assert contents(again, range(2)) == {0: b"base....", 1: b"base...."}
    assert len(list((tmp_path / "db").glob("*.hashes"))) == 1


def test_a_missing_file_is_an_error_that_names_the_cache(store: MemoryStore, tmp_path: Path) -> None:
    step(store, {1: b"base...."}, 0)
    store.checkpoint(tmp_path / "g")
    next((tmp_path / "g").glob("*.values")).unlink()
    with pytest.raises(LookupCacheError, match=f"cannot open the lookup cache {tmp_path / 'g'}"):
        MemoryReader(tmp_path / "g")


# --- which kind a table gets -----------------------------------------------------------------------------


def rows(numbers: range, text: str = "some text") -> list[tuple[str, dict[str, Any]]]:
    return [("+I", {"id": number, "text": f"{text} {number}"}) for number in numbers]


def storage_of(lookup: LookupTable) -> str:
    generation = lookup.status().generation
    assert generation is not None
    return generation.storage


def test_auto_chooses_by_the_size_and_moves_a_table_that_outgrows_it(make_table: MakeTable) -> None:
    table = make_table(SCHEMA, ("id",), **{"lookup.memory-max-size": "20 kb"})
    table.commit(rows(range(200)))
    with open_lookup(table, "id") as lookup:
        assert storage_of(lookup) == "memory"
        table.commit(rows(range(200, 220)))
        info = lookup.refresh()
        assert info is not None
        assert (info.storage, info.full_load, info.rows) == ("memory", False, 220)
        table.commit(rows(range(220, 700)))
        info = lookup.refresh()
        assert info is not None
        assert (info.storage, info.full_load, info.rows) == ("full", True, 700)
        asked = pa.record_batch({"id": [5, 699, 700]})
        assert lookup.get(asked).rows.column("text").to_pylist() == ["some text 5", "some text 699"]
        table.commit(rows(range(5, 6), "changed"))
        info = lookup.refresh()
        assert info is not None
        assert (info.storage, info.full_load) == ("full", False)
    table.table_id = "larger"
    with open_lookup(table, "id") as lookup:
        assert storage_of(lookup) == "full"


def test_each_kind_asked_for_has_a_cache_of_its_own(make_table: MakeTable) -> None:
    table = make_table(SCHEMA, ("id",))
    table.commit(rows(range(50)))
    folders = set()
    for asked, got in (("auto", "memory"), ("memory", "memory"), ("full", "full")):
        with open_lookup(table, "id", options={"lookup.cache": asked}) as lookup:
            assert storage_of(lookup) == got
            folders.add(lookup.status().directory)
    assert len(folders) == 3


def test_encrypted_columns_are_never_in_mapped_files(make_table: MakeTable, tmp_path: Path) -> None:
    keys = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    table = make_table(SCHEMA, ("id",), keys=keys, **{"orc.encrypt": "pii:text"})
    table.commit(rows(range(50)))
    with open_lookup(table, "id") as lookup:
        assert storage_of(lookup) == "full"
    with pytest.raises(UnsupportedError, match=r"lookup\.cache=memory keeps values in mapped files"):
        open_lookup(table, "id", options={"lookup.cache": "memory"})
    assert not list(tmp_path.rglob("*.values"))


KILLED = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.lookup.cache.builder import CacheBuilder
from lockgate.lookup.driver.lookup_tables import directory_for, make_spec

table = Catalog(sys.argv[1]).load_table("db.dim")
spec = make_spec(table, "id", options={"lookup.cache-dir": sys.argv[2], "lookup.cache": sys.argv[3]})

def progress(done, expected):
    if done > int(sys.argv[4]) * expected // 10:
        os.kill(os.getpid(), signal.SIGKILL)

directory = directory_for(table, spec)
with directory.try_lock():
    CacheBuilder(table, spec, directory, progress).build(1)
"""


@pytest.mark.parametrize(("kind", "tenths"), [("full", 1), ("full", 8), ("memory", 1), ("memory", 8)])
def test_a_load_that_is_killed_starts_clean(tmp_path: Path, kind: str, tenths: int) -> None:
    from lockgate.framework.store.schema.schema import Schema
    from lockgate.framework.store.tables.catalog import Catalog

    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.dim", Schema.from_arrow(SCHEMA, primary_keys=("id",), options={"bucket": "1"})
    )
    numbers = range(20_000)
    table.append(pa.table({"id": numbers, "text": [str(n) for n in numbers]}, schema=SCHEMA))
    cache = tmp_path / "cache"
    arguments = [str(tmp_path / "warehouse"), str(cache), kind, str(tenths)]
    child = subprocess.run([sys.executable, "-c", KILLED, *arguments], timeout=120, check=False)
    assert child.returncode == -signal.SIGKILL
    assert len([path for path in cache.rglob("primary-*") if path.is_dir()]) == 1
    options = {"lookup.cache-dir": str(cache), "lookup.cache": kind}
    with open_lookup(table, "id", options=options) as lookup:
        directory = CacheDirectory(Path(lookup.status().directory))
        assert len(list(directory.path.glob("primary-*"))) == 1
        found = lookup.get(pa.record_batch({"id": np.arange(0, 20_000, 7)}))
        assert found.rows.column("text").to_pylist() == [str(n) for n in range(0, 20_000, 7)]
    assert not [path for path in cache.rglob("*") if ".writing-" in path.name or path.suffix == ".spill"]


def test_progress_goes_up_to_what_there_is(make_table: MakeTable) -> None:
    from lockgate.lookup.cache.builder import CacheBuilder
    from lockgate.lookup.driver.lookup_tables import directory_for, make_spec

    for on in ("id", "text"):
        table = make_table(SCHEMA, ("id",))
        table.commit(rows(range(100)))
        spec = make_spec(table, on)
        seen: list[tuple[int, int]] = []
        directory = directory_for(table, spec)
        lock = directory.try_lock()
        assert lock is not None
        with lock:
            builder = CacheBuilder(table, spec, directory, lambda *told, seen=seen: seen.append(told))
            builder.build(1)
            builder.close()
        done = [pair[0] for pair in seen]
        assert done == sorted(done)
        assert seen[-1] == (100, 100)
        assert 50 in done, "half of it is reading"
        assert {expected for _, expected in seen} == {100}


# --- the disk ----------------------------------------------------------------------------------------------


WRITER = """
import pathlib, sys
from lockgate.lookup.cache.budget import DiskBudget
with DiskBudget(pathlib.Path(sys.argv[1]), 10_000).writing(4000):
    print("writing", flush=True)
    input()
"""


def test_owners_do_not_take_the_same_bytes(tmp_path: Path) -> None:
    mine, yours = DiskBudget(tmp_path, 10_000), DiskBudget(tmp_path, 10_000)
    with mine.writing(4000):
        too_much = r"10000 that lookup\.cache-max-disk-size allows"
        with pytest.raises(LookupCacheError, match=too_much), mine.writing(7000):
            raise AssertionError
        with mine.writing(5000):
            pass
        with pytest.raises(LookupCacheError, match=too_much), yours.writing(7000):
            raise AssertionError
    with yours.writing(7000):
        pass
    other = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"writing\n"
    with pytest.raises(LookupCacheError, match=too_much), mine.writing(7000):
        raise AssertionError
    other.kill()
    other.communicate()
    with mine.writing(7000):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".budget"]


def test_the_disks_own_end_counts_too(tmp_path: Path) -> None:
    too_much = r"bytes free and .* more are needed"
    with pytest.raises(LookupCacheError, match=too_much), DiskBudget(tmp_path, 0).writing(1 << 60):
        raise AssertionError
